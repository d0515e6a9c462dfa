/*
   Kernels of processes whose GPUs store into each other's memory (src/comm/peers.h, halo.h, src/mat/aijtc/border.h). A test makes tables, arenas and plans by hand, and ranks run side by side (ranks.h). Their kernels have all run before,
   since loading one may wait for those that run. What depends on who comes first is not left to chance: there one rank alone is run, and the test leaves what others would have stored.
*/
#include <atomic>
#include <chrono>
#include <random>
#include <../src/comm/halo.h>
#include <../src/ksp/step/kspsteps.h>
#include <../src/mat/aijtc/border.h>
#include "backends.h"
#include "ranks.h"

namespace
{
/* A process that needs nothing of others has a plan that says so */
TEST(PeersPlan, OfOneProcessSendsNothing)
{
  const PetscInt  ranges[] = {0, 17};
  PetscTCHaloPlan plan     = {};

  CALL(PetscTCHaloPlanDestroy(&plan)); /* all zero: nothing */
  CALL(PetscTCHaloPlanCreate(MPI_COMM_SELF, 0, NULL, ranges, &plan));
  EXPECT_EQ(1, plan.size);
  EXPECT_EQ(0, plan.rank);
  EXPECT_EQ(0, plan.nsend);
  EXPECT_EQ(0, plan.nghosts);
  EXPECT_EQ(0, plan.to[0]);
  EXPECT_EQ(0, plan.begin[0]);
  EXPECT_EQ(0, plan.from[0]);
  EXPECT_EQ(0, plan.first[0]);
  EXPECT_EQ(0, plan.place[0]);
  EXPECT_EQ(0, plan.all[0]);
  for (int time = 0; time < 2; time++) {
    CALL(PetscTCHaloPlanDestroy(&plan));
    EXPECT_EQ(0, plan.size);
    EXPECT_EQ(nullptr, plan.to);
    EXPECT_EQ(nullptr, plan.place);
    EXPECT_EQ(nullptr, plan.rows);
  }
}

#if PETSCTC_HAVE_CUDA
/* Ranks come in another order each time */
void comeLater(int rank, int round)
{
  std::this_thread::sleep_for(std::chrono::microseconds((7 * round + 3 * rank) % 5 == 0 ? 300 : 0));
}

uint64_t bitsOf(double number)
{
  uint64_t bits;

  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

PetscTCWord wordOf(double number, unsigned low_tag, unsigned high_tag)
{
  return {
    {(uint64_t)low_tag << 32 | (bitsOf(number) & 0xffffffffu), (uint64_t)high_tag << 32 | bitsOf(number) >> 32}
  };
}

/* Where peers.cuh says that the words of `rank` lie */
size_t placeOf(unsigned tag, int rank, int k)
{
  return ((tag % 2) * PETSCTC_MAX_PEERS + rank) * PETSCTC_MAX_DOTS + k;
}

/* The tables of ranks that add up sums, and their records */
struct Tables {
  SharedOfRanks<PetscTCPeers>   table;
  SharedOfRanks<PetscTCWord>    record;
  SharedOfRanks<PetscTCMissing> missing;
  std::vector<unsigned>         tag;

  Tables(int ranks, bool mapped, double seconds) : tag(ranks, 0)
  {
    for (int rank = 0; rank < ranks; rank++) {
      record.push_back(std::make_unique<Shared<PetscTCWord>>(placeOf(1, PETSCTC_MAX_PEERS, 0), mapped));
      missing.push_back(std::make_unique<Shared<PetscTCMissing>>(1, true));
    }
    for (int rank = 0; rank < ranks; rank++) {
      PetscTCPeers peers = {ranks, rank, patienceOf(seconds), {}, *missing[rank]};

      for (int other = 0; other < ranks; other++) peers.record[other] = *record[other];
      table.push_back(std::make_unique<Shared<PetscTCPeers>>(1, false));
      table[rank]->set({peers});
    }
  }
  PetscTCAcross across(int rank) { return {NULL, NULL, NULL, 0.0, *table[rank], &tag[rank]}; }
  void          expectNobodyMissing() const
  {
    for (size_t rank = 0; rank < missing.size(); rank++) EXPECT_EQ(0, missing[rank]->get()[0].late) << "rank " << rank;
  }
};

/* The sums of one rank, for a PetscTCAcross.add */
struct Own {
  PetscInt    count;
  PetscScalar sum[PETSCTC_MAX_DOTS];
};

PetscErrorCode Keep(void *ctx, PetscInt count, PetscScalar sum[], PetscTCStream)
{
  Own *own = static_cast<Own *>(ctx);

  PetscFunctionBeginUser;
  PetscCheck(cudaDeviceSynchronize() == cudaSuccess, PETSC_COMM_SELF, PETSC_ERR_GPU, "The device has failed");
  own->count = count;
  copyBytes(own->sum, sum, count * sizeof(*sum), true);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Steps of ranks, each with work of its own */
template <class Steps, class Work, class Scalars>
struct RankedSteps {
  using ScalarsOf = Scalars;

  const Steps      *steps;
  std::vector<Work> work;
  Scalars           fresh;

  RankedSteps(const Steps *of, int ranks, PetscBool tensor) : steps(of), work(ranks)
  {
    for (Work &w : work) {
      w = {};
      EXPECT_EQ(PETSC_SUCCESS, steps->create(&w));
      w.tensor = tensor;
      EXPECT_EQ(PETSC_SUCCESS, steps->reset(&w, nullptr));
    }
    fresh = get(0);
  }
  ~RankedSteps()
  {
    for (Work &w : work) EXPECT_EQ(PETSC_SUCCESS, steps->destroy(&w));
  }
  Scalars get(int rank)
  {
    Scalars s;

    EXPECT_EQ(PETSC_SUCCESS, steps->read(&work[rank], &s, nullptr));
    return s;
  }
  void set(int rank, const Scalars &s) { copyBytes(work[rank].s, &s, sizeof(s), true); }
};

using CGSteps   = RankedSteps<TCCGSteps, TCCGWork, TCCGScalars>;
using BCGSSteps = RankedSteps<TCBCGSSteps, TCBCGSWork, TCBCGSScalars>;

class Peers : public BackendTest {
protected:
  void SetUp() override
  {
    BackendTest::SetUp();
    if (PetscDefined(USE_DEBUG) && !PetscDefined(HAVE_THREADSAFETY)) GTEST_SKIP() << "a debugging PETSc keeps one list of the functions that run, for all threads";
  }
};

/* ---- sums of steps */

constexpr PetscInt rows_of[]  = {1025, 1, 0, 2600}; /* of each rank: of two blocks, of one, of none with work, of three */
constexpr int      most_ranks = 4, rounds = 50;

/* Rounds before which all ranks have stopped: an odd number of them, and at the end */
bool stopsBefore(int round)
{
  return (round >= 20 && round < 23) || round >= rounds - 2;
}

/* The step run(steps, work, rank, round, stream), round after round. of[k]: where sum k goes as it is, or NULL. Scalars are the same on all ranks, and have the bits of the ranks' own sums, added up in the order of the ranks */
template <class Steps, class Work, class Scalars, class Run>
void expectSumsOfAll(RankedSteps<Steps, Work, Scalars> &ranked, const std::vector<PetscReal RankedSteps<Steps, Work, Scalars>::ScalarsOf::*> &of, const Run &run)
{
  const size_t           count = of.size();
  const int              ranks = (int)ranked.work.size();
  Tables                 tables(ranks, false, patient);
  Shared<PetscScalar>    sum(3 * PETSCTC_MAX_DOTS, false);
  Shared<Scalars>        seen(ranks * rounds, true), start(2, true);
  Own                    own;
  std::vector<PetscReal> total(rounds * count);

  start[0] = start[1] = ranked.fresh;
  start[1].stop       = PETSCTC_STOP_TEST;
  for (int round = 0; round < rounds; round++) {
    for (int rank = 0; rank < ranks; rank++) {
      ranked.set(rank, ranked.fresh);
      ranked.work[rank].reduce.across = {Keep, &own, sum, 0.0, NULL, NULL};
      CALL(run(ranked.steps, &ranked.work[rank], rank, round, nullptr));
      ASSERT_EQ((PetscInt)count, own.count);
      for (size_t k = 0; k < count; k++) total[round * count + k] = rank ? total[round * count + k] + own.sum[k] : own.sum[k];
    }
  }
  { /* one rank by itself, which waits for nobody */
    Tables single(1, false, patient);

    ranked.set(0, ranked.fresh);
    ranked.work[0].reduce.across = {Keep, &own, sum, 0.0, NULL, NULL};
    CALL(run(ranked.steps, &ranked.work[0], 0, 0, nullptr));
    ranked.set(0, ranked.fresh);
    ranked.work[0].reduce.across = single.across(0);
    CALL(run(ranked.steps, &ranked.work[0], 0, 0, nullptr));
    const Scalars s = ranked.get(0);
    for (size_t k = 0; k < count; k++) {
      if (of[k]) { EXPECT_EQ(bitsOf(own.sum[k]), bitsOf(s.*of[k])) << "sum " << k << " of one rank"; }
    }
    EXPECT_EQ(1u, single.tag[0]);
  }
  for (int rank = 0; rank < ranks; rank++) ranked.work[rank].reduce.across = tables.across(rank);
  sideBySide(ranks, [&](int rank, cudaStream_t stream) {
    auto *const work = &ranked.work[rank];

    for (int round = 0; round < rounds; round++) {
      const bool stopped = stopsBefore(round);

      if (round == 0 || stopped != stopsBefore(round - 1)) { EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(work->s, start + stopped, sizeof(Scalars), cudaMemcpyDefault, stream)); }
      comeLater(rank, round);
      EXPECT_EQ(PETSC_SUCCESS, run(ranked.steps, work, rank, round, stream));
      EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(seen + rank * rounds + round, work->s, sizeof(Scalars), cudaMemcpyDefault, stream));
    }
  });
  tables.expectNobodyMissing();
  for (int rank = 0; rank < ranks; rank++) {
    EXPECT_EQ((unsigned)rounds, tables.tag[rank]);
    for (int round = 0; round < rounds; round++) {
      const Scalars &mine = seen[rank * rounds + round];

      ASSERT_FALSE(std::memcmp(&mine, &seen[round], sizeof(mine))) << "rank " << rank << " is not as rank 0, round " << round;
      if (stopsBefore(round)) { ASSERT_FALSE(std::memcmp(&mine, &start[1], sizeof(mine))) << "stopped, rank " << rank << ", round " << round; }
      for (size_t k = 0; k < count && !stopsBefore(round); k++) {
        if (of[k]) { ASSERT_EQ(bitsOf(total[round * count + k]), bitsOf(mine.*of[k])) << "sum " << k << ", rank " << rank << ", round " << round << ": " << total[round * count + k] << ", " << mine.*of[k]; }
      }
    }
  }
}

/* Vectors of all ranks that are longer than their rows: each round begins with another element, and so has other values and another alignment */
struct RankedVectors {
  std::vector<std::unique_ptr<Vector>> of;

