/*
   The steps of BiCGSTAB, written once for all backends. kspsteps.h states what each one does.

   Method         p <- r - omegaold beta v + beta p; v <- K p (not here); alpha <- rho / v.rp; s <- r - alpha v; t <- K s (not here); omega <- t.s / t.t;
                  x <- x + alpha p + omega s; r <- s - omega t; the expressions and the order of the tests are those of KSPBCGS, so that iterates agree with it to
                  rounding and reasons exactly. r.rp of the next iteration is added up while r is made.
                  A reduction less (advance): r.rp = s.rp - omega t.rp, of which the sums come with t.s and t.t, so that beta is known before r is, and r and the next p are made in one pass. r.r is still that of r.
                  With a projection against the constants behind a preconditioner from the left v and t are stored as the preconditioner leaves them. The mean of each is summed with the dot products, whose values it corrects, and comes off
                  where v and t are read: s <- r - alpha (v - vmean) ... All of it is summed of v and t less their first element, v0: as (v0 - vmean)^2 is no more than the sum of all (v - vmean)^2, what cancels in that and in the
                  others is bounded by n, however large the mean.
   Layout         plain vectors
   Memory traffic bytes of a step (8 n for each vector read or written), and the time at 4.3 TB/s for n = 1,030,301
                    start            32 n   7.7 us
                    direction        32 n   7.7 us
                    breakdown        16 n   3.8 us
                    half             24 n   5.8 us
                    stabilize        16 n   3.8 us
                    update           56 n  13.4 us
                    advance          64 n  15.3 us
                    breakdown_scaled, stabilize_scaled 32 n each, 7.7 us
                    breakdown_blocks, stabilize_blocks (24 + 8 bs) n each for blocks of bs rows, bs = 3: 48 n, 11.5 us
                  An iteration is direction + breakdown + half + stabilize + update = 144 n, 112 n where products bring the sums of breakdown and stabilize (these are then part of half and update), 104 n where the second product makes s, with a diagonal preconditioner from the left 176 n (192 n were it applied by itself).
                  With blocks of bs rows from the left (160 + 16 bs) n (176 + 16 bs were they applied by themselves).
                  With advance breakdown + half + stabilize + advance = 128 n (stabilize reads rp too: 24 n), 88 n where products bring the sums, 80 n where the second one makes s, and 8 n for rp there.
   References     H. A. van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear systems, SIAM J. Sci. Stat.
                  Comput. 13(2), 1992
                  Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/ksp/step/fusedstep.h>
#include <../src/ksp/step/kspsteps.h>

/* Runs whatever the scalars hold */
struct TCBCGSReset : PetscTCStep<TCBCGSScalars, 0, 0, 0> {
  static constexpr bool reads_scalars = false;

  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar[]) const
  {
    s     = {};
    s.rho = s.alpha = s.omega = 1.0;
  }
};

struct TCBCGSStart : PetscTCStep<TCBCGSScalars, 1, 3, 1> {
  PetscTCTest    test;
  TCBCGSScalars *record;
  PetscTCBounds  bounds;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &, const T in[], T out[], T sum[]) const
  {
    const T &r = in[0];

    out[0] = r;
    out[1] = T{};
    out[2] = T{};
    PetscTCAddProduct(sum[0], r, r);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const
  {
    s.rr = s.rhonext = sum[0];
    PetscTCSetBounds(s, s.rr, bounds);
    PetscTCEndIteration(s, s.rr, test, record);
  }
};

/* The scalars of the next iteration */
PETSCTC_HOST_DEVICE void TCBCGSBeginIteration(TCBCGSScalars &s)
{
  s.rhoold   = s.rho;
  s.rho      = s.rhonext;
  s.omegaold = s.omega;
  s.beta     = (s.rho / s.rhoold) * (s.alpha / s.omegaold);
}

/* p of the next iteration, with its beta and the omega of this one */
template <class T>
PETSCTC_HOST_DEVICE T TCBCGSDirect(PetscReal omega, PetscReal beta, const T &r, const T &v, const T &p)
{
  return r + (-omega * beta) * v + beta * p;
}

