/*
   The steps of the conjugate gradient method, written once for all backends. kspsteps.h states what each one does.

   Method         p <- z + b p; w <- A p (not here); a <- z.r / p.w; x <- x + a p; r <- r - a w; the expressions and the order of the tests are those of KSPCG, so that
                  iterates agree with it to rounding and reasons exactly.
   Layout         plain vectors
   Memory traffic bytes of a step (8 n for each vector read or written), and the time at 4.3 TB/s for n = 1,030,301
                    residual          8 n   1.9 us
                    project          16 n   3.8 us   (8 n when z is r)
                    direction        24 n   5.8 us   (first: 16 n; with x 40 n)
                    curvature        16 n   3.8 us
                    update           48 n  11.5 us   (without x 24 n)
                    update_scaled    64 n  15.3 us   (without x 40 n)
                    settle           24 n   5.8 us   (once a solve)
                  An iteration without preconditioner is direction + curvature + update = 88 n, 72 n where the product brings p.w (curvature is then part of the update), 64 n where x follows with the next direction, which reads p as well; with a diagonal one 16 n
                  more (40 n were it applied by itself: 24 n, and project).
   References     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
                  Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <petsctc/private/fusedstep.h>
#include <petsctc/private/kspsteps.h>

/* Runs whatever the scalars hold */
struct TCCGReset : PetscTCStep<TCCGScalars, 0, 0, 0> {
  static constexpr bool reads_scalars = false;

  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const { s = {}; }
};

struct TCCGResidual : PetscTCStep<TCCGScalars, 1, 0, 1> {
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &, const T in[], T[], T sum[]) const
  {
    PetscTCAddProduct(sum[0], in[0], in[0]);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const { s.rr = sum[0]; }
};

/* The norm's square, whichever it is */
PETSCTC_HOST_DEVICE PetscReal TCCGNormSquare(const TCCGScalars &s, PetscTCNorm norm)
{
  return norm == PETSCTC_NORM_RR ? s.rr : (norm == PETSCTC_NORM_ZZ ? s.zz : s.beta);
}

struct TCCGProject : PetscTCStep<TCCGScalars, 2, 0, 2> {
  static constexpr bool descends = true; /* as the updates: z.r has the same bits whichever step adds it up */

  PetscTCTest  test;
  TCCGScalars *record;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &, const T in[], T[], T sum[]) const
  {
    const T &z = in[0], &r = in[1];

    PetscTCAddProduct(sum[0], z, r);
    PetscTCAddProduct(sum[1], z, z);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const
  {
    s.betaold = s.beta;
    s.beta    = sum[0];
    s.zz      = sum[1];
    s.shift   = 0.0;
    PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
  }
};

/* The first direction has one input: what p holds before may be anything, NaN included. late: x lacks a p */
template <bool first, bool late>
struct TCCGDirection : PetscTCStep<TCCGScalars, first ? 1 : (late ? 3 : 2), late ? 2 : 1, 0> {
  static_assert(!first || !late, "x lacks nothing yet");

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const
  {
    if (PetscTCIsInfOrNan(s.beta)) s.stop = PETSCTC_STOP_BETA_NAN;
    else if (s.beta == 0.0) s.stop = PETSCTC_STOP_BETA_ZERO;
    else if (!first && s.beta * s.betaold < 0.0) s.stop = PETSCTC_STOP_BETA_SIGN;
    else s.b = first ? 0.0 : s.beta / s.betaold;
  }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T[]) const
  {
    const T z = in[0] - s.shift;

    if constexpr (first) out[0] = z;
    else out[0] = z + s.b * in[1];
    if constexpr (late) out[1] = in[2] + s.a * in[1];
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const
  {
    if (late) s.late = 0.0;
  }
};

struct TCCGSettle : PetscTCStep<TCCGScalars, 2, 1, 0> {
  static constexpr bool heeds_stop = false;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T[]) const
  {
    const T &p = in[0], &x = in[1];

    out[0] = s.late ? x + s.a * p : x;
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const { s.late = 0.0; }
};