  explicit RankedVectors(unsigned seed)
  {
    for (int rank = 0; rank < most_ranks; rank++) of.push_back(std::make_unique<Vector>(true, randomValues(rows_of[rank] + rounds, 10 * seed + rank)));
  }
  PetscScalar *at(int rank, int round) const { return (PetscScalar *)*of[rank] + round; }
};

TEST_P(Peers, AddUpSumsOfCG)
{
  const RankedVectors z(1), r(2);

  for (int ranks = 2; ranks <= most_ranks && !HasFailure(); ranks++) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    CGSteps steps(&TCCGSteps_CUDA, ranks, tensor);

    expectSumsOfAll(steps, {&TCCGScalars::beta, &TCCGScalars::zz}, [&](const TCCGSteps *of, TCCGWork *work, int rank, int round, PetscTCStream stream) { return of->project(rows_of[rank], z.at(rank, round), r.at(rank, round), work, stream); });
  }
}

/* Its vectors are written too, but not by a step that has stopped */
TEST_P(Peers, AddUpSumsOfBCGSStart)
{
  const RankedVectors r(3);

  for (int ranks = 2; ranks <= most_ranks && !HasFailure(); ranks++) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    BCGSSteps     steps(&TCBCGSSteps_CUDA, ranks, tensor);
    RankedVectors rp(4), p(5), v(6);

    expectSumsOfAll(steps, {&TCBCGSScalars::rr},
                    [&](const TCBCGSSteps *of, TCBCGSWork *work, int rank, int round, PetscTCStream stream) { return of->start(rows_of[rank], r.at(rank, round), rp.at(rank, 0), p.at(rank, 0), v.at(rank, 0), work, stream); });
    for (int rank = 0; rank < ranks; rank++) {
      const Values from = r.of[rank]->get(), to = rp.of[rank]->get(), zero = p.of[rank]->get();

      for (PetscInt i = 0; i < rows_of[rank]; i++) {
        ASSERT_EQ(from[i + rounds - 3], to[i]) << "row " << i;
        ASSERT_EQ(0.0, zero[i]) << "row " << i;
      }
    }
  }
}

