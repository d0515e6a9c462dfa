/*
   The fused steps of KSPTCCG and KSPTCBCGS: vector updates and the reductions that follow them in one pass, scalars in the memory of the vectors.
   Raw pointers, sizes and a stream: no PETSc object. Host and CUDA steps have one signature and are reached through a table.

   Scalars never visit the host inside an iteration: a step that reduces also derives what the next step needs (a = beta/dpi, ...) and sets `stop` when PETSc's
   solver would leave the loop there. With `stop` set every later step leaves all vectors and scalars as they are (the iterate is frozen), so the host may look once an
   iteration, find the reason, and the solution is the one PETSc would have returned; for CG where x is updated late, once settle has run.

   Nor need the host look before it begins the next iterations. The step that ends an iteration then tests the norm as KSPConvergedDefault() does, sets `stop` where that ends the solve, and leaves a
   copy of the scalars, a record, in the host's memory. The host goes through the records in their order, long after, and does with each what it would have done at the time. An iteration that is
   stopped before its end leaves no record: its scalars are those that read() brings, since nothing changes them any more.
*/
#pragma once

#include <../src/vec/vecreduce.h>

typedef enum {
  PETSCTC_STOP_NONE = 0,
  PETSCTC_STOP_BETA_ZERO,  /* CG: beta == 0 */
  PETSCTC_STOP_BETA_SIGN,  /* CG: beta changed its sign: indefinite preconditioner */
  PETSCTC_STOP_BETA_NAN,   /* CG: beta is Inf or NaN */
  PETSCTC_STOP_DPI_NAN,    /* CG: p.Ap is Inf or NaN */
  PETSCTC_STOP_DPI_SIGN,   /* CG: p.Ap is 0 or changed its sign: indefinite matrix */
  PETSCTC_STOP_D1_NAN,     /* BCGS: v.rp is Inf or NaN */
  PETSCTC_STOP_D1_ZERO,    /* BCGS: v.rp == 0 */
  PETSCTC_STOP_D2_ZERO,    /* BCGS: t.t == 0 */
  PETSCTC_STOP_RHO_ZERO,   /* BCGS: rho == 0; found at the end of an iteration that leaves a record, else by the host */
  PETSCTC_STOP_TEST,       /* the norm ends the solve */
  PETSCTC_STOP_MISSING,    /* sums of another process have not come */
  PETSCTC_STOP_UNWRITTEN,  /* in a record only: the steps have not come so far */
  PETSCTC_STOP_METHOD = 64 /* from here on: a listed method's own, within an iteration (src/ksp/method) */
} PetscTCStop;

enum {
  PETSCTC_MAX_AHEAD = 16, /* iterations begun behind the one that the host looks at next */
  PETSCTC_MAX_CALL  = 64, /* iterations of one call of a kernel that does several; the next such call may be under way too. More than PETSCTC_MAX_AHEAD */
  PETSCTC_RECORDS   = 2 * PETSCTC_MAX_CALL,
  PETSCTC_LATE      = 4 /* CG: updates that x may follow together */
};

enum {
  PETSCTC_MAX_COLUMNS = 8 /* of a block: what the product takes in one pass */
};

enum {
  PETSCTC_MAX_BLOCK = 16 /* rows */
};

/* Which sum the norm is the root of */
typedef enum {
  PETSCTC_NORM_NONE, /* none, or none in this iteration: no test */
  PETSCTC_NORM_RR,
  PETSCTC_NORM_ZZ,  /* CG */
  PETSCTC_NORM_BETA /* CG: of its absolute value */
} PetscTCNorm;

/* The solve goes on while the norm is above the one and below the other bound, and neither Inf nor NaN */
struct PetscTCTest {
  PetscTCNorm norm;
  PetscReal   above, below;
  PetscBool   given = PETSC_FALSE; /* the bounds are in the scalars, where the first norm has set them */
};