/* The mean of what a projection has left in v and t comes off where they are read: the projection needs no pass of its own */
template <class T>
PETSCTC_HOST_DEVICE T TCBCGSWithout(PetscReal mean, const T &v)
{
  return v - mean;
}

struct TCBCGSDirection : PetscTCStep<TCBCGSScalars, 3, 1, 0> {
  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const { TCBCGSBeginIteration(s); }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &s, const T in[], T out[], T[]) const
  {
    const T &r = in[0], &v = in[1], &p = in[2];

    out[0] = TCBCGSDirect(s.omegaold, s.beta, r, TCBCGSWithout(s.vmean, v), p);
  }
};

PETSCTC_HOST_DEVICE void TCBCGSEndBreakdown(TCBCGSScalars &s, PetscScalar d1)
{
  if (s.advanced != 0.0) {
    TCBCGSBeginIteration(s);
    s.advanced = 0.0;
  }
  s.d1    = d1;
  s.vmean = 0.0;
  if (PetscTCIsInfOrNan(s.d1)) s.stop = PETSCTC_STOP_D1_NAN;
  else if (s.d1 == 0.0) s.stop = PETSCTC_STOP_D1_ZERO;
  else s.alpha = s.rho / s.d1;
}

struct TCBCGSBreakdown : PetscTCStep<TCBCGSScalars, 2, 0, 1> {
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &, const T in[], T[], T sum[]) const
  {
    const T &v = in[0], &rp = in[1];

    PetscTCAddProduct(sum[0], v, rp);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndBreakdown(s, sum[0]); }
};

/* The first element of a product with blocks */
PETSCTC_HOST_DEVICE PetscScalar TCBCGSFirstElement(const PetscTCBlocks &blocks, const PetscScalar u[])
{
  PetscScalar first = blocks.d[0] * u[0];

  for (PetscInt k = 1; k < PetscTCBlockOf(blocks, 0).size; ++k) PetscTCAddProduct(first, blocks.d[k * (PetscCount)blocks.stride], u[k]);
  return first;
}

/* The sums of a breakdown behind a preconditioner: v.rp, and with a projection those of v and rp; then v is less s.vmean, where begin() has put its first element */
template <bool constant>
constexpr int TCBCGS_BREAKDOWN_SUMS = constant ? 3 : 1;

template <bool constant, class T>
PETSCTC_HOST_DEVICE void TCBCGSAddBreakdown(const TCBCGSScalars &s, const T &v, const T &rp, T sum[])
{
  if constexpr (constant) {
    const T shifted = v - s.vmean;

    PetscTCAddProduct(sum[0], shifted, rp);
    sum[1] += shifted;
    sum[2] += rp;
  } else PetscTCAddProduct(sum[0], v, rp);
}

/* What a step knows of a mean before it: of how many rows, of all processes, and whether to begin with the first element, which is near the mean where that is large, so that nothing cancels in the sums. Not on several processes: each
   would have another */
struct TCBCGSMean {
  PetscReal rows;
  bool      guesses;

  static TCBCGSMean of(PetscInt n, const PetscTCReduceWork *work) { return {PetscTCRowsAcross(n, work), !(work->across.rows > 0.0) && n > 0}; }
};

/* n: rows, of a projection */
template <bool constant>
PETSCTC_HOST_DEVICE void TCBCGSEndBreakdownOf(TCBCGSScalars &s, const PetscScalar sum[], PetscReal n)
{
  if constexpr (constant) {
    const PetscReal more = n > 0.0 ? sum[1] / n : 0.0, mean = s.vmean + more;

    TCBCGSEndBreakdown(s, sum[0] - more * sum[2]);
    s.vmean = mean;
  } else TCBCGSEndBreakdown(s, sum[0]);
}

