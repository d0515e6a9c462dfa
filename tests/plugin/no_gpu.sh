#!/usr/bin/env bash
# A PETSc with CUDA on a machine without a usable GPU: the types run on the host. Where there is a GPU, it is hidden.
set -euo pipefail
source "$(dirname "$0")/common.bash"
if ! grep -q '^#define PETSC_HAVE_CUDA 1' "$PETSC_DIR/${PETSC_ARCH:+$PETSC_ARCH/}include/petscconf.h"; then
  echo "skipped: this PETSc has no CUDA"
  exit 77
fi
export CUDA_VISIBLE_DEVICES=
tutorial ex2

for np in 1 2; do
  run $np ex2 -m 20 -n 20 -pc_type jacobi -mat_type aij -ksp_type cg
  stock=$(iterations)
  for extra in "" "-log_view" "-log_view -log_view_gpu_time" "-device_enable none" "-device_enable lazy" "-use_gpu_aware_mpi 0" "-mat_aijtc_mma core" "-mat_aijtc_check" "-vec_type standard" "-malloc_debug"; do
    run $np ex2 -m 20 -n 20 -pc_type jacobi -dll_append "$PETSCTC_LIB" -mat_type aijtc -ksp_type tccg -petsctc_summary -malloc_dump -checkfunctionlist $extra
    check "$np processes ${extra:-(no more options)}" '[ $status = 0 ] && used && [ "$(iterations)" = "$stock" ] && ! has "PETSC ERROR\|bytes allocated\|options you set"'
  done
  run $np ex2 -m 20 -n 20 -dll_append "$PETSCTC_LIB" -mat_type aijtc -mat_aijtc_backend cuda
  check "$np processes: asking for the GPU is an error, not a crash" '[ $status != 0 ] && has "PETSC ERROR" && ! has "Segmentation"'
done
finish
