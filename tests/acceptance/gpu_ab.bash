# The A/B on a GPU, used in the source tree and in the bundle. Needs $here (this folder), $tree (programs and run scripts), $work, $jobs, ab().

# PETSc's own tests that say aijcusparse, that name replaced by aijtc
gpu_scripts() {
  ab --title "GPU scripts" --work "$work/gpu" --scripts "$here/gpu-scripts.txt" --exceptions "$here/exceptions-gpu.txt" --replace aijcusparse=aijtc \
    --require group:mult --stock "-use_gpu_aware_mpi 0" --plugin "-use_gpu_aware_mpi 0 $plugin_options" "$@"
}

# The option sweep with everything on the GPU
gpu_sweep() { # list of cases
  local gpu="-vec_type cuda -dm_vec_type cuda -use_gpu_aware_mpi 0"
  ab --title "GPU sweep" --work "$work/gpu_sweep" --commands "$1" --exceptions "$here/exceptions-gpu.txt" --require mult group:fused --stock "-mat_type aijcusparse -dm_mat_type aijcusparse $gpu" \
    --plugin "-mat_type aijtc -dm_mat_type aijtc $gpu $plugin_options" "${@:2}"
}