template <bool constant>
struct TCBCGSBreakdownScaled : PetscTCStep<TCBCGSScalars, 3, 1, TCBCGS_BREAKDOWN_SUMS<constant>> {
  TCBCGSMean mean;

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if constexpr (constant) s.vmean = mean.guesses ? this->in[0][0] * this->in[1][0] : 0.0;
  }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &s, const T in[], T out[], T sum[]) const
  {
    const T &u = in[0], &d = in[1], &rp = in[2];

    out[0] = u * d;
    TCBCGSAddBreakdown<constant>(s, out[0], rp, sum);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndBreakdownOf<constant>(s, sum, mean.rows); }
};

template <bool constant>
struct TCBCGSBreakdownBlocks : PetscTCBlockStep<TCBCGSScalars, 1, 0, TCBCGS_BREAKDOWN_SUMS<constant>, 1> {
  TCBCGSMean mean;

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if constexpr (constant) s.vmean = mean.guesses ? TCBCGSFirstElement(this->blocks, this->in[0]) : 0.0;
  }
  template <class T>
  PETSCTC_HOST_DEVICE T first(const TCBCGSScalars &, const T in[], T[]) const
  {
    return in[0]; /* u */
  }
  template <class T>
  PETSCTC_HOST_DEVICE T second(const TCBCGSScalars &s, const T &, const T &v, const T with[], T sum[]) const
  {
    TCBCGSAddBreakdown<constant>(s, v, with[0], sum); /* rp */
    return v;
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndBreakdownOf<constant>(s, sum, mean.rows); }
};

struct TCBCGSHalf : PetscTCStep<TCBCGSScalars, 2, 1, 0> {
  static constexpr bool descends = true; /* the product ends with the last rows */

  const PetscScalar *product; /* v.rp of the product before, or NULL: breakdown has run */

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if (product) TCBCGSEndBreakdown(s, product[0]);
  }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &s, const T in[], T out[], T[]) const
  {
    const T &r = in[0], &v = in[1];

    out[0] = r + (-s.alpha) * TCBCGSWithout(s.vmean, v);
  }
};

/* sum[]: t.s, t.t; single, for advance: also t.rp, s.rp */
template <bool single>
PETSCTC_HOST_DEVICE void TCBCGSEndStabilize(TCBCGSScalars &s, const PetscScalar sum[])
{
  s.ts    = sum[0];
  s.tt    = sum[1];
  s.tmean = 0.0;
  if (s.tt == 0.0) s.stop = PETSCTC_STOP_D2_ZERO;
  else s.omega = s.ts / s.tt;
  if constexpr (single) {
    if (s.tt != 0.0) s.rhonext = sum[3] - s.omega * sum[2];
  }
}

/* What an update or an advance begins with: half's part (v.rp) if the product made s, and stabilize's unless that has run */
struct TCBCGSProductSums {
  const PetscScalar *made, *sums;

  static TCBCGSProductSums of(const TCBCGSWork *work) { return {work->sums ? work->made : NULL, work->sums}; }

  template <bool single>
  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if (made) TCBCGSEndBreakdown(s, made[0]);
    if (sums && s.stop == 0.0) TCBCGSEndStabilize<single>(s, sums);
  }
};

/* The sums of a stabilize, and where in them, with a projection, those of t, s and (single) rp begin. Then t is less tmean, where begin() has put its first element */
template <bool single>
constexpr int TCBCGS_STABILIZE_DOTS = single ? 4 : 2;

template <bool single, bool constant>
constexpr int TCBCGS_STABILIZE_SUMS = TCBCGS_STABILIZE_DOTS<single> + (constant ? (single ? 3 : 2) : 0);

template <bool single, bool constant, class T>
PETSCTC_HOST_DEVICE void TCBCGSAddStabilize(PetscReal tmean, const T &unshifted, const T &s, const T &rp, T sum[])
{
  const T t = constant ? unshifted - tmean : unshifted;

  PetscTCAddProduct(sum[0], t, s);
  PetscTCAddProduct(sum[1], t, t);
  if constexpr (single) {
    PetscTCAddProduct(sum[2], t, rp);
    PetscTCAddProduct(sum[3], s, rp);
  }
  if constexpr (constant) {
    T *const mean = sum + TCBCGS_STABILIZE_DOTS<single>;

    mean[0] += t;
    mean[1] += s;
    if constexpr (single) mean[2] += rp;
  }
}

