/*
   A listed method (method.h) with vectors and matrix on the chip.

   Method   One cooperative kernel (ksptcresident.cuh) does iterations, item after item. A pass reads and writes the vectors of the block's rows in shared memory; those of its ghosts that are not published it makes
            too, with the bits of their own block. A product multiplies a vector of rows and ghosts, and its pass adds up as rows are finished. A pass with sums, and an item that publishes, ends with a barrier
            (sum_barrier.cuh); meanwhile what has been published is fetched. Warp 0 derives the scalars by the pass's end() and leaves them in shared memory for all.
   Layout   Shared memory of a block: of its rows the vectors of M::rows(), each of those that are multiplied followed by its ghosts and a zero; then the other vectors of ghosts.
            published: two numbers a row, by turns: one published for a barrier may be fetched still when that of the next is stored
   Memory traffic
            A call: the form once, the vectors twice. An iteration: 16 bytes a row stored and 16 a ghost fetched for each vector that is published, in L2; latencies decide, some 1.6 us a barrier
   References
            those of the method
*/
#pragma once

#include <../src/ksp/step/fusedstep_cuda.cuh>
#include <../src/ksp/resident/ksptcresident.cuh>
#include "method.h"

/* Where a vector of a block begins: so many times its rows, its ghosts, and numbers behind its vectors' beginning */
struct KSPTCPlace {
  int rows, ghosts, numbers;
};

template <class M, KSPTCApply apply>
struct KSPTCPlaces {
  static constexpr unsigned rows = M::rows(apply), ghosts = M::ghosts(apply);

  __host__ __device__ static constexpr KSPTCPlace ofRows(int vector)
  {
    KSPTCPlace place = {0, 0, 0};

    for (int v = 0; v < vector; v++) {
      place.rows += KSPTCHas(rows, v);
      place.ghosts += KSPTCHas(M::MULTIPLIED, v);
      place.numbers += KSPTCHas(M::MULTIPLIED, v);
    }
    return place;
  }
  __host__ __device__ static constexpr KSPTCPlace ofGhosts(int vector)
  {
    KSPTCPlace place = ofRows(KSPTCHas(M::MULTIPLIED, vector) ? vector : M::VECTORS);

    if (KSPTCHas(M::MULTIPLIED, vector)) place.rows++;
    for (int v = 0; v < vector && !KSPTCHas(M::MULTIPLIED, vector); v++) place.ghosts += KSPTCHas(ghosts & ~M::MULTIPLIED, v);
    return place;
  }
};

template <class M, KSPTCApply apply>
struct KSPTCListShare : KSPTCShare {
  using Places = KSPTCPlaces<M, apply>;

  static_assert(KSPTCCount(M::MULTIPLIED) <= KSPTC_ZEROS, "a zero behind each vector that is multiplied");
  static_assert((M::MULTIPLIED & ~M::ghosts(apply)) == 0 && (M::PUBLISHED & ~M::ghosts(apply)) == 0, "what is multiplied or published is a vector of ghosts");

  __device__ __forceinline__ KSPTCListShare(const KSPTCForm &A, double *memory) : KSPTCShare(A, KSPTCListVectorsOfBlock<M>(apply == KSPTC_APPLY_SCALED), memory) { }

  __device__ __forceinline__ double *at(KSPTCPlace place) const { return vector + place.rows * rows + place.ghosts * ghosts + place.numbers; }
  template <int v>
  __device__ __forceinline__ double *ofRows() const
  {
    constexpr KSPTCPlace place = Places::ofRows(v);

    return at(place);
  }
  template <int v>
  __device__ __forceinline__ double *ofGhosts() const
  {
    constexpr KSPTCPlace place = Places::ofGhosts(v);

    return at(place);
  }
};

/* f(number of a vector) for each, as a constant */
template <class F, int... v>
__device__ __forceinline__ void KSPTCForVectors(std::integer_sequence<int, v...>, F f)
{
  (f(std::integral_constant<int, v>{}), ...);
}

