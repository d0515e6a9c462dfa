/*
   The steps of the conjugate gradient method, written once for all backends. kspsteps.h states what each one does.

   Method         p <- z + b p; w <- A p (not here); a <- z.r / p.w; x <- x + a p; r <- r - a w; the expressions and the order of the tests are those of KSPCG, so that
                  iterates agree with it to rounding and reasons exactly.
   Layout         plain vectors
   Memory traffic bytes of a step (8 n for each vector read or written), and the time at 4.3 TB/s for n = 1,030,301
                    residual          8 n   1.9 us
                    project          16 n   3.8 us   (8 n when z is r)
                    direction        24 n   5.8 us   (first: 16 n; with x 40 n, with x that lacks four updates 64 n)
                    curvature        16 n   3.8 us
                    update           48 n  11.5 us   (without x 24 n)
                    update_scaled    64 n  15.3 us   (without x 40 n)
                    update_blocks    (56 + 8 bs) n for blocks of bs rows, bs = 3: 80 n  19.2 us   (without x (32 + 8 bs) n)
                    settle           24 n   5.8 us   (once a solve; of four 48 n)
                    slope            16 n   3.8 us
                    advance          72 n  17.3 us   (with a z that is not r 80 n)
                    advance_scaled   88 n  21.1 us
                  An iteration without preconditioner is direction + curvature + update = 88 n, 72 n where the product brings p.w (curvature is then part of the update), 64 n where x follows with the next direction, which reads p as well, 58 n where it follows four updates together, 52 n where besides the product makes three directions of four; with a diagonal one 16 n
                  more (40 n were it applied by itself: 24 n, and project). An iteration that carries A p is slope + advance = 88 n, 72 n where the product brings z.s: as much as classic ones with x in time, in one launch less.
                  With blocks of bs rows (8 + 8 bs) n more than without preconditioner (32 + 8 bs were they applied by themselves). 40^3 nodes of 3 unknowns, 192,000 rows: update_blocks without x 10.8 MB, 2.5 us, so that a launch and its last
                  block decide.
   References     M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49(6), 1952
                  Lu, Yuan, Yang, Liu, Tensor Core accelerated conjugate gradient solver on GPUs, J. UESTC 55(2), 2026
*/
#pragma once

#include <../src/ksp/step/fusedstep.h>
#include <../src/ksp/step/kspsteps.h>

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

  PetscTCTest   test;
  TCCGScalars  *record;
  PetscTCBounds bounds;

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
    PetscTCSetBounds(s, TCCGNormSquare(s, test.norm), bounds);
    PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
  }
};

/* The first direction has one input: what p holds before may be anything, NaN included. late: x lacks so many updates. in: z, (old p, (x)) */
template <bool first, int late>
struct TCCGDirection : PetscTCStep<TCCGScalars, first ? 1 : (late ? late + 2 : 2), late ? 2 : 1, 0> {
  static_assert(!first || !late, "x lacks nothing yet");

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const
  {
    if (!PetscTCIsPlain(s.beta) || !(first || PetscTCIsPlain(s.betaold))) { /* else none of these */
      if (PetscTCIsInfOrNan(s.beta)) s.stop = PETSCTC_STOP_BETA_NAN;
      else if (s.beta == 0.0) s.stop = PETSCTC_STOP_BETA_ZERO;
      else if (!first && s.beta * s.betaold < 0.0) s.stop = PETSCTC_STOP_BETA_SIGN;
      if (s.stop != 0.0) return;
    }
    s.b = first ? 0.0 : s.beta / s.betaold;
  }
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T[]) const
  {
    const T z = in[0] - s.shift;

    if constexpr (first) out[0] = z;
    else out[0] = z + s.b * in[late ? late : 1];
    if constexpr (late > 0) {
      out[1] = in[late + 1];
      for (int k = 0; k < late; k++) out[1] = out[1] + s.past[k] * in[1 + k];
    }
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const
  {
    if (late) s.late = 0.0;
  }
};

/* in: p, x */
template <int most>
struct TCCGSettle : PetscTCStep<TCCGScalars, most + 1, 1, 0> {
  static constexpr bool heeds_stop = false;

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T[]) const
  {
    out[0] = in[most];
    for (int k = 0; k < most; k++) out[0] = s.late > k ? out[0] + s.past[k] * in[k] : out[0];
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar[]) const { s.late = 0.0; }
};

/* The end of an update: x has followed, or shall. The place of a is found without an address that is computed, for which all scalars would live in memory */
PETSCTC_HOST_DEVICE void TCCGLeave(TCCGScalars &s, bool late)
{
  for (int k = 0; k < PETSCTC_LATE; k++) {
    if (late && s.late == k) s.past[k] = s.a;
  }
  s.late = late ? s.late + 1.0 : 0.0;
}

