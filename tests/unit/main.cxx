/* The main program of every unit test: GoogleTest inside PetscInitialize / PetscFinalize */
#include <gtest/gtest.h>
#include <petscsys.h>

int main(int argc, char **argv)
{
  ::testing::InitGoogleTest(&argc, argv); /* takes its own arguments, the rest is PETSc's */
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();

  if (PetscInitialize(&argc, &argv, NULL, NULL) != PETSC_SUCCESS) return 1;
  const int failed = RUN_ALL_TESTS();
  if (PetscFinalize() != PETSC_SUCCESS) return 1;
  return failed;
}
