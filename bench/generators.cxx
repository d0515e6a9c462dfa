/*
   Matrices by name: stencils on grids, patterns of rows, stand-ins for the paper's 18 matrices, and files. All deterministic: what looks random is a hash of the place.
   Names and their parameters: docs/benchmark.md.
*/
#include "bench.h"
#include "../examples/tutorials/matrixmarket.h"

#include <petsctime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

/* splitmix64 */
uint64_t Hash(uint64_t z)
{
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double HashToUnit(uint64_t z)
{
  return (double)(Hash(z) >> 11) * 0x1p-53;
}

namespace
{

using Words = std::vector<std::string>;

Words Split(const std::string &text, char separator)
{
  Words              words;
  std::string        word;
  std::istringstream stream(text);

  while (std::getline(stream, word, separator)) words.push_back(word);
  return words;
}

PetscInt ToInt(const std::string &word)
{
  char           *end;
  const long long value = std::strtoll(word.c_str(), &end, 10);

  if (word.empty() || *end || value < 1 || value > PETSC_INT_MAX) throw std::invalid_argument("'" + word + "' is no size");
  return (PetscInt)value;
}

PetscInt IntAt(const Words &words, size_t k)
{
  if (k >= words.size()) throw std::invalid_argument("'" + words[0] + "' needs " + std::to_string(k) + " parameter(s), separated by ':'");
  return ToInt(words[k]);
}

/* Sizes as 10x20x30; a single one stands for all of `dimensions` */
std::array<PetscInt, 3> Sizes(const Words &words, int dimensions)
{
  std::array<PetscInt, 3> n    = {1, 1, 1};
  const Words             list = Split(words.size() > 1 ? words[1] : "", 'x');

  if (list.size() != 1 && (int)list.size() != dimensions) throw std::invalid_argument("'" + words[0] + "' needs a size or " + std::to_string(dimensions) + " of them, as in 10x20");
  for (int d = 0; d < dimensions; d++) n[d] = ToInt(list[list.size() == 1 ? 0 : d]);
  if ((double)n[0] * n[1] * n[2] > PETSC_INT_MAX) throw std::invalid_argument("too large for PetscInt");
  return n;
}

/* row(r, add): adds the entries of row r in ascending columns */
template <typename Row>
void FromRows(PetscInt m, PetscInt n, size_t nnz, Csr *A, const Row &row)
{
  A->m = m;
  A->n = n;
  A->i.assign(1, 0);
  A->i.reserve((size_t)m + 1);
  A->j.reserve(nnz);
  A->a.reserve(nnz);
  for (PetscInt r = 0; r < m; r++) {
    row(r, [A](PetscInt col, PetscScalar value) {
      A->j.push_back(col);
      A->a.push_back(value);
    });
    if (A->j.size() > (size_t)PETSC_INT_MAX) throw std::length_error("more nonzeros than PetscInt counts");
    A->i.push_back((PetscInt)A->j.size());
  }
}

struct StencilPoint {
  int         x, y, z;
  PetscScalar value;
};

/* Points in ascending order of z, y, x. Each node has `dof` unknowns, coupled by the dof x dof matrix `coupling` (NULL: 1). */
void Stencil(const std::array<PetscInt, 3> &n, const std::vector<StencilPoint> &points, int dof, const PetscScalar *coupling, Csr *A)
{
  static const PetscScalar one  = 1.0;
  const PetscInt           rows = n[0] * n[1] * n[2] * dof;

  if (n[0] * n[1] * n[2] > PETSC_INT_MAX / dof) throw std::length_error("too large for PetscInt");
  if (!coupling) coupling = &one;
  A->symmetric = true;
  FromRows(rows, rows, (size_t)rows * points.size() * dof, A, [&](PetscInt r, auto add) {
    const PetscInt node = r / dof, x = node % n[0], y = node / n[0] % n[1], z = node / n[0] / n[1];

    for (const StencilPoint &p : points) {
      if (x + p.x < 0 || x + p.x >= n[0] || y + p.y < 0 || y + p.y >= n[1] || z + p.z < 0 || z + p.z >= n[2]) continue;
      for (int e = 0; e < dof; e++) add((node + p.x + n[0] * (p.y + n[1] * p.z)) * dof + e, p.value * coupling[r % dof * dof + e]);
    }
  });
}

std::vector<StencilPoint> Cube27()
{
  std::vector<StencilPoint> points;

  for (int k = 0; k < 27; k++) points.push_back({k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1, k == 13 ? 27.0 : -1.0});
  return points;
}

/* Star of radius `radius` in `dimensions` directions; diagonals: the four diagonal neighbours of a plane too */
std::vector<StencilPoint> Star(int dimensions, int radius, bool diagonals)
{
  std::vector<StencilPoint> points;
  PetscScalar               sum = 0.0;

  for (int z = -radius; z <= radius; z++) {
    for (int y = -radius; y <= radius; y++) {
      for (int x = -radius; x <= radius; x++) {
        const int axes = !!x + !!y + !!z, reach = std::abs(x) + std::abs(y) + std::abs(z);

        if ((z && dimensions < 3) || (axes > 1 && !(diagonals && axes == 2 && reach == 2))) continue;
        points.push_back({x, y, z, -1.0 / PetscMax(reach, 1)});
        if (axes) sum += 1.0 / reach;
      }
    }
  }
  for (StencilPoint &p : points) {
    if (!p.x && !p.y && !p.z) p.value = sum;
  }
  return points;
}

/* diag:N[:LOW:HIGH]  values between LOW and HIGH, evenly in their logarithms */
void Diagonal(const Words &words, Csr *A)
{
  const PetscInt n   = IntAt(words, 1);
  const double   low = words.size() > 3 ? std::atof(words[2].c_str()) : 1.0, high = words.size() > 3 ? std::atof(words[3].c_str()) : 2.0;

  A->symmetric = true;
  FromRows(n, n, (size_t)n, A, [&](PetscInt r, auto add) { add(r, low * std::pow(high / low, HashToUnit((uint64_t)r))); });
}

/* sw2:N  four in a row: a ring whose points are paired with those 320 away; N is a multiple of 640 */
void ShallowWater(const Words &words, Csr *A)
{
  const PetscInt n = IntAt(words, 1);

  if (n % 640) throw std::invalid_argument("the size of 'sw2' must be a multiple of 640");
  A->symmetric = true;
  FromRows(n, n, 4 * (size_t)n, A, [n](PetscInt r, auto add) {
    PetscInt cols[] = {r, (r + 1) % n, (r + n - 1) % n, r / 320 % 2 ? r - 320 : r + 320};

    std::sort(cols, cols + 4);
    for (PetscInt col : cols) add(col, col == r ? 4.0 : -0.1);
  });
}

/* Adds `count` different columns of [0, n), drawn by draw(k), ascending. A draw that repeats is given up after some tries. */
template <typename Draw, typename Add>
void AddDistinct(PetscInt count, const Draw &draw, const Add &add)
{
  std::vector<PetscInt> cols;

  for (uint64_t k = 0; (PetscInt)cols.size() < count && k < 4 * (uint64_t)count + 16; k++) {
    const size_t missing = (size_t)count - cols.size();

    for (size_t t = 0; t < missing; t++) cols.push_back(draw(k * (uint64_t)count + t));
    std::sort(cols.begin(), cols.end());
    cols.erase(std::unique(cols.begin(), cols.end()), cols.end());
  }
  for (PetscInt col : cols) add(col);
}

/* webgraph:N[:NNZ]  power-law rows (longest some thousands), half of the links to pages near by, half to few popular ones; values 1 */
void WebGraph(const Words &words, Csr *A)
{
  const PetscInt        n   = IntAt(words, 1);
  const double          nnz = words.size() > 2 ? (double)IntAt(words, 2) : 8.0 * n;
  std::vector<PetscInt> length((size_t)n);
  double                sum     = 0.0;
  const double          longest = PetscMin(5000.0, n / 4.0 + 1.0);

  /* Pareto, below the mean wanted: many pages have no links */
  for (PetscInt r = 0; r < n; r++) length[r] = (PetscInt)PetscMin(longest, 0.25 * nnz / n * std::pow(1.0 - HashToUnit(Hash((uint64_t)r) + 1), -0.7));
  for (PetscInt l : length) sum += l;
  for (int64_t r = 0; sum < nnz && r < 4 * (int64_t)n; r++) { /* what rounding took */
    const PetscInt at = (PetscInt)(Hash(5 * (uint64_t)n + (uint64_t)r) % (uint64_t)n);

    if (length[at] < longest) length[at]++, sum++;
  }
  FromRows(n, n, (size_t)nnz, A, [&](PetscInt r, auto add) {
    const auto draw = [r, n](uint64_t k) {
      const uint64_t h = Hash((uint64_t)r * 0x100000001b3ull + k);
      const double   u = HashToUnit(h);

      return h & 1 ? (PetscInt)(n * u * u * u) : (PetscInt)(((int64_t)r + (int64_t)(2000 * u) - 1000 + (int64_t)n * 1000) % n);
    };
    AddDistinct(length[r], draw, [&](PetscInt col) { add(col, 1.0); });
  });
}

/* denserow:N  one dense row in the middle of a tridiagonal matrix */
void DenseRow(const Words &words, Csr *A)
{
  const PetscInt n = IntAt(words, 1);

  FromRows(n, n, 4 * (size_t)n, A, [n](PetscInt r, auto add) {
    const PetscInt first = r == n / 2 ? 0 : PetscMax(r - 1, 0), last = r == n / 2 ? n - 1 : PetscMin(r + 1, n - 1);

    for (PetscInt col = first; col <= last; col++) add(col, col == r ? 4.0 : -1.0 / (1.0 + std::abs((double)(col - r))));
  });
}

/* longrows:MxL  M rows of L nonzeros, one in each of L equal stretches of the columns */
void LongRows(const Words &words, Csr *A)
{
  const Words    sizes = Split(words.size() > 1 ? words[1] : "", 'x');
  const PetscInt m = sizes.size() == 2 ? ToInt(sizes[0]) : 0, l = sizes.size() == 2 ? ToInt(sizes[1]) : 0;

  if (!m) throw std::invalid_argument("'longrows' needs rows and nonzeros a row, as in longrows:1000x10000");
  const PetscInt gap = PetscMax(4, (m + l - 1) / l);
  FromRows(m, gap * l, (size_t)m * l, A, [l, gap](PetscInt r, auto add) {
    for (PetscInt k = 0; k < l; k++) {
      const uint64_t h = Hash((uint64_t)r * l + k);

      add(k * gap + (PetscInt)(h % (uint64_t)gap), 0.5 + HashToUnit(h));
    }
  });
}

/* 4perrow:N  values +-1, columns anywhere */
void FourPerRow(const Words &words, Csr *A)
{
  const PetscInt n = IntAt(words, 1);

  if (n < 4) throw std::invalid_argument("'4perrow' needs 4 columns");
  FromRows(n, n, 4 * (size_t)n, A, [n](PetscInt r, auto add) {
    AddDistinct(
      4, [r, n](uint64_t k) { return (PetscInt)(Hash((uint64_t)r * 1024 + k) % (uint64_t)n); }, [&](PetscInt col) { add(col, Hash((uint64_t)r * (uint64_t)n + (uint64_t)col) & 1 ? 1.0 : -1.0); });
  });
}

/* debruijn:K  undirected de Bruijn graph of dimension K without loops */
void DeBruijn(const Words &words, Csr *A)
{
  const PetscInt k = IntAt(words, 1), n = (PetscInt)1 << PetscMin(k, 29);

  A->symmetric = true;
  FromRows(n, n, 4 * (size_t)n, A, [n](PetscInt r, auto add) {
    PetscInt cols[] = {2 * r % n, (2 * r + 1) % n, r / 2, r / 2 + n / 2};

    std::sort(cols, cols + 4);
    for (int t = 0; t < 4; t++) {
      if (cols[t] != r && (!t || cols[t] != cols[t - 1])) add(cols[t], 1.0);
    }
  });
}

/* markov:S  Markov chain on the states i + j <= S: three transitions and the diagonal, rates that grow with i and j */
void Markov(const Words &words, Csr *A)
{
  const PetscInt s = IntAt(words, 1), n = (s + 1) * (s + 2) / 2;
  PetscInt       j = 0, i = -1; /* of the current row; j numbers runs of s + 1 - j states */
  const auto     number = [s](PetscInt at, PetscInt run) { return run * (s + 1) - run * (run - 1) / 2 + at; };

  if (s > 30000) throw std::invalid_argument("'markov' is made for up to 30000");
  FromRows(n, n, 4 * (size_t)n, A, [&, s](PetscInt r, auto add) {
    if (++i > s - j) i = 0, j++;
    const PetscScalar grow = 0.7 * (s - i - j), shrink = 1.3 * i, other = 0.9 * j + 0.1;

    if (j > 0) add(number(i, j - 1), other);
    if (i > 0) add(r - 1, shrink);
    add(r, -(grow + shrink + other));
    if (i + j < s) add(r + 1, grow);
  });
}

/* kkt:N:M:NNZ:STRIDE:D  [D A'; A 0] with N variables and M constraints, NNZ nonzeros in A, close to a band of a grid with that stride; D = 1 or 0 */
void Kkt(const Words &words, Csr *A)
{
  const PetscInt                     n = IntAt(words, 1), m = IntAt(words, 2), nnz = IntAt(words, 3), stride = IntAt(words, 4);
  const bool                         diagonal = words.size() > 5 && words[5] == "1";
  std::vector<std::vector<PetscInt>> transposed((size_t)n), rows((size_t)m);

  for (PetscInt r = 0; r < m; r++) {
    const PetscInt count   = (PetscInt)((int64_t)(r + 1) * nnz / m - (int64_t)r * nnz / m);
    const PetscInt cols[8] = {0, 1, -1, stride, -stride, 2, -2, 2 * stride};

    for (PetscInt k = 0; k < PetscMin(count, 8); k++) rows[r].push_back((PetscInt)(((int64_t)r * n / m + cols[k] + n) % n));
    std::sort(rows[r].begin(), rows[r].end());
    rows[r].erase(std::unique(rows[r].begin(), rows[r].end()), rows[r].end());
    for (PetscInt col : rows[r]) transposed[col].push_back(r);
  }
  A->symmetric = true;
  FromRows(n + m, n + m, 2 * (size_t)nnz + n, A, [&](PetscInt r, auto add) {
    const auto value = [](PetscInt row, PetscInt col) { return Hash((uint64_t)row * 3 + (uint64_t)col) % 5 ? -1.0 : 4.0; };

    if (r < n) {
      if (diagonal) add(r, 1.0);
      for (PetscInt row : transposed[r]) add(n + row, value(row, r));
    } else {
      for (PetscInt col : rows[r - n]) add(col, value(r - n, col));
    }
  });
}

/* ---- the paper's matrices: a file of the folder if it is there, else the generator */
struct PaperMatrix {
  const char *name, *file, *generator, *method;
};
const PaperMatrix paper18[] = {
  {"bcsstm25",       "bcsstm25",       "diag:15439:0.1151384482804:697709676.5337", "cg"  },
  {"t3dl_e",         "t3dl_e",         "diag:20360:3.5875e-10:2.163772625e-06",     "cg"  },
  {"bcsstm39",       "bcsstm39",       "diag:46772:0.0033504:27.710999999999999",   "cg"  },
  {"shallow_water2", "shallow_water1", "sw2:81920",                                 "cg"  },
  {"apache1",        "apache1",        "7pt:8x101x100",                             "cg"  },
  {"thermomech_TC",  "thermomech_TC",  "mesh:102158:711558:random",                 "cg"  },
  {"thermomech_TK",  "thermomech_TK",  "mesh:102158:711558:random",                 "cg"  },
  {"G2_circuit",     "G2_circuit",     "mesh:150102:726674:blocks",                 "cg"  },
  {"denormal",       "denormal",       "plate:298x300",                             "cg"  },
  {"dtoc",           "dtoc_recon",     "kkt:14996:9997:34986:9997:0",               "bcgs"},
  {"shar_te2-b3",    "shar_te2-b3",    "4perrow:200200",                            "bcgs"},
  {"NotreDame_www",  "NotreDame_www",  "webgraph:325729:929849",                    "bcgs"},
  {"cont-300",       "cont-300_recon", "kkt:90597:90298:448799:301:1",              "bcgs"},
  {"vfem",           "vfem",           "mesh:93476:1434636:natural",                "bcgs"},
  {"mc2depi",        "mc2depi",        "markov:1024",                               "bcgs"},
  {"cop20k_A",       "cop20k_A",       "mesh:99843:2624331:blocks:121192",          "bcgs"},
  {"belgium_osm",    "belgium_osm",    "roadnet:1441295:3099940",                   "bcgs"},
  {"debr",           "debr",           "debruijn:20",                               "bcgs"}
};
const char *const test_list[] = {"7pt:20",        "5pt:30x31",        "27pt:9",      "elas:6",     "diag:500",    "sw2:1280",          "tet:2000:random", "tet:2000:rcm",         "webgraph:4000",
                                 "denserow:3000", "longrows:20x1500", "4perrow:700", "debruijn:9", "plate:20x21", "roadnet:3000:6452", "markov:30",       "kkt:300:200:900:17:1", "mesh:800:20000:blocks:1000"};

void Generate(const Words &words, Csr *A)
{
  static const PetscScalar                                                      elasticity[] = {2., .3, .1, .3, 2., .2, .1, .2, 2.};
  static const std::map<std::string, std::function<void(const Words &, Csr *)>> generators   = {
      {"5pt",                                                                [](const Words &w, Csr *B) { Stencil(Sizes(w, 2), Star(2, 1, false), 1, nullptr, B); }},
      {"7pt",                                                                    [](const Words &w,                                                                                 Csr *B) { Stencil(Sizes(w, 3), Star(3, 1, false), 1, nullptr, B); }},
      {"plate", [](const Words &w,Csr *B) { Stencil(Sizes(w, 2), Star(2, 2, true), 1, nullptr, B); }},
      {"27pt",                                                   [](const Words &w,                                                                 Csr *B) { Stencil(Sizes(w, 3), Cube27(), 1, nullptr, B); }},
      {"elas",                                                               [](const Words &w,             Csr *B) { Stencil(Sizes(w, 3), Cube27(), 3, elasticity, B); }},
      {"diag",                                                                    Diagonal                                                                               },
      {"sw2",       ShallowWater           },
      {"webgraph",WebGraph},
      {"denserow",                                                  DenseRow                                                       },
      {"longrows",                                                                    LongRows                                                                                                                                                          },
      {"4perrow",           FourPerRow},
      {"debruijn",DeBruijn},
      {"markov",                                                Markov                                                                                            },
      {"kkt",                                                                    Kkt                                                                                                                                                                                                                                     },
      {"tet",               CsrFromMesh},
      {"mesh",CsrFromMesh},
      {"roadnet",                                           CsrFromMesh                                                                                                                        }
  };
  const auto found = generators.find(words[0]);

  if (found == generators.end()) {
    std::string names;

    for (const auto &g : generators) names += " " + g.first;
    for (const PaperMatrix &p : paper18) names += std::string(" ") + p.name;
    throw std::invalid_argument("no file and no generator '" + words[0] + "'; there are" + names);
  }
  found->second(words, A);
}

/* Distinct values of full precision on the same pattern; a symmetric matrix stays so, and diagonally dominant if it was */
void RandomizeValues(Csr *A)
{
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const uint64_t low = (uint64_t)(A->symmetric ? PetscMin(r, A->j[k]) : r), high = (uint64_t)(A->symmetric ? PetscMax(r, A->j[k]) : A->j[k]);
      const double   u = HashToUnit(low * 0x9fb21c651e98df25ull + high);

      A->a[k] *= A->j[k] == r ? 1.0 + 0.5 * u : 0.5 + 0.5 * u;
    }
  }
}

