/* Layouts in either memory: arrays, builds, comparison byte by byte */
#pragma once

#include "patterns.h"
#include <gtest/gtest.h>
#include <../src/vec/vecreduce.h>
#if PETSCTC_HAVE_CUDA
  #include <cuda_runtime.h>
#endif

/* An array where the layout lives */
template <class T>
class Array {
public:
  Array(bool cuda, const std::vector<T> &values) : size_(values.size()), cuda_(cuda)
  {
    const size_t bytes = std::max<size_t>(size_, 1) * sizeof(T);

#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(cudaMalloc((void **)&p_, bytes), cudaSuccess); }
#endif
    if (!cuda_) p_ = (T *)malloc(bytes);
    Copy(p_, values.data(), true);
  }
  Array(const Array &) = delete;
  ~Array()
  {
#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(cudaFree(p_), cudaSuccess); }
#endif
    if (!cuda_) free(p_);
  }
  operator T *()
  {
    return p_;
  }

  void Set(const std::vector<T> &values)
  {
    ASSERT_EQ(values.size(), size_);
    Copy(p_, values.data(), true);
  }
  std::vector<T> Values() const
  {
    std::vector<T> values(size_);

    Copy(values.data(), p_, false);
    return values;
  }

private:
  void Copy(T *to, const T *from, PETSC_UNUSED bool up) const
  {
    if (!size_) return;
#if PETSCTC_HAVE_CUDA
    if (cuda_) { EXPECT_EQ(cudaMemcpy(to, from, size_ * sizeof(T), up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost), cudaSuccess); }
#endif
    if (!cuda_) memcpy(to, from, size_ * sizeof(T));
  }

  T     *p_ = nullptr;
  size_t size_;
  bool   cuda_;
};

/* For SetUp() and TEST(): is there a device? */
inline bool HasDevice()
{
#if PETSCTC_HAVE_CUDA
  int devices = 0;

  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  (void)cudaGetLastError();
#endif
  return false;
}

/* For SetUp() of tests that compute on a device, on its Tensor Cores, or not */
inline void SkipUnlessUsable(bool device, PETSC_UNUSED bool tensor)
{
  if (!device) return;
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
#if PETSCTC_HAVE_CUDA
  PetscBool has_mma = PETSC_FALSE;

  ASSERT_EQ(PetscTCDeviceHasMMA_CUDA(&has_mma), PETSC_SUCCESS);
  if (tensor && !has_mma) GTEST_SKIP() << "the device has no FP64 mma.m8n8k4";
#endif
}

using Vector = std::vector<PetscScalar>;

inline Vector RandomVector(PetscInt n, unsigned seed)
{
  std::mt19937                           random(seed);
  std::uniform_real_distribution<double> values(-2.0, 2.0);
  Vector                                 v(n);

  for (auto &e : v) e = values(random);
  return v;
}

inline void ExpectSameBits(const Vector &expected, const Vector &computed)
{
  ASSERT_EQ(expected.size(), computed.size());
  for (size_t r = 0; r < expected.size(); r++) ASSERT_EQ(memcmp(&expected[r], &computed[r], sizeof(PetscScalar)), 0) << "row " << r << ": " << expected[r] << " and " << computed[r];
}

enum class Made {
  OnHost,
  OnDevice
};

