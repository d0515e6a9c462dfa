/*
   The FP64 Tensor Core instructions, one struct each, named architecture_shape_types_layout. CUDA translation units only.

   A kernel that reaches an instruction its architecture lacks stops with a trap (cudaErrorLaunchFailure or cudaErrorIllegalInstruction at the next
   synchronisation): a wrong number is never returned. PetscTCDeviceHasMMA_CUDA() tells beforehand.
*/
#pragma once

/*
   D = A B + C with A 8 x 4, B 4 x 8, C and D 8 x 8; all 32 lanes of a warp take part.

   Lane l holds one entry of A, one of B and two neighbours of a row of C and D:

     A (row i = l / 4, column k = l % 4)        B (row k = l % 4, column j = l / 4)

            k=0  1   2   3                             j=0  1   2   3   4   5   6   7
       i=0   0   1   2   3                        k=0   0   4   8  12  16  20  24  28
         1   4   5   6   7                          1   1   5   9  13  17  21  25  29
         2   8   9  10  11                          2   2   6  10  14  18  22  26  30
         .   .   .   .   .                          3   3   7  11  15  19  23  27  31
         7  28  29  30  31

     C, D (row i = l / 4, columns 2 (l % 4) in c0 and 2 (l % 4) + 1 in c1)

            j=0  1   2   3   4   5   6   7
       i=0   0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1     lane:register
         1   4:0 4:1 5:0 5:1 ...
         .
         7  28:0 28:1 ...                31:0 31:1

   So entry (i, i) of D is register i % 2 of lane 4 i + i / 2. Each entry of D depends on its own row of A and column of B alone: an Inf or NaN elsewhere does
   not reach it.

   Reference: PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f64 floating point type"
*/
struct SM80_8x8x4_F64F64F64F64_TN {
  static __device__ __forceinline__ void fma(double &d0, double &d1, double a, double b, double c0, double c1)
  {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    /* volatile: all 32 lanes must reach it, so it may not be moved into a branch that some lanes skip */
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};" : "=d"(d0), "=d"(d1) : "d"(a), "d"(b), "d"(c0), "d"(c1));
#else
    (void)a, (void)b, (void)c0, (void)c1;
    d0 = d1 = 0.0;
  #if defined(__CUDA_ARCH__)
    __trap();
  #endif
#endif
  }
};