PETSCTC_HOST_DEVICE void TCCGEndCurvature(TCCGScalars &s, PetscScalar dpi, bool first)
{
  s.dpiold = s.dpi;
  s.dpi    = dpi;
  if (!PetscTCIsPlain(s.dpi) || !(first || PetscTCIsPlain(s.dpiold))) { /* else none of these */
    if (PetscTCIsInfOrNan(s.dpi)) s.stop = PETSCTC_STOP_DPI_NAN;
    else if (s.dpi == 0.0 || (!first && PetscTCSign(s.dpi) * PetscTCSign(s.dpiold) < 0)) s.stop = PETSCTC_STOP_DPI_SIGN;
    if (s.stop != 0.0) return;
  }
  s.a = s.beta / s.dpi;
}

/* p.w of the product before an update, or NULL: curvature has run. made: direction has not, p is of the product */
struct TCCGProductSums {
  const PetscScalar *sums;
  bool               first, made;

  static TCCGProductSums of(const TCCGWork *work) { return {work->sums, work->first == PETSC_TRUE, work->sums && work->made}; }

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const
  {
    if (made) TCCGDirection<false, 0>{}.begin(s);
    if (sums && s.stop == 0.0) TCCGEndCurvature(s, sums[0], first);
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

/* b of the coming iteration, and then a by curve(), or a stop */
template <class Curve>
PETSCTC_HOST_DEVICE void TCCGBeginIteration(TCCGScalars &s, bool first, Curve curve)
{
  if (first) TCCGDirection<true, 0>{}.begin(s);
  else TCCGDirection<false, 0>{}.begin(s);
  if (s.stop == 0.0) curve();
}

/* Where A p is carried: KSPCG lets NaN pass there, which the norm shows. Signs are compared, not a product that may leave the range of numbers, as KSPCG's may */
PETSCTC_HOST_DEVICE void TCCGEndCarried(TCCGScalars &s, PetscScalar dpi, bool first)
{
  s.dpiold = s.dpi;
  s.dpi    = dpi;
  if (!PetscTCIsPlain(s.dpi) || !(first || PetscTCIsPlain(s.dpiold))) { /* else not this */
    if (s.dpi == 0.0 || (!first && ((s.dpi < 0.0 && s.dpiold > 0.0) || (s.dpi > 0.0 && s.dpiold < 0.0)))) s.stop = PETSCTC_STOP_DPI_SIGN;
    if (s.stop != 0.0) return;
  }
  s.a = s.beta / s.dpi;
}

/* The same with p.Ap as KSPCG has it then, up to rounding: b^2 leaves the range later than beta^2 */
PETSCTC_HOST_DEVICE void TCCGBeginCarried(TCCGScalars &s, bool first)
{
  TCCGBeginIteration(s, first, [&]() { TCCGEndCarried(s, first ? s.zs : s.zs - s.b * s.b * s.dpi, first); });
}

struct TCCGSlope : PetscTCStep<TCCGScalars, 2, 0, 1> {
  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &, const T in[], T[], T sum[]) const
  {
    const T &z = in[0], &s = in[1];

    PetscTCAddProduct(sum[0], z, s);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const { s.zs = sum[0]; }
};

/* The end of an iteration with r.r, and z.r and z.z if z is r */
PETSCTC_HOST_DEVICE void TCCGEndPlain(TCCGScalars &s, bool identity, const PetscScalar sum[], const PetscTCTest &test, TCCGScalars *record)
{
  s.rr = sum[0];
  if (identity) {
    s.betaold = s.beta;
    s.beta    = s.rr;
    s.zz      = s.rr;
  }
  PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
}

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
    TCCGLeave(s, late);
    TCCGEndPlain(s, identity, sum, test, record);
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
  const PetscReal shift = n > 0.0 ? sum[4] / n : 0.0, zz = sum[2] - sum[4] * shift;

  s.shift = shift;
  s.mean += s.shift;
  s.beta = sum[1] - s.shift * sum[3];
  s.zz   = zz < 0.0 ? 0.0 : zz;
}

/* The end of an iteration with a diagonal preconditioner. n: rows, of a projection */
template <bool constant>
PETSCTC_HOST_DEVICE void TCCGEndScaled(TCCGScalars &s, const PetscScalar sum[], PetscReal n, const PetscTCTest &test, TCCGScalars *record)
{
  s.rr      = sum[0];
  s.betaold = s.beta;
  s.beta    = sum[1];
  s.zz      = sum[2];
  if constexpr (constant) TCCGEndProjection(s, sum, n);
  PetscTCEndIteration(s, TCCGNormSquare(s, test.norm), test, record);
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
    TCCGLeave(s, late);
    TCCGEndScaled<constant>(s, sum, n, test, record);
  }
};