/* Four sums, of which two go into the scalars as they are */
TEST_P(Peers, AddUpSumsOfBCGSStabilize)
{
  const RankedVectors t(7), s(8), rp(9);

  for (int ranks = 2; ranks <= most_ranks && !HasFailure(); ranks++) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    BCGSSteps steps(&TCBCGSSteps_CUDA, ranks, tensor);

    expectSumsOfAll(steps, {&TCBCGSScalars::ts, &TCBCGSScalars::tt, nullptr, nullptr},
                    [&](const TCBCGSSteps *of, TCBCGSWork *work, int rank, int round, PetscTCStream stream) { return of->stabilize(rows_of[rank], t.at(rank, round), s.at(rank, round), rp.at(rank, round), work, stream); });
  }
}

/* ---- one rank alone, among others that the test plays */

/* A rank's project of n elements z = r = 1, so that its own sums are n. Records are in memory that the test reads and writes */
struct Alone {
  int     mine;
  Tables  tables;
  CGSteps steps;
  Vector  one, x;

  Alone(int ranks, int mine, PetscBool tensor, double seconds) : mine(mine), tables(ranks, true, seconds), steps(&TCCGSteps_CUDA, 1, tensor), one(true, Values(4099, 1.0)), x(true, Values(4099, 2.0))
  {
    steps.work[0].reduce.across = tables.across(mine);
  }
  TCCGWork      *work() { return &steps.work[0]; }
  PetscErrorCode project(PetscInt n) { return steps.steps->project(n, one, one, work(), nullptr); }
  TCCGScalars    get() { return steps.get(0); }
  PetscTCMissing missing() const { return tables.missing[mine]->get()[0]; }
  /* What another rank stores */
  void store(unsigned tag, int rank, const std::vector<double> &sums)
  {
    for (size_t k = 0; k < sums.size(); k++) (*tables.record[mine])[placeOf(tag, rank, (int)k)] = wordOf(sums[k], tag, tag);
  }
  /* What it has stored for another rank */
  void expectStored(unsigned tag, int rank, const std::vector<double> &sums) const
  {
    for (size_t k = 0; k < sums.size(); k++) {
      const PetscTCWord word = (*tables.record[rank])[placeOf(tag, mine, (int)k)], expected = wordOf(sums[k], tag, tag);

      EXPECT_EQ(expected.half[0], word.half[0]) << "tag " << tag << ", for rank " << rank << ", sum " << k;
      EXPECT_EQ(expected.half[1], word.half[1]) << "tag " << tag << ", for rank " << rank << ", sum " << k;
    }
  }
};

/* Words of two tags are there at once: who is ahead stores those of the next before the others have read what it stored before */
TEST_P(Peers, TakePlacesByTurns)
{
  Alone rank(3, 1, tensor, impatient);

  for (unsigned tag = 1; tag <= 6; tag++) {
    if (tag == 1) rank.store(tag, 0, {0.25, 0.5}), rank.store(tag, 2, {1.25, 1.5});
    rank.store(tag + 1, 0, {tag + 0.25, tag + 0.5});
    rank.store(tag + 1, 2, {tag + 1.25, tag + 1.5});
    CALL(rank.project(1000 + (PetscInt)tag));
    const TCCGScalars s = rank.get();

    EXPECT_EQ(1000 + tag + 2 * (tag - 1) + 1.5, s.beta);
    EXPECT_EQ(1000 + tag + 2 * (tag - 1) + 2.0, s.zz);
    EXPECT_EQ(0.0, s.stop);
    for (int other : {0, 2}) {
      rank.expectStored(tag, other, {1000.0 + tag, 1000.0 + tag});
      if (tag > 1) rank.expectStored(tag - 1, other, {999.0 + tag, 999.0 + tag});
    }
  }
  EXPECT_EQ(0, rank.missing().late);
  EXPECT_EQ(0u, (*rank.tables.record[1])[placeOf(0, 1, 0)].half[0] | (*rank.tables.record[1])[placeOf(1, 1, 0)].half[0]) << "stores something for itself";
}

/* What rounding takes of these numbers depends on the order in which they are added */
TEST_P(Peers, AddInTheOrderOfRanks)
{
  for (int mine = 0; mine < 4; mine++) {
    Alone               rank(4, mine, tensor, impatient);
    std::vector<double> of = {1e17, 0.3, -1e17};

    of.insert(of.begin() + mine, 7.0);
    for (int other = 0; other < 4; other++) {
      if (other != mine) rank.store(1, other, {of[other], 3.0 * of[other]});
    }
    CALL(rank.project(7));
    double beta = of[0], zz = mine == 0 ? of[0] : 3.0 * of[0];

    for (int other = 1; other < 4; other++) {
      beta += of[other];
      zz += other == mine ? of[other] : 3.0 * of[other];
    }
    EXPECT_EQ(beta, rank.get().beta) << "rank " << mine;
    EXPECT_EQ(zz, rank.get().zz) << "rank " << mine;
  }
}

/* Stopped before it, or by its begin(): a step stores zeros, and is over when the others have come so far */
TEST_P(Peers, GetZerosFromStoppedSteps)
{
  Alone       rank(2, 0, tensor, impatient);
  TCCGScalars stopped = rank.steps.fresh;

  stopped.stop = PETSCTC_STOP_DPI_SIGN;
  stopped.beta = 3.0;
  rank.steps.set(0, stopped);
  for (unsigned tag = 1; tag <= 3; tag++) {
    rank.store(tag, 1, {5.0, 6.0});
    CALL(rank.project(4099));
    const TCCGScalars s = rank.get();

    EXPECT_FALSE(std::memcmp(&s, &stopped, sizeof(s)));
    rank.expectStored(tag, 1, {0.0, 0.0});
  }
  EXPECT_EQ(0, rank.missing().late);

  Shared<PetscScalar> curvature(1, true);
  TCCGScalars         running = rank.steps.fresh;

  running.beta = 1.0;
  rank.steps.set(0, running);
  rank.work()->sums  = curvature; /* p.w is 0: update begins by stopping */
  rank.work()->first = PETSC_TRUE;
  rank.store(4, 1, {0.0});
  CALL(rank.steps.steps->update(4099, PETSC_TRUE, rank.one, rank.one, rank.x, rank.x, rank.work(), nullptr));
  EXPECT_EQ(PETSCTC_STOP_DPI_SIGN, rank.get().stop);
  EXPECT_TRUE(sameBits(Values(4099, 2.0), rank.x.get()));
  rank.expectStored(4, 1, {0.0});
  EXPECT_EQ(0, rank.missing().late);

  CALL(rank.project(4099)); /* nobody stores for this one */
  EXPECT_EQ(1, rank.missing().late);
  EXPECT_EQ(1, rank.missing().rank);
}