/* How the first norm sets them, as KSPConvergedDefault() does where the guess is zero: above <- max(rtol norm, atol), below <- divtol norm */
typedef struct {
  PetscBool sets; /* does it? */
  PetscReal rtol, atol, divtol;
} PetscTCBounds;

/* Square blocks on the diagonal, of a preconditioner that steps apply in their pass. Lanes read consecutive addresses: column k of all blocks is a vector, d[k * stride + row] */
typedef struct {
  PetscInt             size;   /* rows of a block, at most PETSCTC_MAX_BLOCK; n is a multiple of it, unless there are .. */
  PetscInt             stride; /* at least n; even, lest pairs of elements are read one by one */
  const PetscScalar   *d;
  const unsigned char *rows; /* .. blocks of several sizes, up to this one: [n], of each row its number in its block and 16 times the block's rows less one; columns that a block does not have are anything. NULL: all of the same size */
} PetscTCBlocks;

/* ---- CG. All fields are doubles, so that one copy brings them to the host */
typedef struct {
  PetscReal beta, betaold;      /* z.r of this and of the previous iteration */
  PetscReal dpi, dpiold;        /* p.Ap likewise */
  PetscReal a, b;               /* beta/dpi, beta/betaold */
  PetscReal rr, zz;             /* r.r, z.z */
  PetscReal mean, shift;        /* with a projection: what z lacks of d r in every element; what it has too much still, and the next direction takes off. Else 0 */
  PetscReal zs;                 /* z.A z, where A p is carried */
  PetscReal late;               /* so many updates have left x to a later direction, or to settle */
  PetscReal past[PETSCTC_LATE]; /* their a, the earliest first */
  PetscReal above, below;       /* bounds of the test, if the first norm has set them */
  PetscReal stop;               /* a PetscTCStop */
} TCCGScalars;

typedef struct {
  PetscTCReduceWork  reduce;
  TCCGScalars       *s;       /* in the memory of the vectors; nothing before reset */
  PetscBool          tensor;  /* reductions fold on the Tensor Core. Set by the caller, at any time */
  TCCGScalars       *records; /* [PETSCTC_RECORDS + 1] in the host's memory, where the steps can write; the last is where read() receives the scalars */
  PetscTCEvent      *events;  /* CUDA: [PETSCTC_RECORDS] */
  PetscTCTest        test;    /* of the step that ends the coming iteration, and where it leaves the scalars; NULL: no test, no record. Set by the caller, at any time */
  TCCGScalars       *record;
  PetscTCBounds      bounds;   /* of project. Set by the caller, at any time */
  const PetscScalar *sums;     /* p.w, or z.s, of the product that the coming update, or advance, follows, in the memory of the vectors: then that begins with what curvature, or slope, does. NULL: that has run. Set by the caller, at any time */
  PetscBool          first;    /* for that, as curvature's */
  PetscBool          made;     /* with sums: the product has made p too, so that the coming update begins with what direction does to the scalars, not first and x NULL there. Set by the caller, at any time */
  PetscBool          constant; /* update_scaled: the preconditioner ends with the projection against a constant null space. Set by the caller, at any time */
} TCCGWork;