#if PETSCTC_HAVE_CUDA
template <class T>
void ToHost(PetscCount count, const T *device, T **host)
{
  *host = nullptr;
  if (!device) return;
  ASSERT_EQ(PetscMalloc1(count, host), PETSC_SUCCESS);
  ASSERT_EQ(cudaMemcpy(*host, device, (size_t)count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
}

/* A copy in host memory */
inline AIJTCLayout ToHost(const AIJTCLayout &device)
{
  AIJTCLayout host = device;

  host.cuda    = PETSC_FALSE;
  host.partial = nullptr;
  host.arrived = nullptr;
  host.misfit  = nullptr;
  for (void *&memory : host.memory) memory = nullptr;
  ToHost(AIJTCSlicesTotal(&device), device.slice, &host.slice);
  ToHost(device.npattern, device.pattern, &host.pattern);
  ToHost(device.nvalue, device.value, &host.value);
  ToHost(AIJTC_MAX_DICT, device.dict, &host.dict);
  ToHost(device.nrid, device.rid, &host.rid);
  ToHost((PetscCount)device.nlong + 1, device.long_piece, &host.long_piece);
  ToHost((PetscCount)device.nblocks + 1, device.list_start, &host.list_start);
  ToHost(device.nlist, device.list, &host.list);
  ToHost((PetscCount)device.m + 1, device.start, &host.start);
  return host;
}
#endif

/* The layout of a matrix, destroyed with its owner */
class OwnedLayout {
public:
  OwnedLayout([[maybe_unused]] Made made, const Csr &A, const AIJTCParams &params)
  {
#if PETSCTC_HAVE_CUDA
    if (made == Made::OnDevice) {
      Array<PetscInt>    i(true, A.i), j(true, A.j);
      Array<PetscScalar> a(true, A.a);

      EXPECT_EQ(AIJTCLayoutBuild_CUDA(A.m, A.n, i, j, a, &params, &layout, nullptr), PETSC_SUCCESS);
      return;
    }
#endif
    EXPECT_EQ(AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), A.a.data(), &params, &layout, nullptr), PETSC_SUCCESS);
  }
  /* A copy in host memory */
  explicit OwnedLayout(PETSC_UNUSED const AIJTCLayout &device)
  {
#if PETSCTC_HAVE_CUDA
    layout = ToHost(device);
#endif
  }
  OwnedLayout(const OwnedLayout &) = delete;
  ~OwnedLayout()
  {
    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutDestroy_Host(&layout), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutDestroy_CUDA(&layout), PETSC_SUCCESS); }
#endif
    EXPECT_EQ(layout.slice, nullptr);
  }

  bool Refresh(const Csr &A)
  {
    Array<PetscScalar> a(layout.cuda, A.a);
    PetscBool          fits = PETSC_FALSE;

    if (!layout.cuda) { EXPECT_EQ(AIJTCLayoutRefresh_Host(&layout, a, &fits, nullptr), PETSC_SUCCESS); }
#if PETSCTC_HAVE_CUDA
    if (layout.cuda) { EXPECT_EQ(AIJTCLayoutRefresh_CUDA(&layout, a, &fits, nullptr), PETSC_SUCCESS); }
#endif
    return fits;
  }

  AIJTCLayout layout = {};
};

/* Bit for bit, since values may be NaN; the first difference is shown */
template <class T>
void ExpectSameArray(const char *name, const T *expected, const T *computed, PetscCount length)
{
  ASSERT_EQ(expected == nullptr, computed == nullptr) << "array " << name << " of length " << length;
  for (PetscCount k = 0; expected && k < length; k++)
    ASSERT_EQ(memcmp(expected + k, computed + k, sizeof(T)), 0) << "array " << name << " at " << k << " of " << length << ": expected " << ::testing::PrintToString(expected[k]) << ", found " << ::testing::PrintToString(computed[k]);
}

inline void ExpectSameSlice(const AIJTCSlice &e, const AIJTCSlice &c, PetscInt s)
{
  SCOPED_TRACE("slice " + std::to_string(s));
  ASSERT_EQ(e.row, c.row);
  ASSERT_EQ(e.first, c.first);
  ASSERT_EQ(e.entries, c.entries);
  ASSERT_EQ(e.form, c.form);
  ASSERT_EQ(e.slots, c.slots);
  ASSERT_EQ(e.values, c.values);
  ASSERT_EQ(e.pattern, c.pattern);
  ASSERT_EQ(e.value, c.value);
}