/* A rank that never comes: steps stop, and tell for whom they have waited */
TEST_P(Peers, StopWhereOneIsMissing)
{
  for (int absent = 0; absent < 3; absent++) {
    for (int mine = 0; mine < 3; mine++) {
      if (mine == absent) continue;
      Alone rank(3, mine, tensor, impatient);

      rank.store(1, 3 - mine - absent, {5.0, 6.0});
      for (PetscInt n : {4099, 0}) {
        rank.tables.tag[mine] = 0;
        rank.steps.set(0, rank.steps.fresh);
        CALL(rank.project(n));
        EXPECT_EQ(PETSCTC_STOP_MISSING, rank.get().stop);
        EXPECT_EQ(1, rank.missing().late);
        EXPECT_EQ(absent, rank.missing().rank);
        rank.expectStored(1, 3 - mine - absent, {(double)n, (double)n});
      }
      const TCCGScalars before = rank.get();

      for (int step = 0; step < 100; step++) CALL(rank.project(100)); /* none of them waits as long again */
      const TCCGScalars after = rank.get();

      EXPECT_FALSE(std::memcmp(&before, &after, sizeof(before)));
    }
  }
}

/* Later waits end too, for others: the host hears of the first */
TEST_P(Peers, TellForWhomTheyHaveWaitedFirst)
{
  Alone rank(3, 0, tensor, impatient);

  CALL(rank.project(1001));
  rank.store(2, 1, {0.0, 0.0});
  CALL(rank.project(1001)); /* for rank 2 */
  EXPECT_EQ((double)PETSCTC_STOP_MISSING, rank.get().stop);
  EXPECT_EQ(1, rank.missing().late);
  EXPECT_EQ(1, rank.missing().rank);
}

