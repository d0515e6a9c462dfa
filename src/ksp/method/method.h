/*
   A Krylov method as a list: what a new method has to say, and all that the runners know of it.

   A method M is a struct of types and constants. An iteration is a list of items, each of which is a pass over vectors, a product of the matrix or an application of the preconditioner.
   The same list is run by launches, one an item, on the host and on a GPU (listmethod.h), and by one kernel that keeps vectors and matrix on the chip (chip.cuh), whose twin on the host is the launches with the
   product of the resident form (host.h). docs/developer.md shows how to add one; tccr is the example.

     Scalars              a struct of doubles, with the last fields above, below, stop (kspsteps.h)
     VECTORS              so many vectors, numbered from 0
     Passes               KSPTCPassTypes<..>: all passes of all lists
     List<apply, extra>   KSPTCList<..>: the items of an iteration with a preconditioner that is applied so; extra: with what the method needs for some norms only
     rows(apply)          a bit for each vector that a block has of its rows on the chip, without what is extra
     ghosts(apply)        and for each that it has of its ghosts too. What is multiplied is one of them
     MULTIPLIED           a bit for each vector that an item multiplies
     PUBLISHED            those vectors of ghosts, results of products, that come from the blocks that have them as rows. The others are made by the passes, with the same bits: all that such a pass reads is a vector of ghosts
     INPUTS               a bit for each vector that no pass writes

   A pass P is a step (fusedstep.h) that derives from KSPTCPass. Its begin() does nothing: end() derives all scalars. It has

     from[], to[]         the numbers of its vectors, in the order of in[] and out[]
     ends                 does it end an iteration, with the norm's test and the record? The last item of a list does
*/
#pragma once

#include <../src/ksp/step/fusedstep.h>
#include <../src/ksp/resident/ksptcresident.h>
#include <type_traits>

/* How z = B r is had */
typedef enum {
  KSPTC_APPLY_NONE,   /* z is r */
  KSPTC_APPLY_SCALED, /* by a pass, from a vector that is the diagonal of B */
  KSPTC_APPLY_APART   /* by KSP_PCApply(), between two passes */
} KSPTCApply;

template <class S, int Inputs, int Outputs, int Sums>
struct KSPTCPass : PetscTCStep<S, Inputs, Outputs, Sums> {
  static constexpr bool ends = false;

  PetscTCTest test;
  S          *record; /* NULL: nobody looks later. Else of one that ends an iteration */
};

/* ---- items */

template <class P>
struct KSPTCPassItem {
};

/* to <- A from, and then a pass that writes nothing */
template <int From, int To, class P>
struct KSPTCProductItem : KSPTCPassItem<P> {
  static_assert(P::outputs == 0, "the pass behind a product adds up alone");
};

/* to <- B from */
template <int From, int To>
struct KSPTCPCItem {
};

template <class... Items>
struct KSPTCList {
  /* f(item) for each in turn, until one fails */
  template <class F>
  static PetscErrorCode each(F f)
  {
    PetscErrorCode ierr = PETSC_SUCCESS;

    (void)(((ierr = f(Items{})) == PETSC_SUCCESS) && ...);
    return ierr;
  }
#if defined(__CUDACC__) || defined(__CUDA_ARCH__) /* the latter alone: tests/emulation */
  /* The same in a kernel, until one returns false */
  template <class F>
  __device__ __forceinline__ static bool all(F f)
  {
    return (f(Items{}) && ...);
  }
#endif
};

template <class... P>
struct KSPTCPassTypes {
  static constexpr int count = sizeof...(P);

  /* The number of a pass */
  template <class Which>
  static constexpr int of()
  {
    int k = 0, at = -1;

    ((at = std::is_same<Which, P>::value ? k : at, k++), ...);
    return at;
  }
  static constexpr int sums()
  {
    int most = 1;

    ((most = P::sums > most ? P::sums : most), ...);
    return most;
  }
  /* Table::template pass<P>() of each */
  template <class Table, class Entry>
  struct Each {
    Entry of[count] = {Table::template pass<P>...};
  };
};

PETSCTC_HOST_DEVICE constexpr bool KSPTCHas(unsigned set, int vector)
{
  return set >> vector & 1;
}

