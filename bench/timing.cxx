/*
   Times, the machine, the bandwidth of a copy, and the product by which all others are judged.

   Products of a GPU are timed in two ways, in batches between two events. Call: as a program asks for them, one after the other; what the host does between two launches counts where
   it takes longer than the product. Device: the stream waits at a gate until all products of the batch are queued, so that nothing but the device's own time is between the events.
   A product that waits for the device cannot be queued so; the gate then opens by itself, and only the time of the call is reported.
*/
#include "bench.h"

#include <petscdevice.h>
#include <petsctime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

#include <unistd.h>

#if PetscDefined(HAVE_CUDA)
  #include <petscdevice_cuda.h>
#endif

namespace
{

std::string ProcessorName()
{
  std::ifstream file("/proc/cpuinfo");
  std::string   line;

  while (std::getline(file, line)) {
    if (line.compare(0, 10, "model name") == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

Spread Summarize(std::vector<double> times, PetscInt products)
{
  Spread       spread;
  const size_t n = times.size();

  std::sort(times.begin(), times.end());
  spread.median   = n % 2 ? times[n / 2] : 0.5 * (times[n / 2 - 1] + times[n / 2]);
  spread.least    = times.front();
  spread.most     = times.back();
  spread.batches  = (PetscInt)n;
  spread.products = products;
  return spread;
}

#if PetscDefined(HAVE_CUDA)
/* Holds a stream until it is opened */
struct Gate {
  std::atomic<bool> open{false}, expired{false};

  static void CUDART_CB wait(void *gate)
  {
    Gate      *g     = static_cast<Gate *>(gate);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);

    while (!g->open.load()) {
      if (std::chrono::steady_clock::now() > limit) {
        g->expired = true;
        return;
      }
    }
  }
};

struct Events {
  cudaEvent_t start = nullptr, stop = nullptr;

  ~Events()
  {
    if (start) (void)cudaEventDestroy(start);
    if (stop) (void)cudaEventDestroy(stop);
  }
};

PetscErrorCode TimeBatchCUDA(cudaStream_t stream, bool queued, PetscInt products, const std::function<PetscErrorCode()> &product, double *seconds, bool *expired)
{
  Events         events;
  Gate           gate;
  float          milliseconds;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCallCUDA(cudaEventCreate(&events.start));
  PetscCallCUDA(cudaEventCreate(&events.stop));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  if (queued) PetscCallCUDA(cudaLaunchHostFunc(stream, Gate::wait, &gate));
  PetscCallCUDA(cudaEventRecord(events.start, stream));
  for (PetscInt k = 0; k < products && !ierr; k++) ierr = product();
  const cudaError_t recorded = cudaEventRecord(events.stop, stream);
  gate.open                  = true;
  const cudaError_t ended    = cudaStreamSynchronize(stream); /* before anything returns: the gate lives here */
  PetscCall(ierr);
  PetscCallCUDA(recorded);
  PetscCallCUDA(ended);
  PetscCallCUDA(cudaEventElapsedTime(&milliseconds, events.start, events.stop));
  *seconds = 1e-3 * (double)milliseconds / (double)products;
  *expired = gate.expired;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode DescribeDevice(const Settings *settings, Machine *machine)
{
  cudaDeviceProp      properties;
  int                 device, runtime, driver;
  char               *from = nullptr, *to = nullptr;
  std::vector<double> times;

  PetscFunctionBegin;
  PetscCallCUDA(cudaGetDevice(&device));
  PetscCallCUDA(cudaGetDeviceProperties(&properties, device));
  PetscCallCUDA(cudaRuntimeGetVersion(&runtime));
  PetscCallCUDA(cudaDriverGetVersion(&driver));
  PetscCall(PetscGetCurrentCUDAStream(&machine->stream));
  machine->device          = properties.name;
  machine->multiprocessors = properties.multiProcessorCount;
  machine->cache           = (double)properties.l2CacheSize;
  machine->cuda            = std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  machine->driver          = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  std::ifstream("/sys/module/nvidia/version") >> machine->driver;
  machine->copy_bytes = settings->copy_bytes > 0.0 ? (double)settings->copy_bytes : PetscMin(2e9, 0.2 * (double)properties.totalGlobalMem);
  const size_t bytes  = (size_t)machine->copy_bytes;
  PetscCallCUDA(cudaMalloc(&from, bytes));
  const cudaError_t allocated = cudaMalloc(&to, bytes);
  if (allocated != cudaSuccess) PetscCallCUDA(cudaFree(from));
  PetscCallCUDA(allocated);
  PetscCallCUDA(cudaMemsetAsync(from, 1, bytes, machine->stream));
  PetscCallCUDA(cudaMemsetAsync(to, 2, bytes, machine->stream));
  for (int k = 0; k < 25; k++) {
    double seconds = 0.0;
    bool   expired;

    PetscCall(TimeBatchCUDA(
      machine->stream, true, 1,
      [&]() -> PetscErrorCode {
        PetscFunctionBegin;
        PetscCallCUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, machine->stream));
        PetscFunctionReturn(PETSC_SUCCESS);
      },
      &seconds, &expired));
    if (k >= 5) times.push_back(seconds);
  }
  machine->copy_bandwidth = 2.0 * machine->copy_bytes / Summarize(times, 1).median;
  PetscCallCUDA(cudaFree(from));
  PetscCallCUDA(cudaFree(to));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

PetscErrorCode DescribeHost(const Settings *settings, Machine *machine)
{
  std::vector<double> times;

  PetscFunctionBegin;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  machine->cache = (double)PetscMax(0L, sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
  machine->copy_bytes = settings->copy_bytes > 0.0 ? (double)settings->copy_bytes : 268435456.0;
  std::vector<char> from((size_t)machine->copy_bytes, 1), to(from.size(), 2);
  for (int k = 0; k < 7; k++) {
    PetscLogDouble start, stop;

    PetscCall(PetscTime(&start));
    std::memcpy(to.data(), from.data(), from.size());
    PetscCall(PetscTime(&stop));
    from[0] = (char)(to[1] + k); /* each copy is needed */
    if (k >= 2) times.push_back(PetscMax(stop - start, 1e-9));
  }
  machine->copy_bandwidth = 2.0 * machine->copy_bytes / Summarize(times, 1).median;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TimeBatch(const Machine *machine, bool queued, PetscInt products, const std::function<PetscErrorCode()> &product, double *seconds, bool *expired)
{
  PetscFunctionBegin;
  *expired = false;
#if PetscDefined(HAVE_CUDA)
  if (machine->gpu) {
    PetscCall(TimeBatchCUDA(machine->stream, queued, products, product, seconds, expired));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscLogDouble start, stop;
  (void)machine, (void)queued;
  PetscCall(PetscTime(&start));
  for (PetscInt k = 0; k < products; k++) PetscCall(product());
  PetscCall(PetscTime(&stop));
  *seconds = (stop - start) / (double)products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode MachineDescribe(const Settings *settings, Machine *machine)
{
  PetscBool usable;
  char      version[256];

  PetscFunctionBegin;
  PetscCall(PetscTCDeviceUsable(PETSC_COMM_SELF, &usable));
  machine->gpu = usable;
  PetscCall(PetscGetVersion(version, sizeof(version)));
  machine->petsc = version;
  machine->cpu   = ProcessorName();
#if PetscDefined(HAVE_CUDA)
  if (usable) {
    PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
    PetscCall(DescribeDevice(settings, machine));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(DescribeHost(settings, machine));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time when the device has done all that it was asked */
PetscErrorCode MachineSynchronize(const Machine *machine, PetscLogDouble *seconds)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (machine->gpu) PetscCallCUDA(cudaDeviceSynchronize());
#else
  (void)machine;
#endif
  PetscCall(PetscTime(seconds));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Batches after a warm-up of at least five products; fewer of slow ones, so that all take about settings->limit */
PetscErrorCode TimeProducts(const Machine *machine, const Settings *settings, bool queued, const std::function<PetscErrorCode()> &product, Spread *spread)
{
  const PetscInt      warm_up = 5;
  double              once    = 0.0;
  bool                expired;
  std::vector<double> times;

  PetscFunctionBegin;
  PetscCall(TimeBatch(machine, false, 1, product, &once, &expired));
  const double   room    = (double)settings->limit / PetscMax(once, 1e-9); /* products */
  const PetscInt batches = (PetscInt)PetscMax(3.0, PetscMin((double)settings->batches, room));
  PetscInt       each    = (PetscInt)PetscMax(1.0, PetscMin((double)settings->products, room / (double)batches));
  if (room > warm_up) PetscCall(TimeBatch(machine, false, warm_up, product, &once, &expired));
  if (once * settings->products * batches < settings->limit) each = settings->products; /* the first product was slow, the others are not */
  for (PetscInt k = 0; k < batches; k++) {
    double seconds = 0.0;

    PetscCall(TimeBatch(machine, queued, each, product, &seconds, &expired));
    if (expired) PetscFunctionReturn(PETSC_SUCCESS); /* cannot be queued: not measured */
    times.push_back(seconds);
  }
  *spread = Summarize(times, each);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   x has entries of either sign whose magnitudes span six decades. The bound: a sum of n products, each rounded, added in any order, is off by at most about n eps |a|.|x|, and so is the
   reference; eps = 2^-53.
*/
void ReferenceCompute(const Csr *A, Reference *reference)
{
  reference->x.resize((size_t)A->n);
  reference->y.resize((size_t)A->m);
  reference->bound.resize((size_t)A->m);
  for (PetscInt k = 0; k < A->n; k++) {
    const uint64_t h = Hash((uint64_t)k + 1000003);

    reference->x[k] = (h & 1 ? 1.0 : -1.0) * std::ldexp(0.5 + 0.5 * HashToUnit(h), (int)((h >> 8) % 21) - 10);
  }
  for (PetscInt r = 0; r < A->m; r++) {
    PetscScalar sum       = 0.0;
    PetscReal   magnitude = 0.0;

    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const PetscScalar term = A->a[k] * reference->x[A->j[k]];

      sum += term;
      magnitude += PetscAbsScalar(term);
    }
    reference->y[r]     = sum;
    reference->bound[r] = 2.0 * (PetscReal)(A->i[r + 1] - A->i[r] + 1) * 0x1p-53 * magnitude;
  }
}

PetscErrorCode ReferenceCheck(const Reference *reference, const PetscScalar y[], double *worst)
{
  size_t at = 0;

  PetscFunctionBegin;
  *worst = 0.0;
  for (size_t r = 0; r < reference->y.size(); r++) {
    const double error = PetscAbsScalar(y[r] - reference->y[r]), ratio = error == 0.0 ? 0.0 : reference->bound[r] > 0.0 ? error / reference->bound[r] : PETSC_INFINITY;

    if (!(ratio <= *worst)) *worst = ratio, at = r; /* a NaN too */
    if (ratio != ratio) break;
  }
  PetscCheck(*worst <= 1.0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Wrong product: row %" PetscCount_FMT " is %.17g, should be %.17g within %g", (PetscCount)at, (double)y[at], (double)reference->y[at], (double)reference->bound[at]);
  PetscFunctionReturn(PETSC_SUCCESS);
}
