# The A/Bs of the source tree that the bundle has too. Need $here (this folder), $tree (programs and run scripts), $work, $jobs, ab().

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

# PETSc's tests that know nothing of us, with every sequential AIJ ours; with MORE=-acceptance_mpiaij the parallel ones too. The plug-in of the tests lies beside the library
folders_ab() { # TITLE LIST MORE [options of ab.py]
  ab --title "$1" --work "$work/${1// /_}" --scripts "$2" --tally --floor 1e-12 --used matrices parallel --stock "-use_gpu_aware_mpi 0" \
    --plugin "-use_gpu_aware_mpi 0 -dll_append $PETSCTC_LIB,$(dirname "$PETSCTC_LIB")/libpetsctctests.so -petsctc_summary -mat_seqaij_type seqaijtc $3" \
    --twin="-mat_seqaij_type seqaijperm" --twin="-mat_seqaij_type seqaijcrl" --vary=-mat_no_inode --vary="-ksp_orthogonalization mgs" \
    --exceptions "$here/exceptions-folders.txt" "${@:4}"
}

# Those of them that make, convert, cut and multiply matrices, with the matrices on the GPU
gpu_folders() {
  folders_ab "GPU folders" "$here/folders-gpu.txt" -acceptance_mpiaij "$@"
}
