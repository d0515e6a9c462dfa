/* The main program of every unit test: GoogleTest inside PetscInitialize / PetscFinalize */
#include <gtest/gtest.h>
#include <petscsys.h>

#if defined(__SANITIZE_ADDRESS__)
  #include <sanitizer/lsan_interface.h>
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options()
{
  return "detect_leaks=1";
}
#endif

/* What MPI allocates at its start and end and keeps is no leak of ours */
template <class Call>
PetscErrorCode WithoutLeakCheck(Call call)
{
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler no_leaks;
#endif
  return call();
}

int main(int argc, char **argv)
{
  ::testing::InitGoogleTest(&argc, argv); /* takes its own arguments, the rest is PETSc's */
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();

  if (WithoutLeakCheck([&] { return PetscInitialize(&argc, &argv, NULL, NULL); }) != PETSC_SUCCESS) return 1;
  const int failed = RUN_ALL_TESTS();
  if (WithoutLeakCheck([] { return PetscFinalize(); }) != PETSC_SUCCESS) return 1;
  return failed;
}