/* A word of which one half has come is not taken: the number would have bits of two */
TEST_P(Peers, TakeNoTornWord)
{
  const double before = -0x1.89abcdef01234p+300, number = 0x1.23456789abcdep+5;

  for (int late : {0, 1}) {
    Alone             rank(2, 0, tensor, patient);
    std::atomic<bool> over(false);
    cudaStream_t      stream;

    rank.store(1, 1, {5.0, 6.0});
    CALL(rank.project(7)); /* the kernel is loaded, and waits for nobody */
    EXPECT_EQ(12.0, rank.get().beta);
    rank.store(2, 1, {number, 6.0});
    PetscTCWord *const place = *rank.tables.record[0] + placeOf(2, 1, 0);
    const uint64_t     half  = place->half[late];

    place->half[late] = wordOf(before, 0, 0).half[late];
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::thread thread([&] {
      EXPECT_EQ(PETSC_SUCCESS, rank.steps.steps->project(7, rank.one, rank.one, rank.work(), stream));
      EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
      over = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(over) << "half " << late << " is missing";
    *(volatile uint64_t *)&place->half[late] = half;
    thread.join();
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    EXPECT_EQ(7.0 + number, rank.get().beta);
    EXPECT_EQ(13.0, rank.get().zz);
    EXPECT_EQ(0, rank.missing().late);
  }
}

/* ---- halos and borders */

constexpr int       products  = 20;
constexpr PetscReal tolerance = 256 * PETSC_MACHINE_EPSILON; /* of a sum of up to 3,000 products, folded, of the absolute values of what is added */

/* Rows of the border that have entries have least to most of them, so that a row has as many threads */
struct Kind {
  const char *name;
  PetscInt    rows, least, most, lanes;
};
constexpr Kind kinds[] = {
  {"of one entry",        900, 1,  1,  1 },
  {"of nine entries",     300, 9,  9,  16},
  {"of 70 entries",       120, 70, 70, 32},
  {"of one to 5 entries", 500, 1,  5,  4 }
};

/* Random rows of a matrix that are dealt to ranks: one has none, and the last one needs nothing of others although they need its elements. Entries in columns of others are the border, with ghosts in place of columns */
struct Part {
  std::vector<PetscInt>    i, j, ghost; /* ghost: columns of others, ascending */
  std::vector<PetscScalar> a;
};

struct Matrix {
  std::vector<PetscInt> ranges;
  std::vector<Part>     part;

  Matrix(const Kind &kind, int ranks, unsigned seed) : ranges(1, 0), part(ranks)
  {
    std::mt19937 random(seed);

    for (int rank = 0; rank < ranks; rank++) ranges.push_back(ranges.back() + (rank == (ranks > 2 ? 1 : -1) ? 0 : kind.rows + 7 * rank));
    for (int rank = 0; rank < ranks; rank++) {
      Part          &mine = part[rank];
      const PetscInt m = rows(rank), others = ranges.back() - m;
      const bool     selfish = rank == ranks - 1;

      mine.i.assign(1, 0);
      for (PetscInt row = 0; row < m; row++) {
        const PetscInt entries = selfish || random() % 2 ? 0 : kind.least + (PetscInt)(random() % (kind.most - kind.least + 1));

        for (PetscInt e = 0; e < entries; e++) {
          const PetscInt column = (PetscInt)(random() % others);

          mine.j.push_back(column < ranges[rank] ? column : column + m);
          mine.a.push_back((double)random() / 2147483648.0 - 1.0);
        }
        mine.i.push_back((PetscInt)mine.j.size());
      }
      mine.ghost = mine.j;
      std::sort(mine.ghost.begin(), mine.ghost.end());
      mine.ghost.erase(std::unique(mine.ghost.begin(), mine.ghost.end()), mine.ghost.end());
      for (PetscInt &column : mine.j) column = (PetscInt)(std::lower_bound(mine.ghost.begin(), mine.ghost.end(), column) - mine.ghost.begin());
    }
  }
  int      ranks() const { return (int)part.size(); }
  PetscInt rows(int rank) const { return ranges[rank + 1] - ranges[rank]; }
  int      ownerOf(PetscInt column) const { return (int)(std::upper_bound(ranges.begin(), ranges.end(), column) - ranges.begin()) - 1; }
};

/* The halo of each rank as PetscTCHaloCreate_CUDA() would make it, and the border */
struct Halos {
  const Matrix                         &matrix;
  std::vector<PetscTCHalo>              halo;
  std::vector<AIJTCBorder>              border;
  std::vector<std::vector<PetscMPIInt>> to, begin, from, first;
  std::vector<std::vector<PetscInt>>    place, all, rows;
  SharedOfRanks<char>                   arena;
  SharedOfRanks<PetscInt>               device_rows;
  SharedOfRanks<PetscTCMissing>         missing;

  Halos(const Matrix &of, bool mapped) : matrix(of), halo(of.ranks()), border(of.ranks()), to(of.ranks()), begin(of.ranks()), from(of.ranks()), first(of.ranks()), place(of.ranks()), all(of.ranks()), rows(of.ranks())
  {
    const int ranks = matrix.ranks();

    for (int rank = 0; rank < ranks; rank++) {
      const std::vector<PetscInt> &ghost = matrix.part[rank].ghost;

      for (int other = 0; other < ranks; other++) {
        const auto begins = std::lower_bound(ghost.begin(), ghost.end(), matrix.ranges[other]), ends = std::lower_bound(ghost.begin(), ghost.end(), matrix.ranges[other + 1]);

        first[rank].push_back((PetscMPIInt)(begins - ghost.begin()));
        from[rank].push_back((PetscMPIInt)(ends - begins));
      }
      arena.push_back(std::make_unique<Shared<char>>(2 * (ghost.size() + PETSCTC_MAX_PEERS) * sizeof(PetscTCWord), mapped));
      missing.push_back(std::make_unique<Shared<PetscTCMissing>>(1, true));
    }
    for (int rank = 0; rank < ranks; rank++) {
      const Part &mine = matrix.part[rank];

      for (int other = 0; other < ranks; other++) {
        begin[rank].push_back((PetscMPIInt)rows[rank].size());
        to[rank].push_back(from[other][rank]);
        place[rank].push_back(first[other][rank]);
        all[rank].push_back((PetscInt)matrix.part[other].ghost.size());
        for (PetscMPIInt k = 0; k < from[other][rank]; k++) rows[rank].push_back(matrix.part[other].ghost[first[other][rank] + k] - matrix.ranges[rank]);
      }
      device_rows.push_back(std::make_unique<Shared<PetscInt>>(rows[rank].size(), false));
      device_rows[rank]->set(rows[rank]);
      halo[rank]                = {};
      halo[rank].layer          = PETSCTC_LAYER_PEER;
      halo[rank].plan           = {ranks, rank, (PetscInt)rows[rank].size(), rows[rank].data(), (PetscMPIInt)mine.ghost.size(), to[rank].data(), begin[rank].data(), from[rank].data(), first[rank].data(), place[rank].data(), all[rank].data()};
      halo[rank].rows           = *device_rows[rank];
      halo[rank].arena.size     = ranks;
      halo[rank].arena.rank     = rank;
      halo[rank].missing        = (PetscTCMissing *)*missing[rank];
      halo[rank].missing_device = *missing[rank];
      for (int other = 0; other < ranks; other++) halo[rank].arena.of[other] = *arena[other];
      border[rank] = {};
      EXPECT_EQ(PETSC_SUCCESS, AIJTCBorderCreate_CUDA(matrix.rows(rank), (PetscCount)mine.j.size(), mine.i.data(), mine.j.data(), mine.a.data(), &border[rank]));
    }
  }
  ~Halos()
  {
    for (int time = 0; time < 2; time++) {
      for (AIJTCBorder &b : border) EXPECT_EQ(PETSC_SUCCESS, AIJTCBorderDestroy_CUDA(&b));
    }
  }
  PetscErrorCode push(int rank, const PetscScalar x[], const AIJTCWAXPY *of, double seconds, PetscTCGhosts *ghosts, cudaStream_t stream)
  {
    PetscFunctionBeginUser;
    PetscCall(PetscTCHaloPush_CUDA(&halo[rank], x, of, ghosts, stream));
    ghosts->patience = patienceOf(seconds);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  void expectNobodyMissing() const
  {
    for (size_t rank = 0; rank < missing.size(); rank++) EXPECT_EQ(0, missing[rank]->get()[0].late) << "rank " << rank;
  }
};

/* y + B x, row by row: the value, and the absolute values of what B adds */
struct Row {
  long double d = 0.0L, absolute = 0.0L;
};

std::vector<Row> BorderTimes(const Matrix &matrix, int rank, const Values &x)
{
  const Part      &mine = matrix.part[rank];
  std::vector<Row> all(matrix.rows(rank));

  for (size_t row = 0; row < all.size(); row++) {
    for (PetscInt e = mine.i[row]; e < mine.i[row + 1]; e++) {
      const long double term = (long double)mine.a[e] * x[mine.ghost[mine.j[e]]];

      all[row].d += term;
      all[row].absolute += fabsl(term);
    }
  }
  return all;
}

void expectProduct(const std::vector<Row> &border, const PetscScalar own[], const PetscScalar y[])
{
  for (size_t row = 0; row < border.size(); row++) { ASSERT_NEAR((double)(own[row] + border[row].d), y[row], (double)(tolerance * (fabsl(own[row]) + border[row].absolute))) << "row " << row; }
}

/* A number and the absolute values of what has been added up to it */
struct Sum {
  long double value = 0.0L, absolute = 0.0L;

  void add(long double term, long double size)
  {
    value += term;
    absolute += size;
  }
};

/* What a product does, which differs from one to the next: nsums, whether the own columns bring sums, whether those of all ranks are added up, whether the vector is made, and how */
struct Product {
  int  nsums;
  bool given, across, in_place, made, minus, shifted;

  explicit Product(int number) : nsums(2 * (number % 3)), given(number % 4 != 3), across(number % 5 != 2), in_place(number % 4 == 1), made(number % 2), minus(number % 3 == 1), shifted(number % 4 == 1) { }
};

/* Parts of a vector */
std::vector<std::unique_ptr<Vector>> Dealt(const Matrix &matrix, unsigned seed, Values *all)
{
  std::vector<std::unique_ptr<Vector>> parts;

  *all = randomValues(matrix.ranges.back(), seed);
  for (int rank = 0; rank < matrix.ranks(); rank++) parts.push_back(std::make_unique<Vector>(true, Values(all->begin() + matrix.ranges[rank], all->begin() + matrix.ranges[rank + 1])));
  return parts;
}

void expectProductsOfRanks(const Kind &kind, int ranks, PetscBool tensor)
{
  const Matrix        matrix(kind, ranks, 17 * ranks);
  Halos               halos(matrix, false);
  Tables              tables(ranks, false, patient);
  Values              w, u, x[products], along[products];
  const auto          ws = Dealt(matrix, 1, &w), us = Dealt(matrix, 2, &u);
  const Values        over = randomValues(products, 3), under = randomValues(products, 4), shift = randomValues(products, 5);
  Vector              over_of(true, over), under_of(true, under), shift_of(true, shift);
  std::vector<Values> own(ranks), from(ranks, Values(products * AIJTC_BORDER_SUMS, 0.0));

  std::vector<std::unique_ptr<Vector>> xs[products], alongs[products], ys, froms, tos;

  for (int p = 0; p < products; p++) {
    xs[p]     = Dealt(matrix, 100 + p, &x[p]);
    alongs[p] = Dealt(matrix, 200 + p, &along[p]);
    if (!Product(p).made) continue;
    const double alpha = (Product(p).minus ? -1.0 : 1.0) * (over[p] / under[p]);

    for (size_t k = 0; k < x[p].size(); k++) x[p][k] = std::fma(alpha, along[p][k], x[p][k] - (Product(p).shifted ? shift[p] : 0.0));
  }
  for (int rank = 0; rank < ranks; rank++) {
    const PetscInt m = matrix.rows(rank), begin = matrix.ranges[rank];

    if (halos.border[rank].m) { EXPECT_EQ(kind.lanes, halos.border[rank].lanes); }
    own[rank] = randomValues(m * products, 6 + rank);
    for (int p = 0; p < products; p++) {
      for (PetscInt row = 0; row < m; row++) {
        const double y = own[rank][p * m + row], wy[] = {w[begin + row] * y, y * y, u[begin + row] * y, u[begin + row] * w[begin + row]};

        for (int k = 0; k < AIJTC_BORDER_SUMS; k++) from[rank][p * AIJTC_BORDER_SUMS + k] += wy[k];
      }
    }
    ys.push_back(std::make_unique<Vector>(true, own[rank]));
    froms.push_back(std::make_unique<Vector>(true, from[rank]));
    tos.push_back(std::make_unique<Vector>(true, Values(products * AIJTC_BORDER_SUMS, NaN)));
  }

  /* First one after the other, without sums of all: nobody waits, and all kernels are loaded */
  std::vector<PetscTCGhosts> first(ranks);
  Vector                     scratch(true, Values(matrix.ranges.back() + 1, 0.0)), sums_of(true, Values(AIJTC_BORDER_SUMS, 0.0));

  for (int rank = 0; rank < ranks; rank++) CALL(halos.push(rank, *xs[0][rank], NULL, impatient, &first[rank], nullptr));
  for (int rank = 0; rank < ranks; rank++) {
    for (int nsums : {0, 2, 4}) {
      const AIJTCBorderSums sums = {nsums, *ws[rank], *us[rank], NULL, sums_of, NULL, 0};

      scratch.set(Values(matrix.ranges.back() + 1, 0.5));
      CALL(AIJTCBorderMultAdd_CUDA(&halos.border[rank], &first[rank], tensor, scratch, &sums, nullptr));
      expectProduct(BorderTimes(matrix, rank, x[0]), Values(matrix.rows(rank), 0.5).data(), scratch.get().data());
    }
  }
  halos.expectNobodyMissing();

  sideBySide(ranks, [&](int rank, cudaStream_t stream) {
    for (int p = 0; p < products; p++) {
      const Product      does(p);
      PetscScalar *const brought = *froms[rank] + p * AIJTC_BORDER_SUMS, *const to = does.in_place && does.given ? brought : *tos[rank] + p * AIJTC_BORDER_SUMS;
      const AIJTCBorderSums sums = {does.nsums, *ws[rank], *us[rank], does.given ? brought : NULL, to, does.across ? (PetscTCPeers *)*tables.table[rank] : NULL, does.across && does.nsums ? ++tables.tag[rank] : 0};
      const AIJTCWAXPY      of   = {*xs[p][rank], *alongs[p][rank], over_of + p, under_of + p, does.shifted ? shift_of + p : NULL, NULL, (PetscBool)does.minus};
      PetscTCGhosts         ghosts;

      comeLater(rank, p);
      EXPECT_EQ(PETSC_SUCCESS, halos.push(rank, does.made ? NULL : (PetscScalar *)*xs[p][rank], does.made ? &of : NULL, patient, &ghosts, stream));
      EXPECT_EQ(PETSC_SUCCESS, PetscTCHaloAwait_CUDA(&halos.halo[rank], stream));
      EXPECT_EQ(PETSC_SUCCESS, AIJTCBorderMultAdd_CUDA(&halos.border[rank], &ghosts, tensor, *ys[rank] + p * matrix.rows(rank), &sums, stream));
    }
  });
  halos.expectNobodyMissing();
  tables.expectNobodyMissing();

  std::vector<Values> in_place(ranks), to(ranks), y(ranks);

  for (int rank = 0; rank < ranks; rank++) {
    in_place[rank] = froms[rank]->get();
    to[rank]       = tos[rank]->get();
    y[rank]        = ys[rank]->get();
  }
  for (int p = 0; p < products; p++) {
    SCOPED_TRACE("product " + std::to_string(p));
    const Product    does(p);
    std::vector<Sum> total(AIJTC_BORDER_SUMS);

    for (int rank = 0; rank < ranks; rank++) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      const PetscInt           m = matrix.rows(rank), begin = matrix.ranges[rank];
      const std::vector<Row>   border = BorderTimes(matrix, rank, x[p]);
      const PetscScalar *const before = own[rank].data() + p * m;
      std::vector<Sum>         sum(AIJTC_BORDER_SUMS);

      expectProduct(border, before, y[rank].data() + p * m);
      for (int k = 0; k < AIJTC_BORDER_SUMS && does.given; k++) sum[k].add(from[rank][p * AIJTC_BORDER_SUMS + k], fabsl(from[rank][p * AIJTC_BORDER_SUMS + k]));
      for (PetscInt row = 0; row < m; row++) {
        const long double d = border[row].d, absolute = border[row].absolute;

        sum[0].add(w[begin + row] * d, fabsl(w[begin + row]) * absolute);
        sum[1].add(d * (2.0L * before[row] + d), absolute * (2.0L * fabsl(before[row]) + absolute));
        sum[2].add(u[begin + row] * d, fabsl(u[begin + row]) * absolute);
      }
      for (int k = 0; k < does.nsums; k++) {
        const double got = (does.in_place && does.given ? in_place : to)[rank][p * AIJTC_BORDER_SUMS + k];

        if (!does.across) { EXPECT_NEAR((double)sum[k].value, got, (double)(tolerance * sum[k].absolute)) << "sum " << k; }
        total[k].add(sum[k].value, sum[k].absolute);
      }
      for (int k = does.nsums; k < AIJTC_BORDER_SUMS; k++) EXPECT_TRUE(std::isnan(to[rank][p * AIJTC_BORDER_SUMS + k])) << "sum " << k << " is not wanted";
    }
    for (int k = 0; k < does.nsums && does.across; k++) {
      const auto got = [&](int rank) { return (does.in_place && does.given ? in_place : to)[rank][p * AIJTC_BORDER_SUMS + k]; };

      EXPECT_NEAR((double)total[k].value, got(0), (double)(tolerance * total[k].absolute)) << "sum " << k;
      for (int rank = 1; rank < ranks; rank++) EXPECT_EQ(bitsOf(got(0)), bitsOf(got(rank))) << "sum " << k << ", rank " << rank;
    }
  }
}

TEST_P(Peers, MultiplyOnTheBorder)
{
  for (const Kind &kind : kinds) {
    for (int ranks = 2; ranks <= most_ranks && !HasFailure(); ranks++) {
      SCOPED_TRACE(std::string("rows ") + kind.name + ", " + std::to_string(ranks) + " ranks");
      expectProductsOfRanks(kind, ranks, tensor);
    }
  }
}

/* The elements of a product are there until those of the next but one: a rank may have sent those of the next before another has read them */
TEST_P(Peers, SendOneProductAhead)
{
  const Matrix          matrix(kinds[3], 4, 3);
  Halos                 halos(matrix, false);
  const AIJTCBorderSums none = {};
  constexpr int         many = 5;
  Values                x[many];
  PetscTCGhosts         ghosts[many][4];
  Vector                y(true, Values(matrix.ranges.back(), 0.0));

  std::vector<std::unique_ptr<Vector>> xs[many];

  for (int p = 0; p < many; p++) xs[p] = Dealt(matrix, p, &x[p]);
  for (int p = 0; p <= many; p++) {
    for (int rank = 0; rank < 4 && p < many; rank++) CALL(halos.push(rank, *xs[p][rank], NULL, impatient, &ghosts[p][rank], nullptr));
    for (int rank = 0; rank < 4 && p > 0; rank++) {
      y.set(Values(matrix.ranges.back(), 0.25));
      CALL(AIJTCBorderMultAdd_CUDA(&halos.border[rank], &ghosts[p - 1][rank], tensor, y, &none, nullptr));
      expectProduct(BorderTimes(matrix, rank, x[p - 1]), Values(matrix.rows(rank), 0.25).data(), y.get().data());
    }
  }
  halos.expectNobodyMissing();
}

/* Of a vector that is made the very bits: those of the product that makes it, too */
TEST_P(Peers, SendElementsOfAMadeVector)
{
  const Matrix matrix(kinds[0], 3, 5);
  Halos        halos(matrix, true);
  Values       base, along;
  const auto   bases = Dealt(matrix, 1, &base), alongs = Dealt(matrix, 2, &along);
  Vector       scalars(true, {0.7, -1.3, 0.1});

  for (bool shifted : {false, true}) {
    for (bool minus : {false, true}) {
      PetscTCGhosts ghosts[3];

      for (int rank = 0; rank < 3; rank++) {
        const AIJTCWAXPY of = {*bases[rank], *alongs[rank], scalars + 0, scalars + 1, shifted ? scalars + 2 : NULL, NULL, (PetscBool)minus};

        CALL(halos.push(rank, NULL, &of, impatient, &ghosts[rank], nullptr));
      }
      ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
      for (int rank = 0; rank < 3; rank++) {
        const std::vector<PetscInt> &ghost = matrix.part[rank].ghost;

        for (size_t g = 0; g < ghost.size(); g++) {
          const double      number   = std::fma(minus ? -(0.7 / -1.3) : 0.7 / -1.3, along[ghost[g]], base[ghost[g]] - (shifted ? 0.1 : 0.0));
          const PetscTCWord expected = wordOf(number, ghosts[rank].tag, ghosts[rank].tag), word = ghosts[rank].word[g];

          ASSERT_TRUE(expected.half[0] == word.half[0] && expected.half[1] == word.half[1]) << "ghost " << g << " of rank " << rank;
        }
      }
    }
  }
}

/* By MPI elements come in the memory of the host, from where a process sends them, and numbers of ghosts without tags */
TEST_P(Peers, LeaveElementsForMPI)
{
  const Matrix matrix(kinds[3], 4, 7);
  Halos        halos(matrix, false);
  Values       x;
  const auto   xs = Dealt(matrix, 9, &x), ws = Dealt(matrix, 10, &x), us = Dealt(matrix, 11, &x);
  Vector       y(true, Values(matrix.ranges.back(), 0.0)), sums_of(true, Values(AIJTC_BORDER_SUMS, 0.0));

  x = randomValues(matrix.ranges.back(), 9);
  SharedOfRanks<PetscScalar> sent, ghost;
  std::vector<PetscTCGhosts> ghosts(4);

  for (int rank = 0; rank < 4; rank++) {
    PetscTCHalo &halo = halos.halo[rank];

    sent.push_back(std::make_unique<Shared<PetscScalar>>(halo.plan.nsend, true));
    ghost.push_back(std::make_unique<Shared<PetscScalar>>(halo.plan.nghosts, false));
    halo.layer = PETSCTC_LAYER_MPI;
    halo.send = halo.send_device = *sent[rank];
    halo.ghosts                  = *ghost[rank];
    ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&halo.sent, cudaEventDisableTiming));
    CALL(PetscTCHaloPush_CUDA(&halo, *xs[rank], NULL, &ghosts[rank], nullptr));
    ASSERT_EQ(cudaSuccess, cudaEventSynchronize(halo.sent));
    for (PetscInt k = 0; k < halo.plan.nsend; k++) ASSERT_EQ(x[matrix.ranges[rank] + halos.rows[rank][k]], (*sent[rank])[k]) << "element " << k << " of rank " << rank;
    EXPECT_EQ(nullptr, ghosts[rank].word);
    EXPECT_EQ(0u, ghosts[rank].neighbors);
    EXPECT_EQ((const PetscScalar *)*ghost[rank], ghosts[rank].number);
  }
  for (int rank = 0; rank < 4; rank++) {
    std::vector<PetscScalar> come;

    for (int other = 0; other < 4; other++) {
      const PetscScalar *const of = *sent[other] + halos.begin[other][rank];

      come.insert(come.end(), of, of + halos.to[other][rank]);
    }
    ghost[rank]->set(come);
    const std::vector<Row> border = BorderTimes(matrix, rank, x);
    const AIJTCBorderSums  sums   = {2, *ws[rank], NULL, NULL, sums_of, NULL, 0};
    Sum                    wy;

    y.set(Values(matrix.ranges.back(), -0.5));
    CALL(AIJTCBorderMultAdd_CUDA(&halos.border[rank], &ghosts[rank], tensor, y, &sums, nullptr));
    expectProduct(border, Values(matrix.rows(rank), -0.5).data(), y.get().data());
    const Values w = ws[rank]->get();

    for (size_t row = 0; row < border.size(); row++) wy.add(w[row] * border[row].d, fabsl(w[row]) * border[row].absolute);
    EXPECT_NEAR((double)wy.value, sums_of.get()[0], (double)(tolerance * wy.absolute));
    ASSERT_EQ(cudaSuccess, cudaEventDestroy(halos.halo[rank].sent));
  }
}

