/* CUDA device code on processors (emulation.h): blocks, fibers, and the functions of CUDA's runtime that the library and PETSc call */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <vector>
#include "emulation.h"
#include <../src/comm/peers.h>
#undef threadIdx

thread_local uint3 blockIdx;
thread_local dim3  blockDim, gridDim;

namespace emulation
{
thread_local Fiber *current;
thread_local char  *dynamic_shared;

namespace
{
[[noreturn]] void fail(const char *what)
{
  std::fprintf(stderr, "emulation: block %u, thread %u: %s\n", blockIdx.x, current ? current->index.x : 0, what);
  std::abort();
}

/* ---- fibers: registers that a function keeps lie on its stack while it does not run */

extern "C" void emulationSwitch(void **from, void *to);
asm(R"(
.text
.globl emulationSwitch
.type emulationSwitch,@function
emulationSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulationSwitch,.-emulationSwitch
)");

constexpr int    KEPT_REGISTERS = 6, MASKS = 8;
constexpr size_t STACK = 128 * 1024;

/* The lanes of a mask that wait for each other. Values of one exchange are read before those of the next but one are written: two places, by turns */
struct Lanes {
  unsigned           mask = 0, arrived = 0, turn = 0;
  unsigned long long value[2][32];
};

struct Block {
  int                          alive = 0;
  bool                         all = true, any = false;
  Vote                         vote = {};
  Fiber                       *ring = nullptr; /* one of those that run */
  std::vector<Fiber>           fibers;
  std::vector<Fiber *>         waiting; /* for the barrier of the block */
  std::vector<Lanes>           warps;   /* MASKS each */
  char                        *stacks  = nullptr;
  size_t                       nstacks = 0;
  void                        *main    = nullptr; /* the stack of who runs the block */
  const std::function<void()> *body    = nullptr;
  unsigned                     turns   = 0;
};
thread_local Block block;

void putIn(Fiber *fiber)
{
  if (!block.ring) block.ring = fiber->next = fiber->prev = fiber;
  else {
    fiber->next       = block.ring;
    fiber->prev       = block.ring->prev;
    fiber->prev->next = fiber->next->prev = fiber;
  }
}

/* Who runs next */
Fiber *takeOut(Fiber *fiber)
{
  Fiber *const next = fiber->next;

  fiber->prev->next = next;
  next->prev        = fiber->prev;
  block.ring        = next == fiber ? nullptr : next;
  return block.ring;
}

void goOn(Fiber *with)
{
  Fiber *const from = current;

  if (with == from) return;
  current = with;
  emulationSwitch(&from->stack, with->stack);
}

/* Other blocks may be what somebody here looks at again and again */
void letOthersRun()
{
  if (++block.turns % 64 == 0) sched_yield();
}

void await()
{
  Fiber *const next = takeOut(current);

  if (!next) fail("waits for others of its block, and none of them runs");
  goOn(next);
}

void endBarrier()
{
  block.vote = {block.all, block.any};
  block.all  = true;
  block.any  = false;
  for (Fiber *fiber : block.waiting) putIn(fiber);
  block.waiting.clear();
}

[[noreturn]] void run()
{
  (*block.body)();
  block.alive--;
  if (block.alive && (int)block.waiting.size() == block.alive) endBarrier();
  Fiber *const next = takeOut(current);
  void        *over;

  if (!block.alive) emulationSwitch(&over, block.main);
  if (!next) fail("is over, and none of the others of its block runs");
  goOn(next);
  std::abort(); /* nobody comes back */
}

void reserve(size_t threads)
{
  if (threads <= block.nstacks) return;
  if (block.stacks) munmap(block.stacks, block.nstacks * STACK);
  block.nstacks = threads;
  block.stacks  = (char *)mmap(nullptr, threads * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.stacks == MAP_FAILED) fail("no memory for stacks");
}

void create(Fiber *fiber, unsigned thread)
{
  void **top = (void **)(block.stacks + (thread + 1) * STACK) - 1; /* as behind a call */

  *fiber       = {};
  fiber->index = make_uint3(thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y);
  fiber->lane  = (int)(thread % 32);
  fiber->warp  = (int)(thread / 32);
  *--top       = (void *)run;
  for (int k = 0; k < KEPT_REGISTERS; ++k) *--top = nullptr;
  fiber->stack = top;
  putIn(fiber);
}

/* As many bytes of dynamic shared memory, NaN at first */
void reserveShared(size_t bytes)
{
  static thread_local std::unique_ptr<char[]> memory;
  static thread_local size_t                  size = 0;

  if (size < bytes + 256) {
    size   = bytes + 256;
    memory = std::unique_ptr<char[]>(new char[size]);
    std::memset(memory.get(), 0xff, size);
  }
  dynamic_shared = (char *)(((uintptr_t)memory.get() + 255) / 256 * 256);
}

void runBlock(dim3 blocks, dim3 threads, size_t shared, size_t number, const std::function<void()> &body)
{
  const unsigned count = threads.x * threads.y * threads.z;

  blockDim = threads;
  gridDim  = blocks;
  blockIdx = make_uint3((unsigned)(number % blocks.x), (unsigned)(number / blocks.x % blocks.y), (unsigned)(number / blocks.x / blocks.y));
  reserve(count);
  reserveShared(shared);
  block.alive = (int)count;
  block.body  = &body;
  block.fibers.resize(count);
  block.warps.assign(MASKS * ((count + 31) / 32), Lanes());
  for (unsigned thread = 0; thread < count; ++thread) create(&block.fibers[thread], thread);
  current = &block.fibers[0];
  emulationSwitch(&block.main, current->stack);
  current = nullptr;
}

/* Threads of the operating system that stay, and with them shared memory */
class Processors {
public:
  /* job(0) .. job(count - 1), each in a thread of its own */
  void run(int count, const std::function<void(int)> &job)
  {
    std::unique_lock<std::mutex> lock(mutex_);

    for (int k = (int)threads_.size(); k < count; ++k) {
      threads_.emplace_back([this, k] { work(k); });
      threads_.back().detach();
    }
    job_  = &job;
    want_ = left_ = count;
    ++round_;
    begin_.notify_all();
    end_.wait(lock, [this] { return !left_; });
  }

private:
  void work(int k)
  {
    std::unique_lock<std::mutex> lock(mutex_);

    for (int seen = 0;;) {
      begin_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (k >= want_) continue;
      const std::function<void(int)> &job = *job_;
      lock.unlock();
      job(k);
      lock.lock();
      if (!--left_) end_.notify_all();
    }
  }

