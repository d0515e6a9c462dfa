/* Hard sparsity patterns, values and parameters for the tests of layouts and their products */
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <vector>

struct Csr {
  PetscInt                 m = 0, n = 0;
  std::vector<PetscInt>    i{0}, j;
  std::vector<PetscScalar> a;

  PetscInt Length(PetscInt r) const { return i[r + 1] - i[r]; }
};

enum class ValueKind {
  Random,         /* no two alike */
  Few,            /* seven, at random */
  Floats,         /* random, exactly floats */
  ByOffset,       /* a function of column - row */
  AlmostByOffset, /* the same but for some rows */
  Same,
  Strange /* zeros of both signs, NaNs with payloads, Inf, numbers near the ends of float's range */
};

inline const std::vector<ValueKind> &ValueKinds()
{
  static const std::vector<ValueKind> all = {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::ByOffset, ValueKind::AlmostByOffset, ValueKind::Same, ValueKind::Strange};

  return all;
}

inline const char *Describe(ValueKind kind)
{
  static const char *const name[] = {"random values", "few values", "floats", "values by offset", "values almost by offset", "one value", "strange values"};

  return name[(int)kind];
}

/* A NaN whose bits differ from those of others: the low bits are the payload, and a signalling one is negative */
inline PetscScalar NaNWithPayload(uint32_t payload, bool signalling = false)
{
  PetscScalar value;

  if constexpr (sizeof(value) == 4) {
    const uint32_t bits = (signalling ? 0xff800000u : 0x7fc00000u) | payload;

    memcpy(&value, &bits, sizeof(value));
  } else {
    const uint64_t bits = (signalling ? 0xfff0000000000000u : 0x7ff8000000000000u) | payload;

    memcpy(&value, &bits, sizeof(value));
  }
  return value;
}

/* A number that is no float where PetscScalar is double */
#if PetscDefined(USE_REAL_SINGLE)
static const PetscScalar Huge = 0x1.5p127;
#else
static const PetscScalar Huge = 1e300;
#endif

inline PetscScalar StrangeValue(unsigned k)
{
  static const PetscScalar value[] =
  { 0.0,
    -0.0,
    NaNWithPayload(1),
    NaNWithPayload(2),
    NaNWithPayload(1, true),
    (PetscScalar)INFINITY,
    (PetscScalar)-INFINITY,
    5e-324,
    1e-45,
    0x1p-149,
    0x1p-150,
    Huge,
    0x1.fffffep127,
#if PetscDefined(USE_REAL_DOUBLE)
    0x1.ffffffp127
#endif
  };

  return value[k % (sizeof(value) / sizeof(value[0]))];
}

inline void SetValues(Csr &A, ValueKind kind)
{
  std::mt19937                           random(20261122);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);

  A.a.resize(A.j.size());
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) {
      const auto by_offset = (PetscScalar)(1.0 / (3.0 + std::fmod((double)A.j[e] - r + 1e6, 97.0)));

      switch (kind) {
      case ValueKind::Random:
        A.a[e] = uniform(random);
        break;
      case ValueKind::Few:
        A.a[e] = 1.0 / (3.0 + random() % 7);
        break;
      case ValueKind::Floats:
        A.a[e] = (float)uniform(random);
        break;
      case ValueKind::ByOffset:
        A.a[e] = by_offset;
        break;
      case ValueKind::AlmostByOffset:
        A.a[e] = r % 61 == 7 ? uniform(random) : by_offset;
        break;
      case ValueKind::Same:
        A.a[e] = 1.1;
        break;
      case ValueKind::Strange:
        A.a[e] = StrangeValue((unsigned)random());
        break;
      }
    }
  }
}