/* Of a rank that never comes: rows that have ghosts of it are NaN, and so are the sums; the others are right */
TEST_P(Peers, AreNotANumberWhereGhostsAreMissing)
{
  constexpr int absent = 2;

  for (const Kind &kind : kinds) {
    SCOPED_TRACE(std::string("rows ") + kind.name);
    const Matrix               matrix(kind, 4, 23);
    Halos                      halos(matrix, false);
    Values                     x;
    const auto                 xs = Dealt(matrix, 9, &x);
    Vector                     y(true, Values(matrix.ranges.back(), 0.0)), sums_of(true, Values(AIJTC_BORDER_SUMS, 0.0));
    std::vector<PetscTCGhosts> ghosts(4);
    int                        whole = 0, torn = 0;

    for (int rank = 0; rank < 4; rank++) {
      if (rank != absent) { CALL(halos.push(rank, *xs[rank], NULL, impatient, &ghosts[rank], nullptr)); }
    }
    const AIJTCBorderSums sums = {2, *xs[0], NULL, NULL, sums_of, NULL, 0};

    y.set(Values(matrix.ranges.back(), 0.5));
    CALL(AIJTCBorderMultAdd_CUDA(&halos.border[0], &ghosts[0], tensor, y, &sums, nullptr));
    const Part            &mine = matrix.part[0];
    const std::vector<Row> all  = BorderTimes(matrix, 0, x);
    const Values           got  = y.get();

    for (PetscInt row = 0; row < matrix.rows(0); row++) {
      bool missing = false;

      for (PetscInt e = mine.i[row]; e < mine.i[row + 1]; e++) missing = missing || matrix.ownerOf(mine.ghost[mine.j[e]]) == absent;
      if (missing) ASSERT_TRUE(std::isnan(got[row])) << "row " << row;
      else ASSERT_NEAR((double)(0.5L + all[row].d), got[row], (double)(tolerance * (0.5L + all[row].absolute))) << "row " << row;
      (missing ? torn : whole)++;
    }
    EXPECT_TRUE(torn > 0 && whole > 0) << "the matrix tells nothing";
    EXPECT_TRUE(std::isnan(sums_of.get()[0]) && std::isnan(sums_of.get()[1]));
    const PetscTCMissing late = halos.missing[0]->get()[0];

    EXPECT_EQ(1, late.late);
    EXPECT_TRUE(late.rank == absent || late.rank == PETSCTC_MAX_PEERS) << "rank " << late.rank;
    EXPECT_EQ(0, halos.missing[absent]->get()[0].late);
  }
}

