/*
   Kernels of conjugate gradients with x and r in registers (tccgregister.cu), for the launches of tccgresident.cu
*/
#pragma once

#include <petsctc/private/tccgresident.h>

constexpr int TCCG_REGISTER_THREADS = 256;
constexpr int TCCG_REGISTER_ROWS    = 34; /* of a thread */

/* The one that folds with shuffles, and the one with the Tensor Core */
extern const void *const TCCGRegisterKernels[2];