  std::mutex                      mutex_;
  std::condition_variable         begin_, end_;
  std::vector<std::thread>        threads_;
  const std::function<void(int)> *job_   = nullptr;
  int                             round_ = 0, want_ = 0, left_ = 0;
};

/* Those that no launch has: one for each of the launches that several threads of a test have under way at once, whose kernels may wait for each other. Their threads outlive main() */
std::mutex                       idle_mutex;
std::vector<Processors *> *const idle = new std::vector<Processors *>;

Processors *takeProcessors()
{
  const std::lock_guard<std::mutex> lock(idle_mutex);

  if (idle->empty()) return new Processors;
  Processors *const processors = idle->back();
  idle->pop_back();
  return processors;
}

void giveBack(Processors *processors)
{
  const std::lock_guard<std::mutex> lock(idle_mutex);

  idle->push_back(processors);
}

/* The lanes of this warp that a mask names. A place that no mask has had comes first: where an exchange is over some lanes may still have to read its values */
Lanes &lanesOf(unsigned mask)
{
  Lanes *const lanes = &block.warps[MASKS * current->warp], *unused = nullptr;

  for (int k = 0; k < MASKS; ++k) {
    if (lanes[k].mask == mask) return lanes[k];
    if (!lanes[k].arrived && (!unused || (unused->mask && !lanes[k].mask))) unused = lanes + k;
  }
  if (!unused) fail("the lanes of a warp wait in too many groups");
  *unused      = Lanes();
  unused->mask = mask;
  return *unused;
}
} // namespace

void yield()
{
  letOthersRun();
  goOn(current->next);
}

Vote blockBarrier(bool vote)
{
  block.all = block.all && vote;
  block.any = block.any || vote;
  if ((int)block.waiting.size() + 1 == block.alive) endBarrier();
  else {
    block.waiting.push_back(current);
    await();
  }
  return block.vote;
}

const unsigned long long *exchange(unsigned mask, unsigned long long value)
{
  const int      first = 32 * current->warp, count = std::min(32, (int)block.fibers.size() - first);
  const unsigned named = count < 32 ? mask & ((1u << count) - 1) : mask;
  Lanes         &lanes = lanesOf(named);
  const unsigned turn  = lanes.turn;

  if (!(named >> current->lane & 1)) fail("takes part in what its mask does not name it for");
  lanes.value[turn % 2][current->lane] = value;
  lanes.arrived |= 1u << current->lane;
  if (lanes.arrived != named) await();
  else {
    lanes.arrived = 0;
    lanes.turn++;
    for (int lane = 0; lane < count; ++lane) {
      if (lane != current->lane && (named >> lane & 1)) putIn(&block.fibers[first + lane]);
    }
    letOthersRun();
  }
  return lanes.value[turn % 2];
}

/* A hundredth of the time that passes: nobody should lose patience with a processor. Who asks has looked in vain many times: what it waits for may need this processor */
unsigned long long nanoseconds()
{
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  return (unsigned long long)std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count() / 100;
}

void launch(dim3 blocks, dim3 threads, size_t shared, bool cooperative, const std::function<void()> &body)
{
  const size_t        count      = (size_t)blocks.x * blocks.y * blocks.z;
  Processors *const   processors = takeProcessors();
  std::atomic<size_t> next(0);

  if (!count || !threads.x || threads.x * threads.y * threads.z > 1024) fail("a launch of no blocks, or of blocks of no threads or too many");
  if (cooperative) processors->run((int)count, [&](int k) { runBlock(blocks, threads, shared, (size_t)k, body); });
  else
    processors->run((int)std::min<size_t>(count, 2), [&](int) {
      for (size_t number = next++; number < count; number = next++) runBlock(blocks, threads, shared, number, body);
    });
  giveBack(processors);
}

/* Translated kernels take their only argument, a structure, by reference */
cudaError_t launchCooperative(const void *kernel, dim3 blocks, dim3 threads, void *arguments[], size_t shared, cudaStream_t)
{
  const auto  function = (void (*)(const void *))kernel;
  const void *argument = arguments[0];

  launch(blocks, threads, shared, true, [=] { function(argument); });
  return cudaSuccess;
}
} // namespace emulation

