/*
   The line of progress. A monitor could print it, but a solver that does many iterations in one kernel would have to look at each for it. A thread that reads the array of residual norms from time to time changes nothing:
   it calls nothing of PETSc, and the solver does not know of it.
*/
#include "solveprogress.h"

#include <chrono>
#include <cstdio>

Progress::Progress(PetscBool on, const std::string &name, const PetscReal history[], size_t size)
{
  PetscMPIInt rank = 0;

  (void)MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  if (on && rank == 0) thread = std::thread(&Progress::Watch, this, name, history, size);
}

Progress::~Progress()
{
  if (!thread.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex);

    over = true;
  }
  changed.notify_one();
  thread.join();
}

/* The solver writes the history meanwhile. An entry is one store of the processor's, so that it is there or not */
void Progress::Watch(const std::string &name, const PetscReal history[], size_t size)
{
  using clock                        = std::chrono::steady_clock;
  const auto                   start = clock::now(), first = start + std::chrono::seconds(2);
  size_t                       known = 0;
  int                          shown = 0;
  std::unique_lock<std::mutex> lock(mutex);
  auto                         next = first;

  while (!changed.wait_until(lock, next, [this] { return over; })) {
    PetscReal norm = NOT_YET;

    for (PetscReal entry; known < size; known++) {
      __atomic_load(&history[known], &entry, __ATOMIC_RELAXED);
      if (entry == NOT_YET) break;
    }
    if (known) __atomic_load(&history[known - 1], &norm, __ATOMIC_RELAXED);
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    const int    length  = known ? fprintf(stderr, "\r%s: iteration %zu%s, residual norm %.3e, %.1f s", name.c_str(), known - 1, known == size ? " or more" : "", (double)norm, seconds)
                                 : fprintf(stderr, "\r%s: no iteration yet, %.1f s", name.c_str(), seconds);

    if (length < shown) fprintf(stderr, "%*s", shown - length, "");
    shown = PetscMax(shown, length);
    fflush(stderr);
    next = clock::now() + std::chrono::milliseconds(200);
  }
  if (shown) fprintf(stderr, "\r%*s\r", shown, "");
}