/* n: rows, of a projection. t.t may not become negative by rounding: it is the square of a norm */
template <bool single, bool constant>
PETSCTC_HOST_DEVICE void TCBCGSEndStabilizeOf(TCBCGSScalars &s, const PetscScalar sum[], PetscReal n)
{
  if constexpr (constant) {
    const PetscScalar *const of   = sum + TCBCGS_STABILIZE_DOTS<single>;
    const PetscReal          more = n > 0.0 ? of[0] / n : 0.0, mean = s.tmean + more, tt = sum[1] - more * of[0];
    PetscScalar              dots[TCBCGS_STABILIZE_DOTS<single>] = {sum[0] - more * of[1], PetscMax(tt, (PetscReal)0.0)};

    if constexpr (single) {
      dots[2] = sum[2] - more * of[2];
      dots[3] = sum[3];
    }
    TCBCGSEndStabilize<single>(s, dots);
    s.tmean = mean;
  } else TCBCGSEndStabilize<single>(s, sum);
}

template <bool single>
struct TCBCGSStabilize : PetscTCStep<TCBCGSScalars, single ? 3 : 2, 0, TCBCGS_STABILIZE_SUMS<single, false>> {
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &, const T in[], T[], T sum[]) const
  {
    TCBCGSAddStabilize<single, false>(0.0, in[0], in[1], in[single ? 2 : 1], sum); /* t, s, rp */
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndStabilize<single>(s, sum); }
};

template <bool single, bool constant>
struct TCBCGSStabilizeScaled : PetscTCStep<TCBCGSScalars, single ? 4 : 3, 1, TCBCGS_STABILIZE_SUMS<single, constant>> {
  TCBCGSMean mean;

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if constexpr (constant) s.tmean = mean.guesses ? this->in[0][0] * this->in[1][0] : 0.0;
  }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &s, const T in[], T out[], T sum[]) const
  {
    const T &u = in[0], &d = in[1];

    out[0] = u * d;
    TCBCGSAddStabilize<single, constant>(s.tmean, out[0], in[2], in[single ? 3 : 2], sum);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndStabilizeOf<single, constant>(s, sum, mean.rows); }
};

template <bool single, bool constant>
struct TCBCGSStabilizeBlocks : PetscTCBlockStep<TCBCGSScalars, 1, 0, TCBCGS_STABILIZE_SUMS<single, constant>, single ? 2 : 1> {
  TCBCGSMean mean;

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    if constexpr (constant) s.tmean = mean.guesses ? TCBCGSFirstElement(this->blocks, this->in[0]) : 0.0;
  }
  template <class T>
  PETSCTC_HOST_DEVICE T first(const TCBCGSScalars &, const T in[], T[]) const
  {
    return in[0]; /* u */
  }
  template <class T>
  PETSCTC_HOST_DEVICE T second(const TCBCGSScalars &s, const T &, const T &t, const T with[], T sum[]) const
  {
    TCBCGSAddStabilize<single, constant>(s.tmean, t, with[0], with[single ? 1 : 0], sum); /* s, rp */
    return t;
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const { TCBCGSEndStabilizeOf<single, constant>(s, sum, mean.rows); }
};

PETSCTC_HOST_DEVICE void TCBCGSEndIteration(TCBCGSScalars &s, PetscScalar rr, const PetscTCTest &test, TCBCGSScalars *record)
{
  s.rr = rr;
  if (record && s.rho == 0.0) s.stop = PETSCTC_STOP_RHO_ZERO;
  PetscTCEndIteration(s, s.rr, test, record);
}

struct TCBCGSUpdate : PetscTCStep<TCBCGSScalars, 5, 2, 2> {
  static constexpr bool descends = true;

