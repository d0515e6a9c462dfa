/* The main program of every unit test: GoogleTest inside PetscInitialize / PetscFinalize */
#include <cstdlib>
#include <gtest/gtest.h>
#include <petscsys.h>

#if defined(__SANITIZE_ADDRESS__)
  #include <sanitizer/lsan_interface.h>
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options()
{
  return "detect_leaks=1:leak_check_at_exit=0";
}
/* MPI's threads allocate whenever they are scheduled, and a ScopedDisabler is for the calling thread alone */
extern "C" __attribute__((visibility("default"))) const char *__lsan_default_suppressions()
{
  return "leak:libmpi\nleak:libopen-rte\nleak:libopen-pal\nleak:libpmix\nleak:libevent\nleak:mca_";
}
#endif

/* One process, which never spawns: Open MPI need not start a daemon for it, which takes longer than most tests. What MPI allocates here and keeps is no leak of ours */
PetscErrorCode Initialize(int *argc, char ***argv)
{
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler no_leaks;

  if (PetscOptionsSetValue(NULL, "-malloc_debug", "false")) return PETSC_ERR_LIB; /* a debugging PETSc's list of allocations would hold what is lost */
#endif
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  return PetscInitialize(argc, argv, NULL, NULL);
}

/* While MPI is still there: at its end it unloads libraries, and what their variables pointed to looks lost */
bool HasLeaks()
{
#if defined(__SANITIZE_ADDRESS__)
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

int main(int argc, char **argv)
{
  ::testing::InitGoogleTest(&argc, argv); /* takes its own arguments, the rest is PETSc's */
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();

  if (Initialize(&argc, &argv) != PETSC_SUCCESS) return 1;
  const bool failed = RUN_ALL_TESTS() != 0, leaks = HasLeaks();
  if (PetscFinalize() != PETSC_SUCCESS) return 1;
  return failed || leaks ? 1 : 0;
}