template <bool late, bool constant = false>
struct TCCGUpdateBlocks : PetscTCBlockStep<TCCGScalars, late ? 2 : 4, late ? 1 : 2, TCCG_SCALED_SUMS<constant>, 0> {
  PetscReal             n;
  static constexpr bool descends = true;

  PetscTCTest     test;
  TCCGScalars    *record;
  TCCGProductSums product;

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const { product.begin(s); }

  template <class T>
  PETSCTC_HOST_DEVICE T first(const TCCGScalars &s, const T in[], T out[]) const
  {
    const T &w = in[0], &r = in[1];

    out[0] = r + (-s.a) * w;
    if constexpr (!late) out[1] = in[3] + s.a * in[2];
    return out[0];
  }
  template <class T>
  PETSCTC_HOST_DEVICE T second(const TCCGScalars &s, const T &r, const T &product_z, const T[], T sum[]) const
  {
    const T z = constant ? product_z - s.mean : product_z;

    TCCGAddScaled<constant>(r, z, sum);
    return z;
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const
  {
    TCCGLeave(s, late);
    TCCGEndScaled<constant>(s, sum, n, test, record);
  }
};

/* Where z of an iteration that carries A p is found: it is r, a vector of its own, or d r, and then the next one is made */
enum TCCGSource {
  TCCG_Z_IS_R,
  TCCG_Z_APART,
  TCCG_Z_SCALED
};

/* in: s, r, x, (z or d,) (w, p); out: r, x, p, w, (z) */
template <bool first, TCCGSource source>
struct TCCGAdvance : PetscTCStep<TCCGScalars, 3 + (source == TCCG_Z_IS_R ? 0 : 1) + (first ? 0 : 2), source == TCCG_Z_SCALED ? 5 : 4, source == TCCG_Z_SCALED ? TCCG_SCALED_SUMS<false> : 1> {
  static constexpr bool descends = true;

  bool               identity; /* of the z to come */
  PetscTCTest        test;
  TCCGScalars       *record;
  const PetscScalar *zs; /* of the product before, or NULL */

  PETSCTC_HOST_DEVICE void begin(TCCGScalars &s) const
  {
    if (zs) s.zs = zs[0];
    TCCGBeginCarried(s, first);
  }

