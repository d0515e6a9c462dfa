/*
   What the resident solvers share: Krylov methods of which one call does many iterations without the host, matrix (ksptcform.h) and vectors in the shared memory of one cooperative kernel. Raw pointers,
   sizes and a stream: no PETSc object.

   Scalars, records, stops and the meaning of an iteration are those of kspsteps.h: before and after a call, vectors and scalars are what the steps would have left after as many iterations, up to the
   rounding of sums. How iterations are cut into calls changes no bit.

   A call writes these vectors, the scalars and the records at its end only, and then all of its blocks do or none: until then it writes memory of its own, and vectors that say nothing between two iterations. If a block gives up
   waiting for the others (sum_barrier.cuh), everything is as it was before the call. So the steps can go on from there. Calls behind it do nothing; work->late says who it was.
*/
#pragma once

#include <cmath>
#include <cstring>
#include <../src/ksp/step/fusedstep.h>
#include <../src/ksp/resident/ksptcform.h>
#include <../src/ksp/resident/ksptcwindowed.h>
#include <../src/ksp/resident/lateblock.h>

/* Iterations first + 1 .. last of a solve. The norm after iteration `it` is computed from computed_from on and compared with the bounds of `test` from compared_from on; between them it ends the solve
   if it is Inf or NaN. Iteration `it` leaves records[it % PETSCTC_RECORDS], when the call is over; last - first <= PETSCTC_RECORDS */
template <class Scalars>
struct KSPTCChunk {
  PetscInt    first, last;
  PetscInt    computed_from, compared_from;
  PetscTCTest test;
  Scalars    *records;
};

/* The test after iteration `it`; asked: that of the call, maybe with the bounds from the scalars in it */
template <class Scalars>
PETSCTC_HOST_DEVICE PetscTCTest KSPTCTestAt(const KSPTCChunk<Scalars> &chunk, PetscInt it, const PetscTCTest &asked)
{
  PetscTCTest test = asked;

  if (it < chunk.compared_from) {
    test.above = -1.0;
    test.below = HUGE_VAL;
    test.given = PETSC_FALSE;
  }
  if (it < chunk.computed_from) test.norm = PETSCTC_NORM_NONE;
  return test;
}

template <class Scalars>
PETSCTC_HOST_DEVICE PetscTCTest KSPTCTestAt(const KSPTCChunk<Scalars> &chunk, PetscInt it)
{
  return KSPTCTestAt(chunk, it, chunk.test);
}

/* Squares of a norm to which the test surely says nothing, known before there is one: then neither root nor comparison of numbers is in the way of the threads that wait. Those whose upper words lie between these */
typedef struct {
  int32_t above, below;
} KSPTCPassing;

PETSCTC_HOST_DEVICE int32_t KSPTCUpperWord(double x)
{
#if defined(__CUDA_ARCH__)
  return __double2hiint(x);
#else
  int64_t bits;

  memcpy(&bits, &x, sizeof(bits));
  return (int32_t)(bits >> 32);
#endif
}

/* Of these bounds, whichever iteration it is: without comparison more would pass. A bound that is NaN ends nothing. What rounding or range might decide does not pass */
PETSCTC_HOST_DEVICE KSPTCPassing KSPTCPassingOf(double above, double below)
{
  const double margin = 1.001, range = 1e-280;
  const double least = above > 0.0 ? margin * (above * above) : 0.0, most = below <= 0.0 ? 0.0 : below * below / margin;

  return {KSPTCUpperWord(least > range ? least : range), KSPTCUpperWord(most < 1.0 / range ? most : 1.0 / range)};
}

PETSCTC_HOST_DEVICE bool KSPTCPasses(const KSPTCPassing &passing, double square)
{
  const int32_t word = KSPTCUpperWord(square);

  return word > passing.above && word < passing.below;
}

/* What kernels keep of the test: the scalars' bounds too do not change within a call */
struct KSPTCAsked {
  PetscTCNorm  norm;
  PetscReal    above, below;
  KSPTCPassing passing;