/* A matrix with the given row lengths; columns of a row are distinct, spread over the row, in random order if unsorted */
inline Csr FromLengths(PetscInt n, const std::vector<PetscInt> &lengths, bool unsorted = false)
{
  std::mt19937 random(20261121);
  Csr          A;

  A.m = (PetscInt)lengths.size();
  A.n = n;
  for (PetscInt length : lengths) {
    const auto first = A.j.size();
    const auto shift = random() % n;

    for (PetscInt k = 0; k < length; k++) A.j.push_back((PetscInt)((shift + (int64_t)k * n / length) % n));
    if (unsorted) std::shuffle(A.j.begin() + first, A.j.end(), random);
    else std::sort(A.j.begin() + first, A.j.end());
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

inline std::vector<PetscInt> RandomLengths(PetscInt m, PetscInt low, PetscInt high, unsigned seed)
{
  std::mt19937          random(seed);
  std::vector<PetscInt> lengths(m);

  for (auto &length : lengths) length = low + (PetscInt)(random() % (high - low + 1));
  return lengths;
}

/* Few long rows, many short ones */
inline std::vector<PetscInt> PowerLawLengths(PetscInt m, PetscInt most, unsigned seed)
{
  std::mt19937                           random(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<PetscInt>                  lengths(m);

  for (auto &length : lengths) length = (PetscInt)std::min((double)most, std::pow(1.0 - uniform(random), -1.1)) - (random() % 4 == 0);
  return lengths;
}

/* A stencil on a grid of k^3 points: the neighbours at most `reach` steps away, each step along one axis and at most one along each */
inline Csr Stencil(PetscInt k, int reach)
{
  Csr A;

  A.m = A.n = k * k * k;
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt c[3] = {r % k, r / k % k, r / k / k};

    for (PetscInt s = 0; s < 27; s++) {
      const PetscInt d[3] = {s % 3 - 1, s / 3 % 3 - 1, s / 9 - 1};
      bool           in   = std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) <= reach;

      for (int x = 0; x < 3; x++) in = in && c[x] + d[x] >= 0 && c[x] + d[x] < k;
      if (in) A.j.push_back(r + d[0] + k * (d[1] + k * d[2]));
    }
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

inline Csr SevenPoint(PetscInt k)
{
  return Stencil(k, 1);
}

inline Csr TwentySevenPoint(PetscInt k)
{
  return Stencil(k, 3);
}

/* kron(A, dense b x b), the values by offset */
inline Csr Blocks(const Csr &A, PetscInt b)
{
  Csr B;

  B.m = b * A.m;
  B.n = b * A.n;
  for (PetscInt r = 0; r < B.m; r++) {
    for (PetscInt e = A.i[r / b]; e < A.i[r / b + 1]; e++)
      for (PetscInt k = 0; k < b; k++) B.j.push_back(b * A.j[e] + k);
    B.i.push_back((PetscInt)B.j.size());
  }
  SetValues(B, ValueKind::ByOffset);
  return B;
}

inline Csr Banded(PetscInt m, PetscInt n, const std::vector<PetscInt> &offsets)
{
  Csr A;

  A.m = m;
  A.n = n;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt offset : offsets)
      if (r + offset >= 0 && r + offset < n) A.j.push_back(r + offset);
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* As the rows of a grid of planes of 20,040, with lines as long as the halo of a swept window (128, 288, 640): columns at the very edges of windows, and some beyond. Every 1000th row has values of its own; all are integers */
inline Csr SweptPlanes(PetscInt m, PetscInt n, PetscInt line = 288)
{
  Csr A = Banded(m, n, {-20040, line - 20040, -line, -1, 0, line, 20040});

  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) A.a[k] = r % 1000 == 0 ? (PetscScalar)(r / 1000 % 5) : (r == A.j[k] ? 7.0 : (A.j[k] > r ? -1.0 : 2.0));
  }
  return A;
}

/* One entry a row, in the first half on the diagonal, else `offset` right of it */
inline Csr TwoOffsets(PetscInt m, PetscInt offset)
{
  Csr A;

  A.m = m;
  A.n = m + offset;
  for (PetscInt r = 0; r < m; r++) {
    A.j.push_back(r < m / 2 ? r : r + offset);
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* The entries that keep(row, column, place of the entry) is true of */
template <class Keep>
Csr Keeping(const Csr &A, Keep keep)
{
  Csr B;

  B.m = A.m;
  B.n = A.n;
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++)
      if (keep(r, A.j[e], e)) B.j.push_back(A.j[e]);
    B.i.push_back((PetscInt)B.j.size());
  }
  SetValues(B, ValueKind::Random);
  return B;
}

/* Without every n-th entry */
inline Csr Thinned(const Csr &A, PetscInt n)
{
  return Keeping(A, [n](PetscInt, PetscInt, PetscInt e) { return e % n != n - 1; });
}

/* Every other entry repeats the column before it */
inline Csr WithDuplicates(Csr A)
{
  for (PetscInt r = 0; r < A.m; r++)
    for (PetscInt e = A.i[r] + 1; e < A.i[r + 1]; e += 2) A.j[e] = A.j[e - 1];
  return A;
}

/* Rows and columns numbered anew, at random: neighbours in the graph share columns, neighbours in number do not. Within `window` numbers each, if it is not 0: then these do, too. Columns ascend unless unsorted */
inline Csr Renumbered(const Csr &A, bool unsorted = false, PetscInt window = 0)
{
  std::mt19937          random(20261124);
  std::vector<PetscInt> number(A.m), old(A.m);
  Csr                   B;

  B.m = B.n = A.m; /* square */
  std::iota(number.begin(), number.end(), 0);
  if (!window) window = A.m;
  for (PetscInt r = 0; r < A.m; r += window) std::shuffle(number.begin() + r, number.begin() + std::min(A.m, r + window), random);
  for (PetscInt r = 0; r < A.m; r++) old[number[r]] = r;
  for (PetscInt r : old) {
    const auto first = B.j.size();

    for (PetscInt e = A.i[r]; e < A.i[r + 1]; e++) B.j.push_back(number[A.j[e]]);
    if (unsorted) std::shuffle(B.j.begin() + first, B.j.end(), random);
    else std::sort(B.j.begin() + first, B.j.end());
    B.i.push_back((PetscInt)B.j.size());
  }
  SetValues(B, ValueKind::Random);
  return B;
}

/* A row has any one of each `stride` columns: so many rows have all columns */
inline Csr Combs(PetscInt n, PetscInt stride)
{
  std::mt19937 random(20261125);
  Csr          A;

  A.m = A.n = n;
  for (PetscInt r = 0; r < n; r++) {
    for (PetscInt first = 0; first < n; first += stride) {
      const PetscInt c = first + (PetscInt)(random() % stride);

      if (c < n) A.j.push_back(c);
    }
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* Every n-th row without entries, but others have its column; every (n + 1)-th with its diagonal entry alone, and no other has its column */
inline Csr WithIsolatedRows(const Csr &A, PetscInt n)
{
  return Keeping(A, [n](PetscInt r, PetscInt c, PetscInt) { return r % (n + 1) == n ? c == r : r % n != n - 1 && c % (n + 1) != n; });
}

/* Row and column r become `apart` r, and the rows between are empty */
inline Csr Spread(const Csr &A, PetscInt apart)
{
  Csr B;

  B.m = B.n = A.m * apart;
  B.j       = A.j;
  B.a       = A.a;
  B.i.clear();
  for (PetscInt r = 0; r < B.m; r++) B.i.push_back(A.i[(r + apart - 1) / apart]);
  B.i.push_back((PetscInt)B.j.size());
  for (PetscInt &c : B.j) c *= apart;
  return B;
}

struct Pattern {
  std::string          name;
  std::function<Csr()> make;
};

inline void PrintTo(const Pattern &pattern, std::ostream *out)
{
  *out << pattern.name;
}

inline Csr LengthsWithOne(PetscInt m, PetscInt length, PetscInt where, PetscInt one)
{
  std::vector<PetscInt> lengths(m, length);

  lengths[where] = one;
  return FromLengths(std::max(one, (PetscInt)90), lengths);
}

/* clang-format off */
/* Most of their slices have few lanes without an entry, in one kind of slice or another */
inline std::vector<Pattern> NearlyFullPatterns()
{
  return {
    {"nearly_full_stencil",    [] { return SevenPoint(12); }},
    {"nearly_full_bands",      [] { return Thinned(Banded(600, 600, {-40, -1, 0, 1, 2, 3, 90, 400}), 17); }},
    {"nearly_full_blocks",     [] { return Blocks(Thinned(Banded(120, 120, {-2, -1, 0, 1, 2}), 23), 3); }},
    {"nearly_full_rows",       [] { return FromLengths(300, RandomLengths(500, 15, 16, 18)); }},
    {"nearly_full_unsorted",   [] { return FromLengths(70000, RandomLengths(260, 15, 16, 19), true); }},
    {"nearly_full_long_rows",  [] { return FromLengths(700, RandomLengths(100, 90, 96, 20)); }},
    {"nearly_full_pieces",     [] { return FromLengths(90000, RandomLengths(5, 2010, 2048, 22)); }},
  };
}

/* As of unstructured meshes: gathered where that is asked for */
inline std::vector<Pattern> MeshPatterns()
{
  return {
    {"mesh",                   [] { return Renumbered(SevenPoint(13)); }},
    {"mesh_one_way",           [] { return Renumbered(Thinned(TwentySevenPoint(11), 3)); }},
    {"mesh_isolated_rows",     [] { return WithIsolatedRows(Renumbered(SevenPoint(12)), 7); }},
    {"mesh_unsorted",          [] { return WithDuplicates(Renumbered(TwentySevenPoint(10), true)); }},
    {"mesh_three_dof",         [] { return Blocks(Renumbered(SevenPoint(9)), 3); }},
  };
}

inline std::vector<Pattern> Patterns()
{
  using Lengths = std::vector<PetscInt>;

  std::vector<Pattern> all = {
    {"one_by_one",             [] { return FromLengths(1, Lengths{1}); }},
    {"no_rows",                [] { return FromLengths(7, Lengths{}); }},
    {"no_columns",             [] { return FromLengths(0, Lengths{}); }},
    {"no_nonzeros",            [] { return FromLengths(11, Lengths(137, 0)); }},
    {"rows_without_columns",   [] { Csr A; A.m = 9; A.i.assign(10, 0); return A; }},
    {"one_per_row",            [] { return FromLengths(1000, Lengths(1000, 1)); }},
    {"few_columns",            [] { return FromLengths(5, RandomLengths(200, 0, 5, 21)); }},
    {"short_lengths",          [] { return FromLengths(50, RandomLengths(1003, 0, 4, 1)); }},
    {"pairs",                  [] { return FromLengths(90, Lengths(261, 2)); }},
    {"mostly_empty",           [] { Lengths l(500, 0); l[3] = 5; l[77] = 1; l[499] = 3; return FromLengths(20, l); }},
    {"diagonal",               [] { return Banded(5000, 5000, {0}); }},
    {"tridiagonal",            [] { return Banded(4999, 4999, {-1, 0, 1}); }},
    {"wide_bands",             [] { return Banded(600, 100000, {0, 7, 300, 70000, 99000}); }},
    {"as_dear_as_deltas",      [] { return TwoOffsets(12, 1); }}, /* with one row group, 2 slots of 12 bytes and 1 slot with 12 deltas */
    {"dearer_than_deltas",     [] { return TwoOffsets(11, 1); }},
    {"as_dear_as_wide_deltas", [] { return TwoOffsets(6, 300); }},
    {"seven_point_small",      [] { return SevenPoint(5); }},
    {"seven_point",            [] { return SevenPoint(13); }},
    {"twenty_seven_point",     [] { return TwentySevenPoint(9); }},
    {"three_dof",              [] { return Blocks(TwentySevenPoint(6), 3); }},
    {"eight_dof",              [] { return Blocks(SevenPoint(4), 8); }},
    {"all_long",               [] { return FromLengths(2000, RandomLengths(45, 300, 1024, 3)); }},
    {"all_long_pieces",        [] { return FromLengths(6000, RandomLengths(11, 257, 6000, 4)); }},
    {"dense_blocks_of_rows",   [] { return Banded(100, 100, [] { Lengths o; for (PetscInt d = -99; d < 100; d++) o.push_back(d); return o; }()); }},
    {"dense_row_among_short",  [] { return LengthsWithOne(700, 2, 351, 50000); }},
    {"dense_row_among_empty",  [] { return LengthsWithOne(300, 0, 17, 30000); }},
    {"lengths_to_1e5",         [] { Lengths l = RandomLengths(60, 0, 3000, 12); l[5] = 100000; l[6] = 0; l[33] = 99999; return FromLengths(120000, l); }},
    {"power_law",              [] { return FromLengths(4000, PowerLawLengths(3000, 4000, 13)); }},
    {"at_the_thresholds",      [] { return FromLengths(3000, Lengths{0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2048, 2049}); }},
    {"wide",                   [] { return FromLengths(3000, Lengths{7, 900, 0, 1, 100}); }},
    {"tall",                   [] { return FromLengths(5, RandomLengths(3001, 0, 5, 5)); }},
    {"unstructured",           [] { return FromLengths(3000, RandomLengths(3000, 10, 16, 9)); }},
    {"all_classes",            [] { return FromLengths(1500, RandomLengths(400, 0, 600, 6)); }},
    {"unsorted",               [] { return FromLengths(1500, RandomLengths(300, 0, 400, 7), true); }},
    {"unsorted_short",         [] { return FromLengths(300, RandomLengths(700, 0, 12, 8), true); }},
    {"duplicates",             [] { return WithDuplicates(FromLengths(300, RandomLengths(500, 0, 40, 10))); }},
    {"duplicates_unsorted",    [] { return WithDuplicates(FromLengths(800, RandomLengths(200, 0, 300, 11), true)); }},
  };

  for (const Pattern &pattern : NearlyFullPatterns()) all.push_back(pattern);
  for (const Pattern &pattern : MeshPatterns()) all.push_back(pattern);
  return all;
}
/* clang-format on */

/* PETSCTC_TEST_SHORT in the environment, for tools that make a program slow: smaller systems, fewer of the largest */
inline bool SmallSystems()
{
  const char *few = getenv("PETSCTC_TEST_SHORT");

  return few && *few;
}

/* Every combination of groups and thresholds, for each compression, and some gathered; their number has no common divisor with that of compressions or kinds of values. bs is that of the matrix, to be filled in, where it is PETSC_DECIDE.
   Where systems shall be small every fourth, and those with deltas in all slices: all groups and thresholds still occur */
inline std::vector<AIJTCParams> ParamsToTry()
{
  const PetscInt window[]    = {0, 8192, 64, 1};
  const PetscInt limits[][2] = {
    {64,            0            },
    {256,           4            },
    {1024,          128          },
    {PETSC_INT_MAX, PETSC_INT_MAX}
  };
  std::vector<AIJTCParams> all;

  for (const auto &limit : limits) {
    for (PetscInt rrows : {1, 2, 4}) all.push_back({limit[0], limit[1], window[all.size() % 4], rrows, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0});
  }
  all.push_back({PETSC_INT_MAX, 0, 0, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}); /* tiles only */
  all.push_back({0, 0, 33, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0});            /* long rows only */
  all.push_back({256, 40, 100, 2, 2, AIJTC_COMPRESS_BOTH, 4096, 8});                   /* blocks where there may be none; not gathered */
  all.push_back({256, 40, 100, 4, 5, AIJTC_COMPRESS_BOTH, 4096, 0});
  all.push_back({PETSC_INT_MAX, PETSC_INT_MAX, 64, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 8}); /* gathered where the matrix allows */
  all.push_back({1024, 128, 8192, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 2});
  all.push_back({PETSC_INT_MAX, PETSC_INT_MAX, 7, 1, 8, AIJTC_COMPRESS_BOTH, 4096, 0});
  all.push_back({256, 40, 64, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0, PETSC_TRUE}); /* deltas in all slices of rows */
  all.push_back({PETSC_INT_MAX, PETSC_INT_MAX, 0, 2, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0, PETSC_TRUE});
  if (!SmallSystems()) return all;
  std::vector<AIJTCParams> some(all.end() - 2, all.end());

  for (size_t k = 0; k + 2 < all.size(); k += 4) some.push_back(all[k]);
  return some;
}

inline const std::vector<AIJTCCompress> &Compressions()
{
  static const std::vector<AIJTCCompress> all = {AIJTC_COMPRESS_OFF, AIJTC_COMPRESS_PATTERN, AIJTC_COMPRESS_VALUE, AIJTC_COMPRESS_BOTH};

  return all;
}

inline AIJTCParams WithBlockSize(AIJTCParams params, const Csr &A)
{
  AIJTCTraits traits;

  if (params.bs == PETSC_DECIDE) params.bs = AIJTCProbe_Host(A.m, A.i.data(), A.j.data(), A.a.data(), &traits, nullptr) == PETSC_SUCCESS ? traits.bs : -1;
  return params;
}

inline std::string Describe(const AIJTCParams &params)
{
  return "long above " + std::to_string(params.long_min) + ", short up to " + std::to_string(params.short_max) + ", window " + std::to_string(params.window) + ", row groups " + std::to_string(params.rrows) + ", block size " +
         std::to_string(params.bs) + ", compression " + std::to_string((int)params.compress) + ", dictionary from " + std::to_string(params.dict_min) + ", gathered by " + std::to_string(params.gather) + (params.near ? ", near" : "");
}