/* The slice to which a byte of a stream belongs, for messages */
inline PetscInt SliceOfByte(const AIJTCLayout &L, PetscCount byte, bool pattern)
{
  PetscInt s = AIJTCSlicesTotal(&L) - 1;

  while (s > 0 && (PetscCount)AIJTC_UNIT * (pattern ? L.slice[s].pattern : L.slice[s].value) > byte) s--;
  return s;
}

inline void ExpectSameStream(const char *name, const AIJTCLayout &L, const uint8_t *expected, const uint8_t *computed, PetscCount bytes, bool pattern)
{
  ASSERT_EQ(expected == nullptr, computed == nullptr) << name;
  for (PetscCount k = 0; k < bytes; k++) {
    if (expected[k] == computed[k]) continue;
    const PetscInt   s     = SliceOfByte(L, k, pattern);
    const PetscCount start = (PetscCount)AIJTC_UNIT * (pattern ? L.slice[s].pattern : L.slice[s].value);

    FAIL() << "stream " << name << " at byte " << k << " of " << bytes << ", " << k - start << " bytes into slice " << s << " (form " << L.slice[s].form << ", slots " << L.slice[s].slots << ", entries " << L.slice[s].entries << ", values "
           << L.slice[s].values << "): expected " << (int)expected[k] << ", found " << (int)computed[k];
  }
}

/* Two layouts in host memory */
inline void ExpectSameLayout(const AIJTCLayout &e, const AIJTCLayout &c)
{
  ASSERT_EQ(e.m, c.m);
  ASSERT_EQ(e.n, c.n);
  ASSERT_EQ(e.nnz, c.nnz);
  ASSERT_EQ(Describe(e.params), Describe(c.params));
  for (int k = 0; k < AIJTC_KINDS; k++) ASSERT_EQ(e.nslices[k], c.nslices[k]) << "kind " << k;
  ASSERT_EQ(e.nconsecutive, c.nconsecutive);
  ASSERT_EQ(e.stride, c.stride);
  ASSERT_EQ(e.line, c.line);
  ASSERT_EQ(e.common, c.common);
  ASSERT_EQ(e.nlong, c.nlong);
  ASSERT_EQ(e.nmedium, c.nmedium);
  ASSERT_EQ(e.nshort, c.nshort);
  ASSERT_EQ(e.nempty, c.nempty);
  ASSERT_EQ(e.nrid, c.nrid);
  ASSERT_EQ(e.rid_tile, c.rid_tile);
  ASSERT_EQ(e.rid_rows, c.rid_rows);
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("start", e.start, c.start, e.m + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("rid", e.rid, c.rid, e.nrid));
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("long_piece", e.long_piece, c.long_piece, e.nlong + 1));
  ASSERT_EQ(e.nblocks, c.nblocks);
  ASSERT_EQ(e.nlist, c.nlist);
  ASSERT_EQ(e.longest_list, c.longest_list);
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("list_start", e.list_start, c.list_start, e.nblocks + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("list", e.list, c.list, e.nlist));
  ASSERT_EQ(e.ndict, c.ndict);
  ASSERT_NO_FATAL_FAILURE(ExpectSameArray("dict", e.dict, c.dict, AIJTC_MAX_DICT));
  ASSERT_EQ(e.slice == nullptr, c.slice == nullptr);
  for (PetscInt s = 0; s < AIJTCSlicesTotal(&e); s++) ASSERT_NO_FATAL_FAILURE(ExpectSameSlice(e.slice[s], c.slice[s], s));
  ASSERT_EQ(e.npattern, c.npattern);
  ASSERT_EQ(e.nvalue, c.nvalue);
  ASSERT_NO_FATAL_FAILURE(ExpectSameStream("pattern", e, e.pattern, c.pattern, e.npattern, true));
  ASSERT_NO_FATAL_FAILURE(ExpectSameStream("value", e, e.value, c.value, e.nvalue, false));
}