template <class M, KSPTCApply apply, bool part>
struct KSPTCOnChip {
  using Scalars = typename M::Scalars;
  using Share   = KSPTCListShare<M, apply>;
  using Problem = KSPTCProblem<Scalars, KSPTCListVectors<M>>;
  using Vectors = std::make_integer_sequence<int, M::VECTORS>;

  static constexpr int      SUMS  = M::Passes::sums();
  static constexpr int      PAIRS = SUMS > 2 ? 2 : 1;
  static constexpr unsigned ROWS = M::rows(apply), GHOSTS = M::ghosts(apply);

  using Barrier = SumBarrier<KSPTC_BLOCKS, SUMS, PAIRS>;

  /* What all threads have in shared memory */
  struct Common {
    Scalars                  s;
    KSPTCAsked               asked;
    KSPTCRecordLeft<Scalars> record;
    union
    {
      GridReduceShared<1, KSPTC_THREADS> one;
      GridReduceShared<2, KSPTC_THREADS> two;
      GridReduceShared<3, KSPTC_THREADS> three;
      GridReduceShared<4, KSPTC_THREADS> four;
    } sums;
  };

  const Problem &P;
  const Share   &own;
  Common        &common;
  Barrier       &barrier;
  Scalars       &s; /* warp 0's */
  PetscInt      &it;

  template <int K>
  __device__ __forceinline__ GridReduceShared<K, KSPTC_THREADS> &sumsOf() const
  {
    static_assert(K >= 1 && K <= 4, "more sums than a barrier has");
    if constexpr (K == 1) return common.sums.one;
    else if constexpr (K == 2) return common.sums.two;
    else if constexpr (K == 3) return common.sums.three;
    else return common.sums.four;
  }

  __device__ __forceinline__ PetscTCTagged *published(uint64_t tag) const { return P.published + (tag % 2 ? P.A.m : 0); }

  __device__ __forceinline__ void load() const
  {
    KSPTCLoadMatrix(P.A, own);
    KSPTCForVectors(Vectors{}, [&](auto which) {
      constexpr int v = decltype(which)::value;

      if constexpr (KSPTCHas(ROWS, v)) own.forMatrixRows(P.A, [&](int k, int row) { own.template ofRows<v>()[k] = P.v.v[v][row]; });
      if constexpr (KSPTCHas(GHOSTS, v)) own.forMatrixGhosts(P.A, [&](int g, int row) { own.template ofGhosts<v>()[g] = P.v.v[v][row]; });
      if constexpr (KSPTCHas(M::MULTIPLIED, v)) {
        if (threadIdx.x == 0) own.template ofGhosts<v>()[own.ghosts] = 0.0;
      }
    });
  }

  __device__ __forceinline__ void store() const
  {
    KSPTCForVectors(Vectors{}, [&](auto which) {
      constexpr int v = decltype(which)::value;

      if constexpr (KSPTCHas(ROWS & ~M::INPUTS, v)) own.forMatrixRows(P.A, [&](int k, int row) { P.v.v[v][row] = own.template ofRows<v>()[k]; });
    });
  }

  /* in[] <- what the pass reads, of the row k, or of the ghost */
  template <class Pass, bool ghost, int... n>
  __device__ __forceinline__ void read(int k, double in[], std::integer_sequence<int, n...>) const
  {
    const auto one = [&](auto number) {
      constexpr int v = Pass::from[decltype(number)::value];

      if constexpr (!ghost) in[decltype(number)::value] = own.template ofRows<v>()[k];
      else if constexpr (KSPTCHas(GHOSTS, v)) in[decltype(number)::value] = own.template ofGhosts<v>()[k];
      else in[decltype(number)::value] = 0.0; /* for what ghosts have not */
    };

    (one(std::integral_constant<int, n>{}), ...);
  }
  template <class Pass, bool ghost, int... n>
  __device__ __forceinline__ void write(int k, const double out[], std::integer_sequence<int, n...>) const
  {
    const auto one = [&](auto number) {
      constexpr int v = Pass::to[decltype(number)::value];

      if constexpr (!ghost) own.template ofRows<v>()[k] = out[decltype(number)::value];
      else if constexpr (KSPTCHas(GHOSTS & ~M::PUBLISHED, v)) own.template ofGhosts<v>()[k] = out[decltype(number)::value];
    };

    (one(std::integral_constant<int, n>{}), ...);
  }