PETSCTC_HOST_DEVICE void TCCGEndCurvature(TCCGScalars &s, PetscScalar dpi, bool first)
{
  s.dpiold = s.dpi;
  s.dpi    = dpi;
  if (PetscTCIsInfOrNan(s.dpi)) s.stop = PETSCTC_STOP_DPI_NAN;
  else if (s.dpi == 0.0 || (!first && PetscTCSign(s.dpi) * PetscTCSign(s.dpiold) < 0)) s.stop = PETSCTC_STOP_DPI_SIGN;
  else s.a = s.beta / s.dpi;
}

/* p.w of the product before an update, or NULL: curvature has run */
struct TCCGProductSums {
  const PetscScalar *sums;
  bool               first;

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const
  {
    if (sums) TCCGEndCurvature(s, sums[0], first);
  }
};

struct TCCGCurvature : PetscTCStep<TCCGScalars, 2, 0, 1> {
  bool first;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &, const T in[], T[], T sum[]) const
  {
    const T &p = in[0], &w = in[1];

    PetscTCAddProduct(sum[0], p, w);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const { TCCGEndCurvature(s, sum[0], first); }
};

/* late: without p and x */
template <bool late>
struct TCCGUpdate : PetscTCStep<TCCGScalars, late ? 2 : 4, late ? 1 : 2, 1> {
  static constexpr bool descends = true; /* the product ends with the last rows */

  bool            identity;
  PetscTCTest     test;
  TCCGScalars    *record;
  TCCGProductSums product;

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const { product.begin(s); }

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T sum[]) const
  {
    const T &w = in[0], &r = in[1];

    out[0] = r + (-s.a) * w;
    if constexpr (!late) out[1] = in[3] + s.a * in[2];
    PetscTCAddProduct(sum[0], out[0], out[0]);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const
  {
    s.late = late;
    s.rr   = sum[0];
    if (identity) {
      s.betaold = s.beta;
      s.beta    = s.rr;
      s.zz      = s.rr;
    }
    PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
  }
};

/* The sums of an update with a diagonal preconditioner: r.r, z.r, z.z, and with a projection those of r and z */
template <bool constant>
constexpr int TCCG_SCALED_SUMS = constant ? 5 : 3;

template <bool constant, class T>
PETSCTC_HOST_DEVICE void TCCGAddScaled(const T &r, const T &z, T sum[])
{
  PetscTCAddProduct(sum[0], r, r);
  PetscTCAddProduct(sum[1], z, r);
  PetscTCAddProduct(sum[2], z, z);
  if constexpr (constant) {
    sum[3] += r;
    sum[4] += z;
  }
}

/* The scalars of an update with a projection, of n rows. z.z may not become negative by rounding: it is the square of a norm */
PETSCTC_HOST_DEVICE void TCCGEndProjection(TCCGScalars &s, const PetscScalar sum[], PetscReal n)
{
  const PetscReal zz = sum[2] - sum[4] * (sum[4] / n);

  s.shift = sum[4] / n;
  s.mean += s.shift;
  s.beta = sum[1] - s.shift * sum[3];
  s.zz   = zz < 0.0 ? 0.0 : zz;
}

/* z is not read back from where it is stored: that may be w. n: rows, of a projection */
template <bool late, bool constant = false>
struct TCCGUpdateScaled : PetscTCStep<TCCGScalars, late ? 3 : 5, late ? 2 : 3, TCCG_SCALED_SUMS<constant>> {
  PetscReal             n;
  static constexpr bool descends = true;

  PetscTCTest     test;
  TCCGScalars    *record;
  TCCGProductSums product;

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const { product.begin(s); }

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T sum[]) const
  {
    const T &w = in[0], &r = in[1], &d = in[2];

    out[0] = r + (-s.a) * w;
    out[1] = constant ? out[0] * d - s.mean : out[0] * d;
    if constexpr (!late) out[2] = in[4] + s.a * in[3];
    TCCGAddScaled<constant>(out[0], out[1], sum);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const
  {
    s.late    = late;
    s.rr      = sum[0];
    s.betaold = s.beta;
    s.beta    = sum[1];
    s.zz      = sum[2];
    if constexpr (constant) TCCGEndProjection(s, sum, n);
    PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
  }
};