/* Numbers the rows of a square matrix at random, and the columns likewise: another numbering for each seed */
void Shuffle(uint64_t seed, Csr *A)
{
  const PetscInt                                m = A->m;
  std::vector<PetscInt>                         number(m), row(m);
  std::vector<std::pair<PetscInt, PetscScalar>> entries;
  Csr                                           B = *A;

  for (PetscInt r = 0; r < m; r++) row[r] = r;
  for (PetscInt r = m - 1; r > 0; r--) std::swap(row[r], row[(size_t)(Hash(seed * 0x9e3779b97f4a7c15ull + (uint64_t)r) % (uint64_t)(r + 1))]);
  for (PetscInt r = 0; r < m; r++) number[row[r]] = r;
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt old = row[r];

    entries.clear();
    for (PetscInt k = A->i[old]; k < A->i[old + 1]; k++) entries.emplace_back(number[A->j[k]], A->a[k]);
    std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    B.i[r + 1] = B.i[r] + (PetscInt)entries.size();
    for (size_t k = 0; k < entries.size(); k++) {
      B.j[B.i[r] + (PetscInt)k] = entries[k].first;
      B.a[B.i[r] + (PetscInt)k] = entries[k].second;
    }
  }
  A->i.swap(B.i);
  A->j.swap(B.j);
  A->a.swap(B.a);
}

