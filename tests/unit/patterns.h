/* Hard sparsity patterns for the tests of the tile layout and its products */
#pragma once

#include <petsctc/private/aijtclayout.h>
#include <algorithm>
#include <climits>
#include <functional>
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
  A.a.resize(A.j.size());
  for (auto &a : A.a) a = std::uniform_real_distribution<double>(-1.0, 1.0)(random);
  return A;
}

inline std::vector<PetscInt> RandomLengths(PetscInt m, PetscInt low, PetscInt high, unsigned seed)
{
  std::mt19937          random(seed);
  std::vector<PetscInt> lengths(m);

  for (auto &length : lengths) length = low + (PetscInt)(random() % (high - low + 1));
  return lengths;
}

/* 3-D 7-point stencil on a grid of k^3 points */
inline Csr SevenPoint(PetscInt k)
{
  Csr A;

  A.m = A.n = k * k * k;
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt c[3] = {r % k, r / k % k, r / k / k}, step[3] = {1, k, k * k};

    for (int d = 2; d >= 0; d--)
      if (c[d] > 0) A.j.push_back(r - step[d]);
    A.j.push_back(r);
    for (int d = 0; d < 3; d++)
      if (c[d] < k - 1) A.j.push_back(r + step[d]);
    A.i.push_back((PetscInt)A.j.size());
  }
  for (size_t e = 0; e < A.j.size(); e++) A.a.push_back(1.0 / (1.0 + e % 97));
  return A;
}

struct Pattern {
  std::string          name;
  std::function<Csr()> make;
};

inline void PrintTo(const Pattern &pattern, std::ostream *out)
{
  *out << pattern.name;
}

inline std::vector<Pattern> Patterns()
{
  using Lengths = std::vector<PetscInt>;

  return {
    {"one_by_one",              [] { return FromLengths(1, Lengths{1}); }                                                                                       },
    {"no_rows",                 [] { return FromLengths(7, Lengths{}); }                                                                                        },
    {"no_columns",              [] { return FromLengths(0, Lengths{}); }                                                                                        },
    {"no_nonzeros",             [] { return FromLengths(11, Lengths(37, 0)); }                                                                                  },
    {"rows_without_columns",
     [] {
       Csr A;

       A.m = 9;
       A.i.assign(10, 0);
       return A;
     }                                                                                                                                                          },
    {"one_per_row",             [] { return FromLengths(1000, Lengths(1000, 1)); }                                                                              },
    {"short_widths",            [] { return FromLengths(50, RandomLengths(1003, 0, 4, 1)); }                                                                    },
    {"only_pairs",              [] { return FromLengths(90, Lengths(261, 2)); }                                                                                 },
    {"empty_rows_and_columns",
     [] {
       Csr A = FromLengths(40, RandomLengths(333, 0, 9, 2));

       for (auto &c : A.j) c = 3 * c + 1;
       A.n = 122; /* columns 0, 2, 3, 5, ... are empty; the last nonzero column is 118 */
       return A;
     }                                                                                                                                                          },
    {"mostly_empty",
     [] {
       Lengths lengths(500, 0);

       lengths[3]   = 5;
       lengths[77]  = 1;
       lengths[499] = 3;
       return FromLengths(20, lengths);
     }                                                                                                                                                          },
    {"thirteen_rows",           [] { return FromLengths(13, Lengths(13, 6)); }                                                                                  },
    {"seven_point_small",       [] { return SevenPoint(11); }                                                                                                   },
    {"seven_point_four_slices", [] { return SevenPoint(33); }                                                                                                   }, /* enough slices for four a warp */
    {"all_long",                [] { return FromLengths(2000, RandomLengths(45, 300, 1024, 3)); }                                                               }, /* one piece a row */
    {"all_long_several_pieces", [] { return FromLengths(6000, RandomLengths(19, 257, 6000, 4)); }                                                               },
    {"dense_row_among_short",
     [] {
       Lengths lengths(700, 2);

       lengths[351] = 50000;
       return FromLengths(50000, lengths);
     }                                                                                                                                                          },
    {"at_the_thresholds",       [] { return FromLengths(3000, Lengths{0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 2048, 2049}); }},
    {"wide",
     [] {
       return FromLengths(3000, Lengths{7, 900, 0, 1, 100});
     }                                                                                                                                                          },
    {"tall",                    [] { return FromLengths(5, RandomLengths(3001, 0, 5, 5)); }                                                                     },
    {"all_classes",             [] { return FromLengths(1500, RandomLengths(400, 0, 600, 6)); }                                                                 },
    {"unsorted",                [] { return FromLengths(1500, RandomLengths(300, 0, 400, 7), true); }                                                           },
  };
}

inline std::vector<AIJTCParams> ParamsToTry()
{
  return {
    {256,     4, 0   }, /* the paper's */
    {256,     4, 64  },
    {64,      2, 100 },
    {256,     1, 7   },
    {128,     0, 1   }, /* no short rows, not sorted at all */
    {4,       4, 0   }, /* no medium rows */
    {0,       0, 33  }, /* long rows only */
    {INT_MAX, 3, 1024}, /* no long rows */
  };
}

inline std::string Describe(const AIJTCParams &params)
{
  return "long above " + std::to_string(params.long_min) + ", short up to " + std::to_string(params.short_max) + ", window " + std::to_string(params.window);
}