/* Who needs nothing of others waits for those that need its elements: else it would come to where these have not read what it has stored */
TEST_P(Peers, WaitForThoseThatNeedTheirElements)
{
  const Matrix          matrix(kinds[3], 2, 29);
  Halos                 halos(matrix, false);
  const AIJTCBorderSums none = {};
  Values                x;
  const auto            xs = Dealt(matrix, 9, &x);
  Vector                y(true, Values(matrix.ranges.back(), 0.5));
  PetscTCGhosts         ghosts;

  CALL(halos.push(1, *xs[1], NULL, impatient, &ghosts, nullptr));
  EXPECT_EQ(0, ghosts.nghosts);
  EXPECT_EQ(1u, ghosts.neighbors);
  CALL(AIJTCBorderMultAdd_CUDA(&halos.border[1], &ghosts, tensor, y, &none, nullptr));
  EXPECT_TRUE(sameBits(Values(matrix.ranges.back(), 0.5), y.get()));
  EXPECT_EQ(1, halos.missing[1]->get()[0].late);
  EXPECT_EQ(0, halos.missing[1]->get()[0].rank);
}

/* Sums that wait in vain are NaN */
TEST_P(Peers, AreNotANumberWhereSumsAreMissing)
{
  const Matrix          matrix(kinds[0], 2, 31);
  Halos                 halos(matrix, false);
  Tables                tables(2, false, impatient);
  Values                x;
  const auto            xs = Dealt(matrix, 9, &x);
  Vector                y(true, Values(matrix.ranges.back(), 0.5)), sums_of(true, Values(AIJTC_BORDER_SUMS, 0.0));
  PetscTCGhosts         ghosts[2];
  const AIJTCBorderSums sums = {2, *xs[0], NULL, NULL, sums_of, *tables.table[0], 1};

  for (int rank = 0; rank < 2; rank++) CALL(halos.push(rank, *xs[rank], NULL, impatient, &ghosts[rank], nullptr));
  CALL(AIJTCBorderMultAdd_CUDA(&halos.border[0], &ghosts[0], tensor, y, &sums, nullptr));
  expectProduct(BorderTimes(matrix, 0, x), Values(matrix.rows(0), 0.5).data(), y.get().data());
  EXPECT_TRUE(std::isnan(sums_of.get()[0]) && std::isnan(sums_of.get()[1]));
  EXPECT_EQ(1, tables.missing[0]->get()[0].late);
  EXPECT_EQ(1, tables.missing[0]->get()[0].rank);
  halos.expectNobodyMissing();
}

/* Of one process there is nobody to send to */
TEST_P(Peers, MakeAHaloOfOneProcess)
{
  const PetscInt ranges[] = {0, 17};
  Vector         x(true, Values(17, 1.0));
  PetscTCGhosts  ghosts;
  PetscTCHalo    halo = {};

  CALL(PetscTCHaloDestroy_CUDA(&halo)); /* all zero: nothing */
  CALL(PetscTCHaloCreate_CUDA(MPI_COMM_SELF, 1, PETSCTC_LAYER_MPI, 0, NULL, ranges, &halo));
  EXPECT_EQ(PETSCTC_LAYER_MPI, halo.layer);
  CALL(PetscTCHaloPush_CUDA(&halo, x, NULL, &ghosts, nullptr));
  EXPECT_EQ(nullptr, ghosts.word);
  CALL(PetscTCHaloAwait_CUDA(&halo, nullptr));
  for (int time = 0; time < 2; time++) CALL(PetscTCHaloDestroy_CUDA(&halo));
}

INSTANTIATE_TEST_SUITE_P(Backends, Peers, ::testing::Values(Backend::CUDATensor, Backend::CUDACore), backendName);
#endif
} // namespace