typedef struct {
  /* create leaves `tensor` alone. destroy of a work that is all zero, or twice, does nothing */
  PetscErrorCode (*create)(TCCGWork *work);
  PetscErrorCode (*destroy)(TCCGWork *work);
  /* Sets all scalars to 0 (stop included) */
  PetscErrorCode (*reset)(TCCGWork *work, PetscTCStream stream);
  /* rr <- r.r */
  PetscErrorCode (*residual)(PetscInt n, const PetscScalar r[], TCCGWork *work, PetscTCStream stream);
  /* betaold <- beta; beta <- z.r; zz <- z.z; shift <- 0; bounds of the test if work->bounds sets them. z may be r. Does nothing once stopped */
  PetscErrorCode (*project)(PetscInt n, const PetscScalar z[], const PetscScalar r[], TCCGWork *work, PetscTCStream stream);
  /* b <- first ? 0 : beta/betaold; p <- z - shift + b p (first: p <- z - shift, p's old content is not read). Before that: stop <- BETA_NAN, BETA_ZERO, or (not first) BETA_SIGN if beta*betaold < 0, in this order.
     old: not first, the p of so many iterations before, the last one last, which may be p.
     x: not first, and as many updates before had none, one or PETSCTC_LATE: x <- x + past[0] old[0] + ..; late <- 0. NULL: that is not yet to be made up for, and there is one old p */
  PetscErrorCode (*direction)(PetscInt n, PetscBool first, const PetscScalar z[], PetscInt many, const PetscScalar *const old[], PetscScalar p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream);
  /* dpiold <- dpi; dpi <- p.w; stop <- DPI_NAN, or DPI_SIGN if dpi == 0 or (not first) sign(dpi) sign(dpiold) < 0; else a <- beta/dpi */
  PetscErrorCode (*curvature)(PetscInt n, PetscBool first, const PetscScalar p[], const PetscScalar w[], TCCGWork *work, PetscTCStream stream);
  /* (What direction does to the scalars if work->made is, and what curvature does if work->sums is set.) x <- x + a p, or past[late] <- a, late <- late + 1 where x is NULL; r <- r - a w; rr <- r.r; identity: z is r, so also betaold <- beta, beta <- rr, zz <- rr */
  PetscErrorCode (*update)(PetscInt n, PetscBool identity, const PetscScalar p[], const PetscScalar w[], PetscScalar x[], PetscScalar r[], TCCGWork *work, PetscTCStream stream);
  /* The two of an iteration with a diagonal preconditioner: (curvature and x likewise) x <- x + a p; r <- r - a w; z <- d r; rr <- r.r; then as project. z may be w.
     work->constant: z <- d r - mean; shift <- the mean of that, and mean <- mean + shift, which is then the mean of d r; beta and zz are those of z - shift. From one iteration to the next the mean hardly changes where it is large,
     so nothing cancels in the sums */
  PetscErrorCode (*update_scaled)(PetscInt n, const PetscScalar p[], const PetscScalar w[], const PetscScalar d[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream);
  /* The same with blocks: z <- D r. Each element is added up from the first column to the last, as PCPBJACOBI and PCVPBJACOBI do on the host */
  PetscErrorCode (*update_blocks)(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar p[], const PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream);
  /* Iterations that carry A p (KSPCGUseSingleReduction()): zs <- z.s, where s is A z */
  PetscErrorCode (*slope)(PetscInt n, const PetscScalar z[], const PetscScalar s[], TCCGWork *work, PetscTCStream stream);
  /* In place of direction, product with p, curvature and update: (what slope does if work->sums is set; stops and b as in direction;) dpiold <- dpi; dpi <- first ? zs : zs - b^2 dpi; stop <- DPI_SIGN if dpi == 0 or (not first) the signs of dpi and dpiold differ, else a <- beta/dpi;
     p <- z + b p; w <- s + b w (first: z and s, the old ones are not read); x <- x + a p; r <- r - a w; and then as update. z: NULL if it is r */
  PetscErrorCode (*advance)(PetscInt n, PetscBool first, PetscBool identity, const PetscScalar z[], const PetscScalar s[], PetscScalar p[], PetscScalar w[], PetscScalar x[], PetscScalar r[], TCCGWork *work, PetscTCStream stream);
  /* The same with a diagonal preconditioner, where z is d r, before and behind it; then as update_scaled without projection */
  PetscErrorCode (*advance_scaled)(PetscInt n, PetscBool first, const PetscScalar s[], const PetscScalar d[], PetscScalar p[], PetscScalar w[], PetscScalar x[], PetscScalar r[], PetscScalar z[], TCCGWork *work, PetscTCStream stream);
  /* x <- x + past[0] p[0] + .., of the updates that it lacks, at most `many`, which is one or PETSCTC_LATE; late <- 0. Stopped or not */
  PetscErrorCode (*settle)(PetscInt n, PetscInt many, const PetscScalar *const p[], PetscScalar x[], TCCGWork *work, PetscTCStream stream);
  /* Brings the scalars to the host; returns when they are there */
  PetscErrorCode (*read)(const TCCGWork *work, TCCGScalars *host, PetscTCStream stream);
  /* Marks that what has been asked for so far is what await() of the same number, 0 <= number < PETSCTC_RECORDS, waits for */
  PetscErrorCode (*mark)(const TCCGWork *work, int number, PetscTCStream stream);
  PetscErrorCode (*await)(const TCCGWork *work, int number);
} TCCGSteps;

PETSC_INTERN const TCCGSteps TCCGSteps_Host;
#if PETSCTC_HAVE_CUDA
PETSC_INTERN const TCCGSteps TCCGSteps_CUDA;
#endif

/* ---- BiCGSTAB */
typedef struct {
  PetscReal rho, rhoold;     /* r.rp of this and of the previous iteration */
  PetscReal alpha, beta;     /* rho/d1; (rho/rhoold) (alpha/omegaold) */
  PetscReal omega, omegaold; /* d1/d2 */
  PetscReal d1;              /* v.rp */
  PetscReal ts, tt;          /* t.s, t.t */
  PetscReal rr;              /* r.r */
  PetscReal rhonext;         /* r.rp after the update: rho of the next iteration */
  PetscReal vmean, tmean;    /* with a projection: what v and t have too much in every element, which all that read them take off. Else 0 */
  PetscReal advanced;        /* 1: advance has made p of the next iteration, whose scalars come with its breakdown */
  PetscReal above, below;    /* bounds of the test, if the first norm has set them */
  PetscReal stop;            /* a PetscTCStop */
} TCBCGSScalars;

typedef struct {
  PetscTCReduceWork  reduce;
  TCBCGSScalars     *s;
  PetscBool          tensor;
  TCBCGSScalars     *records; /* [PETSCTC_RECORDS + 1] in the host's memory, where the steps can write; the last is where read() receives the scalars */
  PetscTCEvent      *events;  /* CUDA: [PETSCTC_RECORDS] */
  PetscTCTest        test;    /* of the step that ends the coming iteration, and where it leaves the scalars; NULL: no test, no record. Set by the caller, at any time */
  TCBCGSScalars     *record;
  PetscTCBounds      bounds;   /* of start. Set by the caller, at any time */
  const PetscScalar *sums;     /* of the product that the coming half (v.rp), update (s.t, t.t) or advance (s.t, t.t, rp.t, rp.s) follows, in the memory of the vectors, for breakdown or stabilize as its part. NULL: that has run. Set by the caller */
  const PetscScalar *made;     /* v.rp, where the product of which sums is has made s, so that the coming update or advance begins with what half does to the scalars, or NULL. Set by the caller, at any time */
  PetscBool          constant; /* the steps with a diagonal preconditioner or with blocks: that ends with the projection against a constant null space. Set by the caller, at any time */
} TCBCGSWork;

typedef struct {
  PetscErrorCode (*create)(TCBCGSWork *work);
  PetscErrorCode (*destroy)(TCBCGSWork *work);
  /* stop <- 0, rho = alpha = omega = 1 (so that rhoold = alpha = omegaold = 1 in the first direction), the rest 0 */
  PetscErrorCode (*reset)(TCBCGSWork *work, PetscTCStream stream);
  /* rr <- r.r, rp <- r, rhonext <- r.r, p <- 0, v <- 0; bounds of the test if work->bounds sets them */
  PetscErrorCode (*start)(PetscInt n, const PetscScalar r[], PetscScalar rp[], PetscScalar p[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream);
  /* rhoold <- rho; rho <- rhonext; omegaold <- omega; beta <- (rho/rhoold)(alpha/omegaold); p <- r - omegaold beta (v - vmean) + beta p */
  PetscErrorCode (*direction)(PetscInt n, const PetscScalar r[], const PetscScalar v[], PetscScalar p[], TCBCGSWork *work, PetscTCStream stream);
  /* (If advanced is set: the scalars of direction; advanced <- 0.) d1 <- v.rp; vmean <- 0; stop <- D1_NAN, D1_ZERO; else alpha <- rho/d1 */
  PetscErrorCode (*breakdown)(PetscInt n, const PetscScalar v[], const PetscScalar rp[], TCBCGSWork *work, PetscTCStream stream);
  /* (What breakdown does if work->sums is set.) s <- r - alpha (v - vmean) */
  PetscErrorCode (*half)(PetscInt n, const PetscScalar r[], const PetscScalar v[], PetscScalar s[], TCBCGSWork *work, PetscTCStream stream);
  /* ts <- t.s, tt <- t.t; tmean <- 0; stop <- D2_ZERO if tt == 0; else omega <- ts/tt, and unless rp is NULL rhonext <- s.rp - omega t.rp, for advance */
  PetscErrorCode (*stabilize)(PetscInt n, const PetscScalar t[], const PetscScalar s[], const PetscScalar rp[], TCBCGSWork *work, PetscTCStream stream);
  /* The two with a diagonal preconditioner from the left: v <- d u, breakdown; t <- d u, stabilize.
     work->constant: vmean <- the mean of v, and the scalars are those of v - vmean; tmean of t likewise */
  PetscErrorCode (*breakdown_scaled)(PetscInt n, const PetscScalar u[], const PetscScalar d[], const PetscScalar rp[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream);
  PetscErrorCode (*stabilize_scaled)(PetscInt n, const PetscScalar u[], const PetscScalar d[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream);
  /* The same with blocks: v <- D u, t <- D u. v and t are not u */
  PetscErrorCode (*breakdown_blocks)(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar u[], const PetscScalar rp[], PetscScalar v[], TCBCGSWork *work, PetscTCStream stream);
  PetscErrorCode (*stabilize_blocks)(PetscInt n, const PetscTCBlocks *blocks, const PetscScalar u[], const PetscScalar s[], const PetscScalar rp[], PetscScalar t[], TCBCGSWork *work, PetscTCStream stream);
  /* (What half does to the scalars if work->made is, and what stabilize does if work->sums is set.) x <- x + alpha p + omega s; r <- s - omega (t - tmean); rr <- r.r; rhonext <- r.rp */
  PetscErrorCode (*update)(PetscInt n, const PetscScalar p[], const PetscScalar s[], const PetscScalar t[], const PetscScalar rp[], PetscScalar x[], PetscScalar r[], TCBCGSWork *work, PetscTCStream stream);
  /* In place of update and the next direction, with rhonext of stabilize: (what half does to the scalars if work->made is, and what stabilize does if work->sums is set.) x <- x + alpha p + omega s; r <- s - omega (t - tmean); rr <- r.r; beta <- that of the next direction; p <- r - omega beta (v - vmean) + beta p; advanced <- 1: the
     other scalars of the direction come with the next breakdown */
  PetscErrorCode (*advance)(PetscInt n, const PetscScalar s[], const PetscScalar t[], const PetscScalar v[], PetscScalar x[], PetscScalar r[], PetscScalar p[], TCBCGSWork *work, PetscTCStream stream);
  PetscErrorCode (*read)(const TCBCGSWork *work, TCBCGSScalars *host, PetscTCStream stream);
  PetscErrorCode (*mark)(const TCBCGSWork *work, int number, PetscTCStream stream);
  PetscErrorCode (*await)(const TCBCGSWork *work, int number);
} TCBCGSSteps;

PETSC_INTERN const TCBCGSSteps TCBCGSSteps_Host;
#if PETSCTC_HAVE_CUDA
PETSC_INTERN const TCBCGSSteps TCBCGSSteps_CUDA;
#endif