bool FileExists(const std::string &name)
{
  PetscBool exists = PETSC_FALSE;

  (void)PetscTestFile(name.c_str(), 'r', &exists);
  return exists;
}

/* The file that a specification stands for, empty if it is a generator's */
std::string FileOf(const std::string &folder, const std::string &spec)
{
  Words stems = {spec};

  for (const PaperMatrix &p : paper18) {
    if (spec == p.name) stems.push_back(p.file);
  }
  for (const std::string &stem : stems) {
    for (const char *suffix : {"", ".mtx.gz", ".mtx", ".petsc"}) {
      if (FileExists(stem + suffix) && spec.find_first_of("/.") != std::string::npos) return stem + suffix;
      if (!folder.empty() && FileExists(folder + "/" + stem + suffix)) return folder + "/" + stem + suffix;
    }
  }
  return "";
}

PetscErrorCode Load(const std::string &file, Csr *A)
{
  const PetscInt    *i, *j;
  const PetscScalar *a;
  PetscInt           m;
  PetscBool          done, symmetric = PETSC_FALSE;
  MatrixMarketInfo   info;
  Mat                M;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &M));
  PetscCall(MatSetType(M, MATSEQAIJ));
  if (file.find(".mtx") != std::string::npos) PetscCall(MatLoadMatrixMarket(M, file.c_str(), &info));
  else {
    PetscViewer viewer;

    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file.c_str(), FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(M, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
  }
  PetscCall(MatGetSize(M, &A->m, &A->n));
  if (A->m == A->n) PetscCall(MatIsSymmetric(M, 0.0, &symmetric));
  PetscCall(MatGetRowIJ(M, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No compressed rows");
  PetscCall(MatSeqAIJGetArrayRead(M, &a));
  A->i.assign(i, i + m + 1);
  A->j.assign(j, j + i[m]);
  A->a.assign(a, a + i[m]);
  A->symmetric = symmetric;
  PetscCall(MatSeqAIJRestoreArrayRead(M, &a));
  PetscCall(MatRestoreRowIJ(M, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

/* paper18 and test stand for lists */
std::vector<std::string> CsrExpandNames(const std::vector<std::string> &specs)
{
  std::vector<std::string> names;

  for (const std::string &spec : specs) {
    if (spec == "paper18") {
      for (const PaperMatrix &p : paper18) names.push_back(p.name);
    } else if (spec == "test") names.insert(names.end(), std::begin(test_list), std::end(test_list));
    else names.push_back(spec);
  }
  return names;
}

PetscErrorCode CsrCreate(const Settings *settings, const std::string &spec, Csr *A)
{
  const std::string file      = FileOf(settings->folder, spec);
  std::string       generator = spec, problem;
  PetscLogDouble    start, stop;

  PetscFunctionBegin;
  PetscCall(PetscTime(&start));
  A->name = spec;
  for (const PaperMatrix &p : paper18) {
    if (spec == p.name) {
      generator = p.generator;
      A->method = p.method;
    }
  }
  if (!file.empty()) {
    A->origin = file.substr(file.rfind('/') + 1);
    PetscCall(Load(file, A));
  } else {
    A->origin = generator;
    try {
      Generate(Split(generator, ':'), A);
    } catch (const std::exception &error) {
      problem = error.what();
    }
    PetscCheck(problem.empty(), PETSC_COMM_SELF, PETSC_ERR_USER_INPUT, "Matrix %s: %s", spec.c_str(), problem.c_str());
  }
  if (settings->values == "random") RandomizeValues(A);
  if (settings->shuffle && A->m == A->n) Shuffle((uint64_t)settings->shuffle, A);
  PetscCall(PetscTime(&stop));
  A->seconds = stop - start;
  PetscFunctionReturn(PETSC_SUCCESS);
}