  template <class Pass, bool ghost>
  __device__ __forceinline__ void element(const Pass &pass, const Scalars &now, int k, double sum[]) const
  {
    double in[Pass::in_size], out[Pass::out_size];

    read<Pass, ghost>(k, in, std::make_integer_sequence<int, Pass::inputs>{});
    pass.element(now, in, out, sum);
    write<Pass, ghost>(k, out, std::make_integer_sequence<int, Pass::outputs>{});
  }

  /* Does the pass write one of these vectors? */
  template <class Pass, int... n>
  __host__ __device__ static constexpr bool writes(unsigned set, std::integer_sequence<int, n...>)
  {
    return (KSPTCHas(set, Pass::to[n]) || ...);
  }

  /* The end of a pass with its sums: all scalars. False: given up. fetched: a vector whose ghosts come from their blocks, or -1 */
  template <class Pass, int fetched>
  __device__ __forceinline__ bool meet(const double sum[]) const
  {
    constexpr int K      = Pass::sums > 0 ? Pass::sums : 1;
    const auto    derive = [&](const double total[]) {
      Pass    pass = {};
      Scalars left; /* nobody's: the record is the scalars as they are then */

      if constexpr (Pass::ends) {
        pass.test   = KSPTCTestAt(P.chunk, it, common.asked.test());
        pass.record = &left;
      }
      pass.end(s, total);
      if constexpr (Pass::ends) common.record.leave(it, s);
      if (threadIdx.x == 0) common.s = s;
    };
    const auto fetch = [&](uint64_t tag, int thread, int threads) {
      if constexpr (fetched >= 0) return KSPTCFetchGhosts(published(tag), own, own.template ofGhosts<fetched>(), tag, thread, threads, barrier.patience(), it);
      else return true;
    };
    const bool alive = barrier.sum(sum, sumsOf<K>(), (int)it, fetch, derive);

    if constexpr (Pass::ends) common.record.store(P, it);
    return alive;
  }

  template <class Pass>
  __device__ __forceinline__ bool run(KSPTCPassItem<Pass>, bool &alive) const
  {
    constexpr auto outputs             = std::make_integer_sequence<int, Pass::outputs>{};
    const Scalars  now                 = common.s;
    const Pass     pass                = {};
    double         sum[Pass::sum_size] = {}, none[Pass::sum_size];

    static_assert(!writes<Pass>(M::PUBLISHED, outputs), "products publish, passes do not");
    own.forRows([&](int k) { element<Pass, false>(pass, now, k, sum); });
    if constexpr (writes<Pass>(GHOSTS, outputs)) own.forGhosts([&](int g) { element<Pass, true>(pass, now, g, none); });
    if constexpr (Pass::sums > 0) alive = meet<Pass, -1>(sum);
    else __syncthreads();
    return alive && common.s.stop == 0.0;
  }

  template <int From, int To, class Pass>
  __device__ __forceinline__ bool run(KSPTCProductItem<From, To, Pass>, bool &alive) const
  {
    const Scalars        now                 = common.s;
    const Pass           pass                = {};
    PetscTCTagged *const to                  = published(barrier.next());
    double               sum[Pass::sum_size] = {};

    KSPTCMult<part>(P.A, own, own.template ofRows<From>(), [&](int k, double product) {
      own.template ofRows<To>()[k] = product;
      element<Pass, false>(pass, now, k, sum);
      if constexpr (KSPTCHas(M::PUBLISHED, To)) PetscTCPublish(to + own.first + k, product, barrier.next());
    });
    if constexpr (Pass::ends) ++it;
    alive = meet < Pass, KSPTCHas(M::PUBLISHED, To) ? To : -1 > (sum);
    return alive && common.s.stop == 0.0;
  }