  PetscTCTest       test;
  TCBCGSScalars    *record;
  TCBCGSProductSums product; /* s.t and t.t */

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const { product.begin<false>(s); }

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &c, const T in[], T out[], T sum[]) const
  {
    const T &p = in[0], &s = in[1], &t = in[2], &rp = in[3], &x = in[4];

    out[0] = c.alpha * p + c.omega * s + x;
    out[1] = s + (-c.omega) * TCBCGSWithout(c.tmean, t);
    PetscTCAddProduct(sum[0], out[1], out[1]);
    PetscTCAddProduct(sum[1], out[1], rp);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const
  {
    s.rhonext = sum[1];
    TCBCGSEndIteration(s, sum[0], test, record);
  }
};

struct TCBCGSAdvance : PetscTCStep<TCBCGSScalars, 5, 3, 1> {
  static constexpr bool descends = true;

  PetscTCTest       test;
  TCBCGSScalars    *record;
  TCBCGSProductSums product; /* s.t, t.t, rp.t, rp.s */

  PETSCTC_HOST_DEVICE void begin(TCBCGSScalars &s) const
  {
    product.begin<true>(s);
    TCBCGSScalars next = s;

    TCBCGSBeginIteration(next);
    if (s.stop == 0.0) s.beta = next.beta;
  }

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCBCGSScalars &c, const T in[], T out[], T sum[]) const
  {
    const T &s = in[0], &t = in[1], &v = in[2], &x = in[3], &p = in[4];

    out[0] = c.alpha * p + c.omega * s + x;
    out[1] = s + (-c.omega) * TCBCGSWithout(c.tmean, t);
    out[2] = TCBCGSDirect(c.omega, c.beta, out[1], TCBCGSWithout(c.vmean, v), p);
    PetscTCAddProduct(sum[0], out[1], out[1]);
  }
  PETSCTC_HOST_DEVICE void end(TCBCGSScalars &s, const PetscScalar sum[]) const
  {
    s.advanced = 1.0;
    TCBCGSEndIteration(s, sum[0], test, record);
  }
};

/* The table's functions on a backend */
template <class Backend>
struct TCBCGSStepsOn {
  template <class Step>
  static PetscErrorCode run(PetscInt n, const Step &step, TCBCGSWork *work, PetscTCStream stream)
  {
    return Backend::run(n, step, work->s, work->tensor, &work->reduce, stream);
  }
  static PetscErrorCode reset(TCBCGSWork *work, PetscTCStream stream) { return run(0, TCBCGSReset{}, work, stream); }
  static PetscErrorCode start(PetscInt n, const PetscScalar r[], PetscScalar rp[], PetscScalar p[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSStart{
                 {{r}, {rp, p, v}},
                 work->test, work->record, work->bounds
    },
               work, stream);
  }
  static PetscErrorCode direction(PetscInt n, const PetscScalar r[], const PetscScalar v[], PetscScalar p[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSDirection{
                 {{r, v, p}, {p}}
    },
               work, stream);
  }
  static PetscErrorCode breakdown(PetscInt n, const PetscScalar v[], const PetscScalar rp[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSBreakdown{
                 {{v, rp}, {}}
    },
               work, stream);
  }
  static PetscErrorCode half(PetscInt n, const PetscScalar r[], const PetscScalar v[], PetscScalar s[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSHalf{
                 {{r, v}, {s}},
                 work->sums
    },
               work, stream);
  }
  static PetscErrorCode stabilize(PetscInt n, const PetscScalar t[], const PetscScalar s[], const PetscScalar rp[], TCBCGSWork *work, PetscTCStream stream)
  {
    if (rp)
      return run(n,
                 TCBCGSStabilize<true>{
                   {{t, s, rp}, {}}
      },
                 work, stream);
    return run(n,
               TCBCGSStabilize<false>{
                 {{t, s}, {}}
    },
               work, stream);
  }
  static PetscErrorCode update(PetscInt n, const PetscScalar p[], const PetscScalar s[], const PetscScalar t[], const PetscScalar rp[], PetscScalar x[], PetscScalar r[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSUpdate{
                 {{p, s, t, rp, x}, {x, r}},
                 work->test, work->record, TCBCGSProductSums::of(work)
    },
               work, stream);
  }