/* ---- CUDA's runtime */

namespace
{
constexpr size_t         MEMORY = (size_t)8 << 30;
std::map<void *, size_t> allocated;
size_t                   used = 0;
std::mutex               mutex;
cudaError_t              last = cudaSuccess;

cudaError_t allocate(void **memory, size_t bytes)
{
  const std::lock_guard<std::mutex> lock(mutex);
  const size_t                      whole = (bytes + 1023) / 512 * 512;

  *memory = nullptr;
  if (bytes > MEMORY - used) return last = cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(512, whole);
  std::memset(*memory, 0xff, whole);
  allocated[*memory] = bytes;
  used += bytes;
  return cudaSuccess;
}

cudaError_t release(void *memory)
{
  const std::lock_guard<std::mutex> lock(mutex);
  const auto                        found = allocated.find(memory);

  if (!memory) return cudaSuccess;
  if (found == allocated.end()) return last = cudaErrorInvalidValue;
  used -= found->second;
  allocated.erase(found);
  std::free(memory);
  return cudaSuccess;
}

int multiprocessors()
{
  const char *const count = std::getenv("PETSCTC_EMULATED_MULTIPROCESSORS");

  return count ? std::atoi(count) : 4;
}
} // namespace

extern "C" {
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
  return allocate(memory, bytes);
}
cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
  return allocate(memory, bytes);
}
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t)
{
  return allocate(memory, bytes);
}
/* Host and device have one address */
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
  return allocate(memory, bytes);
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
  return *device = host, cudaSuccess;
}
cudaError_t cudaFree(void *memory)
{
  return release(memory);
}
cudaError_t cudaFreeHost(void *memory)
{
  return release(memory);
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t)
{
  return release(memory);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
  return std::memmove(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
  return std::memmove(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind, cudaStream_t)
{
  for (size_t row = 0; row < height; ++row) std::memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
  return cudaSuccess;
}
cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
  return std::memset(memory, value, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
  return std::memset(memory, value, bytes), cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
  return *total = MEMORY, *free = MEMORY - used, cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int)
{
  return *pool = nullptr, cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t)
{
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
  return *stream = nullptr, cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t)
{
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize()
{
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
  return *event = nullptr, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t)
{
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t)
{
  return cudaSuccess;
}
cudaError_t cudaGetLastError()
{
  const cudaError_t error = last;

  last = cudaSuccess;
  return error;
}
const char *cudaGetErrorName(cudaError_t)
{
  return "an error of the emulation";
}
const char *cudaGetErrorString(cudaError_t)
{
  return "an error of the emulation";
}
cudaError_t cudaGetDeviceCount(int *count)
{
  return *count = 1, cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
  return *device = 0, cudaSuccess;
}
/* An H200 but for its multiprocessors */
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
  static const std::map<int, int> values = {
    {cudaDevAttrComputeCapabilityMajor,           9                },
    {cudaDevAttrComputeCapabilityMinor,           0                },
    {cudaDevAttrMultiProcessorCount,              multiprocessors()},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin,     227 * 1024       },
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 * 1024       },
    {cudaDevAttrReservedSharedMemoryPerBlock,     1024             },
    {cudaDevAttrCooperativeLaunch,                1                }
  };
  const auto found = values.find(attribute);

  if (found == values.end()) return last = cudaErrorInvalidValue;
  *value = found->second;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
  *attributes                    = {};
  attributes->sharedSizeBytes    = 1504; /* the most that a resident kernel has: CG from the layout with a null space */
  attributes->maxThreadsPerBlock = 1024;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
  return cudaSuccess;
}
/* Of an H200, with 64 registers to a thread */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int threads, size_t shared)
{
  *blocks = std::min(1024 / threads, (int)(228 * 1024 / (shared + 1024)));
  return cudaSuccess;
}
}

/* Memory of other processes: there is none here */
PetscErrorCode PetscTCArenaCreate_CUDA(MPI_Comm, size_t, PetscTCArena *arena, PetscBool *can)
{
  return *arena = {}, *can = PETSC_FALSE, PETSC_SUCCESS;
}
PetscErrorCode PetscTCArenaDestroy_CUDA(PetscTCArena *arena)
{
  return *arena = {}, PETSC_SUCCESS;
}