  template <class T>
  PETSCTC_HOST_DEVICE void element(const TCCGScalars &s, const T in[], T out[], T sum[]) const
  {
    constexpr int carried = source == TCCG_Z_IS_R ? 3 : 4;
    const T      &r       = in[1];
    T             z       = r;

    if constexpr (source == TCCG_Z_APART) z = in[3];
    if constexpr (source == TCCG_Z_SCALED) z = r * in[3];
    out[3] = in[0];
    out[2] = z; /* and not made one operation with what is added to it: the bits are those of separate steps */
    if constexpr (!first) {
      PetscTCAddProduct(out[3], s.b, in[carried]);
      PetscTCAddProduct(out[2], s.b, in[carried + 1]);
    }
    out[0] = r + (-s.a) * out[3];
    out[1] = in[2] + s.a * out[2];
    if constexpr (source == TCCG_Z_SCALED) {
      out[4] = out[0] * in[3];
      TCCGAddScaled<false>(out[0], out[4], sum);
    } else PetscTCAddProduct(sum[0], out[0], out[0]);
  }
  PETSCTC_HOST_DEVICE void end(TCCGScalars &s, const PetscScalar sum[]) const
  {
    if constexpr (source == TCCG_Z_SCALED) TCCGEndScaled<false>(s, sum, 0.0, test, record);
    else TCCGEndPlain(s, identity, sum, test, record);
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
  static PetscErrorCode reset(TCCGWork *work, PetscTCStream stream) { return run(0, PetscTCResetStep<TCCGScalars>{}, work, stream); }
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
                 work->test, work->record, work->bounds
    },
               work, stream);
  }
  template <int late>
  static PetscErrorCode direction_late(PetscInt n, const PetscScalar z[], const PetscScalar *const old[], PetscScalar p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    TCCGDirection<false, late> step = {};

    step.in[0] = z;
    for (int k = 0; k < PetscMax(late, 1); k++) step.in[1 + k] = old[k];
    step.out[0] = p;
    if constexpr (late > 0) {
      step.in[late + 1] = x;
      step.out[1]       = x;
    }
    return run(n, step, work, stream);
  }
  static PetscErrorCode direction(PetscInt n, PetscBool first, const PetscScalar z[], PetscInt many, const PetscScalar *const old[], PetscScalar p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    PetscFunctionBegin;
    PetscCheck(first || many == 1 || (x && many == PETSCTC_LATE), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "x lacks %" PetscInt_FMT " updates, which must be 1 or %d", many, (int)PETSCTC_LATE);
    if (first)
      PetscCall(run(n,
                    TCCGDirection<true, 0>{
                      {{z}, {p}}
      },
                    work, stream));
    else if (!x) PetscCall(direction_late<0>(n, z, old, p, x, work, stream));
    else if (many == 1) PetscCall(direction_late<1>(n, z, old, p, x, work, stream));
    else PetscCall(direction_late<PETSCTC_LATE>(n, z, old, p, x, work, stream));
    PetscFunctionReturn(PETSC_SUCCESS);
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
    const TCCGProductSums product = TCCGProductSums::of(work);

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
    const TCCGProductSums product = TCCGProductSums::of(work);
    const PetscReal       rows    = PetscTCRowsAcross(n, &work->reduce);

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
  template <bool constant>
  static PetscErrorCode update_blocks_with(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar p[], const PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream)
  {
    const TCCGProductSums product = TCCGProductSums::of(work);
    const PetscReal       rows    = PetscTCRowsAcross(n, &work->reduce);

    return x ? run(n,
                   TCCGUpdateBlocks<false, constant>{
                     {{{w, r, p, x}, {r, x}}, {}, z, *blocks},
                     rows, work->test, work->record, product
    },
                   work, stream)
             : run(n, TCCGUpdateBlocks<true, constant>{{{{w, r}, {r}}, {}, z, *blocks}, rows, work->test, work->record, product}, work, stream);
  }
  static PetscErrorCode update_blocks(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar p[], const PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream)
  {
    return work->constant ? update_blocks_with<true>(n, blocks, p, w, x, r, z, work, stream) : update_blocks_with<false>(n, blocks, p, w, x, r, z, work, stream);
  }
  static PetscErrorCode slope(PetscInt n, const PetscScalar z[], const PetscScalar s[], TCCGWork *work, PetscTCStream stream)
  {
    return run(n,
               TCCGSlope{
                 {{z, s}, {}}
    },
               work, stream);
  }
  /* z: or d */
  template <TCCGSource source>
  static PetscErrorCode advance_from(PetscInt n, PetscBool first, bool identity, const PetscScalar s[], const PetscScalar z[], PetscScalar p[], PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar to[], TCCGWork *work, PetscTCStream stream)
  {
    const auto step = [&](auto advance) {
      constexpr bool apart = source != TCCG_Z_IS_R;

      advance.in[0] = s;
      advance.in[1] = r;
      advance.in[2] = x;
      if constexpr (apart) advance.in[3] = z;
      if constexpr (decltype(advance)::inputs > 4) { /* not first */
        advance.in[apart ? 4 : 3] = w;
        advance.in[apart ? 5 : 4] = p;
      }
      advance.out[0] = r;
      advance.out[1] = x;
      advance.out[2] = p;
      advance.out[3] = w;
      if constexpr (source == TCCG_Z_SCALED) advance.out[4] = to;
      advance.identity = identity;
      advance.test     = work->test;
      advance.record   = work->record;
      advance.zs       = work->sums;
      return run(n, advance, work, stream);
    };

    return first ? step(TCCGAdvance<true, source>{}) : step(TCCGAdvance<false, source>{});
  }
  static PetscErrorCode advance(PetscInt n, PetscBool first, PetscBool identity, const PetscScalar z[], const PetscScalar s[], PetscScalar p[], PetscScalar w[], PetscScalar x[], PetscScalar r[], TCCGWork *work, PetscTCStream stream)
  {
    return z ? advance_from<TCCG_Z_APART>(n, first, identity, s, z, p, w, x, r, NULL, work, stream) : advance_from<TCCG_Z_IS_R>(n, first, identity, s, NULL, p, w, x, r, NULL, work, stream);
  }
  static PetscErrorCode advance_scaled(PetscInt n, PetscBool first, const PetscScalar s[], const PetscScalar d[], PetscScalar p[], PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream)
  {
    return advance_from<TCCG_Z_SCALED>(n, first, false, s, d, p, w, x, r, z, work, stream);
  }
  template <int most>
  static PetscErrorCode settle_most(PetscInt n, const PetscScalar *const p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    TCCGSettle<most> step = {};

    for (int k = 0; k < most; k++) step.in[k] = p[k];
    step.in[most] = x;
    step.out[0]   = x;
    return run(n, step, work, stream);
  }
  static PetscErrorCode settle(PetscInt n, PetscInt many, const PetscScalar *const p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream)
  {
    return many == 1 ? settle_most<1>(n, p, x, work, stream) : settle_most<PETSCTC_LATE>(n, p, x, work, stream);
  }

  static constexpr TCCGSteps table =
    {Backend::template create<TCCGWork>, Backend::template destroy<TCCGWork>, reset, residual, project, direction, curvature, update, update_scaled, update_blocks, slope, advance, advance_scaled, settle, Backend::template read<TCCGWork, TCCGScalars>,
     Backend::template mark<TCCGWork>,   Backend::template await<TCCGWork>};
};
