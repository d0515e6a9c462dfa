/* The main program of every unit test: GoogleTest inside PetscInitialize / PetscFinalize. Exit status 77: none ran, all were skipped */
#include <gtest/gtest.h>
#include <petscsys.h>

#if defined(__SANITIZE_ADDRESS__)
  #include <sanitizer/lsan_interface.h>
/*
   intercept_tls_get_addr: the thread-local variables of a loaded library that happen to begin 16 bytes behind a page's beginning are taken for a block with a header of glibc 2.19 (libsanitizer of GCC 12), and
   the leak check dies of signal 11 where that tells it to look
*/
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options()
{
  return "detect_leaks=1:intercept_tls_get_addr=0";
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

#if defined(__SANITIZE_ADDRESS__)
  if (WithoutLeakCheck([] { return PetscOptionsSetValue(NULL, "-malloc_debug", "false"); }) != PETSC_SUCCESS) return 1; /* a debugging PETSc's list of allocations would hold what is lost */
#endif
  if (WithoutLeakCheck([&] { return PetscInitialize(&argc, &argv, NULL, NULL); }) != PETSC_SUCCESS) return 1;
  const int  failed = RUN_ALL_TESTS();
  const auto tests  = ::testing::UnitTest::GetInstance();
  const bool none   = tests->skipped_test_count() == tests->test_to_run_count();
  if (WithoutLeakCheck([] { return PetscFinalize(); }) != PETSC_SUCCESS) return 1;
  return failed ? failed : none ? 77 : 0;
}
