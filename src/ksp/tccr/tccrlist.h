/*
   Method: preconditioned conjugate residuals, KSPCR's recurrences, as a list of passes (../method/method.h). With s = B r the preconditioned residual, w = A p, t = A s, q = B w:

     Direct   p <- s + b p; w <- t + b w; q <- B w; w.q               a <- s.t / w.q
     Update   x <- x + a p; s <- s - a q; (r <- r - a w)
     product  t <- A s; s.t, and s.s or r.r                           b <- s.t now over before; test of the norm, record

   Where a solve begins p = s and w = t, and b is 0. r is there for its norm where that is not s's.

   Layout: plain vectors, one element of each at a time
   Memory traffic of an iteration, n rows: Direct 48 n bytes, with a diagonal 72 n; Update 48 n, with r 72 n; the pass behind the product 16 n
   References: M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
*/
#pragma once

#include "../method/method.h"

/* Vectors: KSPCR's work vectors, the solution, the diagonal of the preconditioner */
enum {
  TCCR_R,
  TCCR_S,
  TCCR_P,
  TCCR_W,
  TCCR_T,
  TCCR_Q,
  TCCR_X,
  TCCR_D,
  TCCR_VECTORS
};

enum {
  TCCR_STOP_WQ_NAN = PETSCTC_STOP_METHOD, /* w.q is Inf or NaN */
  TCCR_STOP_WQ_SIGN                       /* w.q <= 0: indefinite preconditioner */
};

struct TCCRScalars {
  PetscReal st, wq; /* s.t, w.q */
  PetscReal a, b;
  PetscReal square; /* s.s or r.r */
  PetscReal above, below, stop;
};

PETSCTC_HOST_DEVICE constexpr unsigned TCCRSet(int v)
{
  return 1u << v;
}

/* Which vector q is */
PETSCTC_HOST_DEVICE constexpr int TCCRProductOf(KSPTCApply apply)
{
  return apply == KSPTC_APPLY_NONE ? TCCR_W : TCCR_Q;
}

PETSCTC_HOST_DEVICE void TCCREndSlope(TCCRScalars &s, PetscScalar wq)
{
  s.wq = wq;
  if (PetscTCIsInfOrNan(wq)) s.stop = TCCR_STOP_WQ_NAN;
  else if (wq <= 0.0) s.stop = TCCR_STOP_WQ_SIGN;
  else s.a = s.st / wq;
}

template <KSPTCApply apply>
struct TCCRDirect : KSPTCPass<TCCRScalars, apply == KSPTC_APPLY_SCALED ? 5 : 4, apply == KSPTC_APPLY_SCALED ? 3 : 2, apply == KSPTC_APPLY_APART ? 0 : 1> {
  static constexpr int            from[] = {TCCR_S, TCCR_P, TCCR_T, TCCR_W, TCCR_D}, to[] = {TCCR_P, TCCR_W, TCCR_Q};
  static constexpr bool           descends = true; /* the product before ends with the last rows */
  static constexpr PetscLogDouble flops    = 4.0 + (apply == KSPTC_APPLY_APART ? 0.0 : 2.0) + (apply == KSPTC_APPLY_SCALED ? 1.0 : 0.0);

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCRScalars &s, const T in[], T out[], T sum[]) const
  {
    out[0] = in[0] + s.b * in[1];
    out[1] = in[2] + s.b * in[3];
    if constexpr (apply == KSPTC_APPLY_SCALED) {
      out[2] = in[4] * out[1];
      PetscTCAddProduct(sum[0], out[1], out[2]);
    } else if constexpr (apply == KSPTC_APPLY_NONE) PetscTCAddProduct(sum[0], out[1], out[1]);
  }
  PETSCTC_HOST_DEVICE void end(TCCRScalars &s, const PetscScalar sum[]) const
  {
    if constexpr (apply != KSPTC_APPLY_APART) TCCREndSlope(s, sum[0]);
  }
};

/* w.q where the preconditioner has been applied by itself */
struct TCCRSlope : KSPTCPass<TCCRScalars, 2, 0, 1> {
  static constexpr int            from[] = {TCCR_W, TCCR_Q}, to[] = {-1};
  static constexpr PetscLogDouble flops = 2.0;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCRScalars &, const T in[], T[], T sum[]) const
  {
    PetscTCAddProduct(sum[0], in[0], in[1]);
  }
  PETSCTC_HOST_DEVICE void end(TCCRScalars &s, const PetscScalar sum[]) const { TCCREndSlope(s, sum[0]); }
};