  /* The call */
  __device__ __forceinline__ void call() const
  {
    bool alive = true;

    if (threadIdx.x == 0) {
      common.s = s;
      common.asked.set(P.chunk.test, s);
    }
    common.record.begin(s);
    load();
    __threadfence(); /* others' vectors have been read before their blocks leave the first barrier, and may write them */
    __syncthreads();
    while (it < P.chunk.last && M::template List<apply, false>::all([&](auto item) { return run(item, alive); })) { }
    if (!KSPTCSettles(P, barrier, it, alive)) return;
    store();
    KSPTCLeave(P, it, s);
  }
};

/* part: for forms of which blocks have no room for all slices, or that have rows in parts */
template <class M, KSPTCApply apply, bool part>
__device__ __forceinline__ void KSPTCChipSolve(const KSPTCProblem<typename M::Scalars, KSPTCListVectors<M>> &P, bool tensor)
{
  using Chip = KSPTCOnChip<M, apply, part>;
  extern __shared__ __align__(16) double memory[];
  __shared__ typename Chip::Common       common;
  const typename Chip::Share             own(P.A, memory);
  typename Chip::Barrier                 barrier(P.sums, P.tag, tensor, P.patience());
  typename M::Scalars                    s  = *P.scalars; /* kept by warp 0 */
  PetscInt                               it = P.chunk.first;

  if (P.isOut() || s.stop != 0.0) return; /* all blocks: nobody writes the scalars then */
  Chip{P, own, common, barrier, s, it}.call();
}

template <class M, KSPTCApply apply, bool part>
__global__ void __launch_bounds__(KSPTC_THREADS, 1) KSPTCChipKernel(const __grid_constant__ KSPTCProblem<typename M::Scalars, KSPTCListVectors<M>> P)
{
  if (!part && P.tensor) KSPTCChipSolve<M, apply, part>(P, true);
  else KSPTCChipSolve<M, apply, part>(P, part && P.tensor);
}

/* ---- the host's side */

template <class M>
struct KSPTCListOnDevice {
  using Work  = KSPTCListWork<M>;
  using Steps = KSPTCListStepsOn<PetscTCBackend_CUDA, M>;

  static const void *const *kernels(PetscBool scaled)
  {
    static const void *const all[] = {(const void *)KSPTCChipKernel<M, KSPTC_APPLY_NONE, false>, (const void *)KSPTCChipKernel<M, KSPTC_APPLY_NONE, true>, (const void *)KSPTCChipKernel<M, KSPTC_APPLY_SCALED, false>,
                                      (const void *)KSPTCChipKernel<M, KSPTC_APPLY_SCALED, true>};

    return all + (scaled ? 2 : 0);
  }

  static PetscErrorCode create(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
  {
    return KSPTCFormWorkCreate(kernels(scaled), 2, form, KSPTCListVectorsOfBlock<M>(scaled), 2 * (PetscCount)form->m, sizeof(typename M::Scalars), KSPTCOnChip<M, KSPTC_APPLY_NONE, false>::Barrier::records, work, can);
  }

  static PetscErrorCode call(const KSPTCForm *form, PetscBool scaled, const KSPTCChunk<typename M::Scalars> *chunk, const KSPTCListVectors<M> *v, Work *w, KSPTCResidentWork *work, PetscBool *refused, PetscTCStream stream)
  {
    const KSPTCVectors vectors = KSPTCListVectorsOfBlock<M>(scaled);

    return KSPTCResidentRun(kernels(scaled)[KSPTCKernelAt(form, vectors)], form, vectors, chunk, v, w, work, refused, stream);
  }

  static KSPTCListRunners<M> runners() { return {Steps::table(), KSPTCChipGet_CUDA, create, call}; }
};