  template <class Scalars>
  PETSCTC_HOST_DEVICE void set(const PetscTCTest &asked, const Scalars &s)
  {
    const PetscTCTest test = PetscTCTestOf(asked, s);

    norm    = test.norm;
    above   = test.above;
    below   = test.below;
    passing = KSPTCPassingOf(above, below);
  }
  PETSCTC_HOST_DEVICE PetscTCTest test() const { return {norm, above, below}; }
};

/* A number that blocks of a cooperative kernel have from another one, in one access with what tells for which barrier it is (sum_barrier.cuh) */
typedef struct {
  PetscScalar number;
  uint64_t    tag;
} PetscTCTagged;

/* Two sums of a block, likewise, as bits of which the lowest tell that (sum_barrier.cuh) */
typedef struct {
  uint64_t low, high;
} PetscTCPair;

/* Seconds that a block waits for the others: a million times what a barrier takes, and only time in which the kernel runs counts. Blocks run all at once or not at all, so nothing but a defect or a debugger makes one wait so long */
constexpr PetscReal KSPTC_PATIENCE = 2.0;

/* How a call goes wrong that a test has asked for */
typedef enum {
  KSPTC_FAULT_NONE,
  KSPTC_FAULT_ABSENT, /* the last block leaves at once, so that the others wait in vain. On the host nothing is done */
  KSPTC_FAULT_LATE    /* a block gives up behind the last barrier, when all iterations have been done. On the host as above */
} KSPTCFault;

typedef struct {
  PetscBool         cuda;
  PetscTCTagged    *published; /* CUDA: of every row, what blocks that have it as a ghost need: one number, or two */
  PetscTCPair      *sums;      /* CUDA */
  unsigned         *verdict;   /* CUDA: how the last two calls, which take turns, have ended (sum_barrier.cuh) */
  PetscInt          calls;     /* CUDA: launched */
  uint64_t         *tag;       /* CUDA: the last tag given */
  void             *records;   /* CUDA: [PETSCTC_RECORDS] scalars of the method */
  PetscTCLateBlock *late;      /* in the host's memory, on a device page-locked */
  PetscReal         patience;  /* seconds that a block waits for the others while the kernel runs */
  PetscScalar      *vectors;   /* of the method, if it has such */
  KSPTCFault        fault;     /* for tests: how a call goes wrong .. */
  PetscInt          fault_in;  /* .. the so manieth from now on, 0: none */
  PetscCount        build;     /* CUDA: of a layout that has been looked at, with the values it has .. */
  PetscBool         windowed;  /* .. and is one for windows (ksptcwindowed.cuh) .. */
  KSPTCWindows      windows;   /* .. these .. */
  void             *slots;     /* .. whose blocks' slots these are, so many bytes */
  size_t            slot_bytes;
  PetscScalar      *values;  /* .. behind them, those of all entries, where slots are no constants */
  PetscBool         in_part; /* CUDA: of a form of which blocks have no room for all slices */

  const void *prepared; /* the kernel that has been prepared last, and for which grid */
  unsigned    prepared_blocks;
  size_t      prepared_shared;
} KSPTCResidentWork;

/* On a device each method has its own create. Destroy takes what a failed create has left. can: as there (tccgresident.h) */
PETSC_INTERN PetscErrorCode KSPTCResidentCreate_Host(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
PETSC_INTERN PetscErrorCode KSPTCResidentDestroy_Host(KSPTCResidentWork *work);
PETSC_INTERN PetscErrorCode KSPTCResidentDestroy_CUDA(KSPTCResidentWork *work);
/* An error if a block has given up waiting; to be asked once the call is over. The work is then of no more use */
PETSC_INTERN PetscErrorCode KSPTCResidentCheck(const KSPTCResidentWork *work);
/* On the host: does this call, whose first iteration is first + 1, do nothing, since a block has given up, or is to? */
PETSC_INTERN PetscBool KSPTCGivesUp_Host(PetscInt first, KSPTCResidentWork *work);

static inline PetscBool KSPTCHasGivenUp(const KSPTCResidentWork *work)
{
  return (PetscBool)(work->late && work->late->late);
}

/* How the call that comes next is to go wrong */
static inline KSPTCFault KSPTCNextFault(KSPTCResidentWork *work)
{
  return work->fault_in > 0 && --work->fault_in == 0 ? work->fault : KSPTC_FAULT_NONE;
}