template <KSPTCApply apply, bool residual>
struct TCCRUpdate : KSPTCPass<TCCRScalars, residual ? 6 : 4, residual ? 3 : 2, 0> {
  static constexpr int            from[] = {TCCR_X, TCCR_P, TCCR_S, TCCRProductOf(apply), TCCR_R, TCCR_W}, to[] = {TCCR_X, TCCR_S, TCCR_R};
  static constexpr PetscLogDouble flops = residual ? 6.0 : 4.0;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCRScalars &s, const T in[], T out[], T[]) const
  {
    out[0] = in[0] + s.a * in[1];
    out[1] = in[2] + (-s.a) * in[3];
    if constexpr (residual) out[2] = in[4] + (-s.a) * in[5];
  }
};

/* first: of a solve, where b is 0 */
template <bool residual, bool first>
struct TCCRSums : KSPTCPass<TCCRScalars, residual ? 3 : 2, 0, 2> {
  static constexpr int  from[] = {TCCR_S, TCCR_T, TCCR_R}, to[] = {-1};
  static constexpr bool ends = true;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCRScalars &, const T in[], T[], T sum[]) const
  {
    const T &of = in[residual ? 2 : 0];

    PetscTCAddProduct(sum[0], in[0], in[1]);
    PetscTCAddProduct(sum[1], of, of);
  }
  PETSCTC_HOST_DEVICE void end(TCCRScalars &s, const PetscScalar sum[]) const
  {
    s.b      = first ? 0.0 : sum[0] / s.st;
    s.st     = sum[0];
    s.square = sum[1];
    PetscTCEndIteration(s, this->test.norm == PETSCTC_NORM_BETA ? s.st : s.square, this->test, this->record);
  }
};

struct TCCR {
  using Scalars                = TCCRScalars;
  static constexpr int VECTORS = TCCR_VECTORS;

  using Passes = KSPTCPassTypes<TCCRDirect<KSPTC_APPLY_NONE>, TCCRDirect<KSPTC_APPLY_SCALED>, TCCRDirect<KSPTC_APPLY_APART>, TCCRSlope, TCCRUpdate<KSPTC_APPLY_NONE, false>, TCCRUpdate<KSPTC_APPLY_NONE, true>, TCCRUpdate<KSPTC_APPLY_SCALED, false>,
                                TCCRUpdate<KSPTC_APPLY_SCALED, true>, TCCRSums<false, false>, TCCRSums<true, false>, TCCRSums<false, true>, TCCRSums<true, true>>;

  template <KSPTCApply apply, bool residual>
  struct Items {
    using List = KSPTCList<KSPTCPassItem<TCCRDirect<apply>>, KSPTCPassItem<TCCRUpdate<apply, residual>>, KSPTCProductItem<TCCR_S, TCCR_T, TCCRSums<residual, false>>>;
  };
  template <bool residual>
  struct Items<KSPTC_APPLY_APART, residual> {
    using List = KSPTCList<KSPTCPassItem<TCCRDirect<KSPTC_APPLY_APART>>, KSPTCPCItem<TCCR_W, TCCR_Q>, KSPTCPassItem<TCCRSlope>, KSPTCPassItem<TCCRUpdate<KSPTC_APPLY_SCALED, residual>>, KSPTCProductItem<TCCR_S, TCCR_T, TCCRSums<residual, false>>>;
  };
  template <KSPTCApply apply, bool residual>
  using List = typename Items<apply, residual>::List;

  /* Ghosts make s, w and q, from t, which comes from their blocks */
  PETSCTC_HOST_DEVICE static constexpr unsigned rows(KSPTCApply apply) { return TCCRSet(TCCR_X) | TCCRSet(TCCR_S) | TCCRSet(TCCR_P) | TCCRSet(TCCR_W) | TCCRSet(TCCR_T) | (apply == KSPTC_APPLY_SCALED ? TCCRSet(TCCR_Q) | TCCRSet(TCCR_D) : 0); }
  PETSCTC_HOST_DEVICE static constexpr unsigned ghosts(KSPTCApply apply) { return TCCRSet(TCCR_S) | TCCRSet(TCCR_W) | TCCRSet(TCCR_T) | (apply == KSPTC_APPLY_SCALED ? TCCRSet(TCCR_Q) | TCCRSet(TCCR_D) : 0); }
  static constexpr unsigned                     MULTIPLIED = TCCRSet(TCCR_S), PUBLISHED = TCCRSet(TCCR_T), INPUTS = TCCRSet(TCCR_D);
};

extern const KSPTCListRunners<TCCR> TCCROnHost, TCCROnDevice;