  static PetscErrorCode breakdown_scaled(PetscInt n, const PetscScalar u[], const PetscScalar d[], const PetscScalar rp[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream)
  {
    const auto step = [&](auto breakdown) {
      breakdown.in[0]  = u;
      breakdown.in[1]  = d;
      breakdown.in[2]  = rp;
      breakdown.out[0] = v;
      breakdown.mean   = TCBCGSMean::of(n, &work->reduce);
      return run(n, breakdown, work, stream);
    };

    return work->constant ? step(TCBCGSBreakdownScaled<true>{}) : step(TCBCGSBreakdownScaled<false>{});
  }
  static PetscErrorCode breakdown_blocks(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar u[], const PetscScalar rp[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream)
  {
    const auto step = [&](auto breakdown) {
      breakdown.in[0]   = u;
      breakdown.with[0] = rp;
      breakdown.z       = v;
      breakdown.blocks  = *blocks;
      breakdown.mean    = TCBCGSMean::of(n, &work->reduce);
      return run(n, breakdown, work, stream);
    };

    return work->constant ? step(TCBCGSBreakdownBlocks<true>{}) : step(TCBCGSBreakdownBlocks<false>{});
  }
  template <bool single>
  static PetscErrorCode stabilize_scaled_by(PetscInt n, const PetscScalar u[], const PetscScalar d[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream)
  {
    const auto step = [&](auto stabilize) {
      stabilize.in[0] = u;
      stabilize.in[1] = d;
      stabilize.in[2] = s;
      if constexpr (single) stabilize.in[3] = rp;
      stabilize.out[0] = t;
      stabilize.mean   = TCBCGSMean::of(n, &work->reduce);
      return run(n, stabilize, work, stream);
    };

    return work->constant ? step(TCBCGSStabilizeScaled<single, true>{}) : step(TCBCGSStabilizeScaled<single, false>{});
  }
  static PetscErrorCode stabilize_scaled(PetscInt n, const PetscScalar u[], const PetscScalar d[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream)
  {
    return rp ? stabilize_scaled_by<true>(n, u, d, s, rp, t, work, stream) : stabilize_scaled_by<false>(n, u, d, s, NULL, t, work, stream);
  }
  template <bool single>
  static PetscErrorCode stabilize_blocks_by(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar u[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream)
  {
    const auto step = [&](auto stabilize) {
      stabilize.in[0]   = u;
      stabilize.with[0] = s;
      if constexpr (single) stabilize.with[1] = rp;
      stabilize.z      = t;
      stabilize.blocks = *blocks;
      stabilize.mean   = TCBCGSMean::of(n, &work->reduce);
      return run(n, stabilize, work, stream);
    };

    return work->constant ? step(TCBCGSStabilizeBlocks<single, true>{}) : step(TCBCGSStabilizeBlocks<single, false>{});
  }
  static PetscErrorCode stabilize_blocks(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar u[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream)
  {
    return rp ? stabilize_blocks_by<true>(n, blocks, u, s, rp, t, work, stream) : stabilize_blocks_by<false>(n, blocks, u, s, NULL, t, work, stream);
  }
  static PetscErrorCode advance(PetscInt n, const PetscScalar s[], const PetscScalar t[], const PetscScalar v[], PetscScalar x[], PetscScalar r[], PetscScalar p[], TCBCGSWork *work, PetscTCStream stream)
  {
    return run(n,
               TCBCGSAdvance{
                 {{s, t, v, x, p}, {x, r, p}},
                 work->test, work->record, TCBCGSProductSums::of(work)
    },
               work, stream);
  }

  static constexpr TCBCGSSteps table = {Backend::template create<TCBCGSWork>,
                                        Backend::template destroy<TCBCGSWork>,
                                        reset,
                                        start,
                                        direction,
                                        breakdown,
                                        half,
                                        stabilize,
                                        breakdown_scaled,
                                        stabilize_scaled,
                                        breakdown_blocks,
                                        stabilize_blocks,
                                        update,
                                        advance,
                                        Backend::template read<TCBCGSWork, TCBCGSScalars>,
                                        Backend::template mark<TCBCGSWork>,
                                        Backend::template await<TCBCGSWork>};
};
