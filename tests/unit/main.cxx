/* The main program of every unit test: GoogleTest inside PetscInitialize / PetscFinalize */
#include <gtest/gtest.h>
#include <petscsys.h>

#if defined(__SANITIZE_ADDRESS__)
/* What Open MPI keeps to the end of a process is no leak of ours; whole stacks, so that the memory of its components is known as its own */
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options()
{
  return "detect_leaks=1:fast_unwind_on_malloc=0";
}
extern "C" __attribute__((visibility("default"))) const char *__lsan_default_options()
{
  return "print_suppressions=0";
}
extern "C" __attribute__((visibility("default"))) const char *__lsan_default_suppressions()
{
  return "leak:libmpi\nleak:libopen-pal\nleak:libopen-rte\nleak:libhwloc\nleak:libevent\nleak:libpmix\nleak:mca_\n";
}
#endif

int main(int argc, char **argv)
{
  ::testing::InitGoogleTest(&argc, argv); /* takes its own arguments, the rest is PETSc's */
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();

  if (PetscInitialize(&argc, &argv, NULL, NULL) != PETSC_SUCCESS) return 1;
  const int failed = RUN_ALL_TESTS();
  if (PetscFinalize() != PETSC_SUCCESS) return 1;
  return failed;
}