/* The table's functions on a backend */
template <class Backend>
struct TCCGStepsOn {
  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, TCCGWork *work, PetscTCStream stream)
  {
    return Backend::run(n, step, work->s, work->tensor, &work->reduce, stream);
  }
  static PetscErrorCode reset(TCCGWork *work, PetscTCStream stream) { return run(0, TCCGReset{}, work, stream); }
  static PetscErrorCode residual(PetscInt n, const PetscScalar r[], TCCGWork *work, PetscTCStream stream)
  {
    return run(n,
               TCCGResidual{
                 {{r}, {}}
    },
               work, stream);
  }
  static PetscErrorCode project(PetscInt n, const PetscScalar z[], const PetscScalar r[], TCCGWork *work, PetscTCStream stream)
  {
    return run(n,
               TCCGProject{
                 {{z, r}, {}},
                 work->test, work->record
    },
               work, stream);
  }
  static PetscErrorCode direction(PetscInt n, PetscBool first, const PetscScalar z[], PetscScalar p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    if (first)
      return run(n,
                 TCCGDirection<true, false>{
                   {{z}, {p}}
      },
                 work, stream);
    return x ? run(n,
                   TCCGDirection<false, true>{
                     {{z, p, x}, {p, x}}
    },
                   work, stream)
             : run(n, TCCGDirection<false, false>{{{z, p}, {p}}}, work, stream);
  }
  static PetscErrorCode curvature(PetscInt n, PetscBool first, const PetscScalar p[], const PetscScalar w[], TCCGWork *work, PetscTCStream stream)
  {
    return run(n,
               TCCGCurvature{
                 {{p, w}, {}},
                 first == PETSC_TRUE
    },
               work, stream);
  }
  static PetscErrorCode update(PetscInt n, PetscBool identity, const PetscScalar p[], const PetscScalar w[], PetscScalar x[], PetscScalar r[], TCCGWork *work, PetscTCStream stream)
  {
    const TCCGProductSums product = {work->sums, work->first == PETSC_TRUE};

    return x ? run(n,
                   TCCGUpdate<false>{
                     {{w, r, p, x}, {r, x}},
                     identity == PETSC_TRUE, work->test, work->record, product
    },
                   work, stream)
             : run(n, TCCGUpdate<true>{{{w, r}, {r}}, identity == PETSC_TRUE, work->test, work->record, product}, work, stream);
  }
  template <bool constant>
  static PetscErrorCode update_scaled_with(PetscInt n, const PetscScalar p[], const PetscScalar w[], const PetscScalar d[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream)
  {
    const TCCGProductSums product = {work->sums, work->first == PETSC_TRUE};
    const PetscReal       rows    = (PetscReal)n;

    return x ? run(n,
                   TCCGUpdateScaled<false, constant>{
                     {{w, r, d, p, x}, {r, z, x}},
                     rows, work->test, work->record, product
    },
                   work, stream)
             : run(n, TCCGUpdateScaled<true, constant>{{{w, r, d}, {r, z}}, rows, work->test, work->record, product}, work, stream);
  }
  static PetscErrorCode update_scaled(PetscInt n, const PetscScalar p[], const PetscScalar w[], const PetscScalar d[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream)
  {
    return work->constant ? update_scaled_with<true>(n, p, w, d, x, r, z, work, stream) : update_scaled_with<false>(n, p, w, d, x, r, z, work, stream);
  }
  static PetscErrorCode settle(PetscInt n, const PetscScalar p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    return run(n,
               TCCGSettle{
                 {{p, x}, {x}}
    },
               work, stream);
  }

  static constexpr TCCGSteps table = {Backend::template create<TCCGWork>, Backend::template destroy<TCCGWork>, reset, residual, project, direction, curvature, update, update_scaled, settle, Backend::template read<TCCGWork, TCCGScalars>,
                                      Backend::template mark<TCCGWork>,   Backend::template await<TCCGWork>};
};