/* ---- what the steps work with, and their table */

template <class M>
struct KSPTCListWork {
  using Scalars = typename M::Scalars;

  PetscTCReduceWork  reduce;
  Scalars           *s;      /* in the memory of the vectors; nothing before reset */
  PetscBool          tensor; /* reductions fold on the Tensor Core */
  Scalars           *records;
  PetscTCEvent      *events;
  PetscTCTest        test;
  Scalars           *record;
  PetscTCBounds      bounds;
  const PetscScalar *sums, *made; /* of methods whose products bring sums; none of these does */
};

template <class M>
using KSPTCPassFunction = PetscErrorCode (*)(PetscInt n, PetscScalar *const v[], KSPTCListWork<M> *work, PetscTCStream stream);

/* v[]: by the numbers of vectors */
template <class M>
struct KSPTCListSteps {
  PetscErrorCode (*create)(KSPTCListWork<M> *);
  PetscErrorCode (*destroy)(KSPTCListWork<M> *);
  PetscErrorCode (*reset)(KSPTCListWork<M> *, PetscTCStream);
  PetscErrorCode (*read)(const KSPTCListWork<M> *, typename M::Scalars *, PetscTCStream);
  PetscErrorCode (*mark)(const KSPTCListWork<M> *, int, PetscTCStream);
  PetscErrorCode (*await)(const KSPTCListWork<M> *, int);
  KSPTCPassFunction<M> pass[M::Passes::count];
};

/* The table's functions on a backend */
template <class Backend, class M>
struct KSPTCListStepsOn {
  using Work = KSPTCListWork<M>;

  static PetscErrorCode reset(Work *work, PetscTCStream stream) { return Backend::run(0, PetscTCResetStep<typename M::Scalars>{}, work->s, work->tensor, &work->reduce, stream); }

  template <class P>
  static PetscErrorCode pass(PetscInt n, PetscScalar *const v[], Work *work, PetscTCStream stream)
  {
    P step = {};

    for (int k = 0; k < P::inputs; k++) step.in[k] = v[P::from[k]];
    for (int k = 0; k < P::outputs; k++) step.out[k] = v[P::to[k]];
    step.test   = work->test;
    step.record = P::ends ? work->record : NULL;
    return Backend::run(n, step, work->s, work->tensor, &work->reduce, stream);
  }

  static KSPTCListSteps<M> table()
  {
    const typename M::Passes::template Each<KSPTCListStepsOn, KSPTCPassFunction<M>> passes;
    KSPTCListSteps<M> steps = {Backend::template create<Work>, Backend::template destroy<Work>, reset, Backend::template read<Work, typename M::Scalars>, Backend::template mark<Work>, Backend::template await<Work>, {}};

    for (int k = 0; k < M::Passes::count; k++) steps.pass[k] = passes.of[k];
    return steps;
  }
};

/* ---- resident solves */

/* The vectors by their numbers; of those that a solve has not: NULL */
template <class M>
struct KSPTCListVectors {
  PetscScalar *v[M::VECTORS];
};

PETSCTC_HOST_DEVICE constexpr int KSPTCCount(unsigned set)
{
  int count = 0;

  for (; set; set &= set - 1) count++;
  return count;
}

template <class M>
PETSCTC_HOST_DEVICE KSPTCVectors KSPTCListVectorsOfBlock(bool scaled)
{
  const KSPTCApply apply = scaled ? KSPTC_APPLY_SCALED : KSPTC_APPLY_NONE;

  return {KSPTCCount(M::rows(apply)), KSPTCCount(M::ghosts(apply))};
}

/* What a method's runners are on a backend: passes; what the chip offers, work for a form, and iterations of a chunk without the host */
template <class M>
struct KSPTCListRunners {
  KSPTCListSteps<M> steps;
  PetscErrorCode (*chip)(KSPTCChip *chip);
  PetscErrorCode (*create)(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can);
  PetscErrorCode (*call)(const KSPTCForm *form, PetscBool scaled, const KSPTCChunk<typename M::Scalars> *chunk, const KSPTCListVectors<M> *v, KSPTCListWork<M> *w, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream);
};
