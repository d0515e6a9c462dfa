#!/usr/bin/env bash
#   sweep.sh          on the host;   sweep.sh --list   prints the cases only
# PETSc's tests use BCGS almost nowhere, and CG with few combinations of options. This puts PETSc's default-solver programs through tcbcgs against bcgs
# and tccg against cg, over sides, norm types, preconditioners, initial guesses and stopping options; monitors print every residual norm.
set -euo pipefail
source "$(dirname "$0")/common.bash"
number=0
case_() { # method processes program options
  number=$((number + 1))
  printf '%03d_%s_%s | %s | %s | %s -ksp_monitor -ksp_converged_reason | -ksp_type %s | -ksp_type tc%s\n' "$number" "$1" "${3//\//_}" "$2" "$3" "$4" "$1" "$1"
}
ksp=ksp/ksp/tutorials
# BiCGSTAB amplifies rounding about threefold an iteration (stock PETSc on one and on two processes differs as much), so that histories can be
# compared digit by digit only while they are short: no solve here goes far beyond 20 iterations.
ex2="-m 13 -n 11"

sweep() {
  local pc norm np extra
  # Every pair of norm type and side that each method supports, by preconditioner.
  for pc in none jacobi bjacobi sor ilu gamg; do
    case_ bcgs 1 $ksp/ex2 "$ex2 -pc_type $pc -ksp_pc_side left -ksp_norm_type preconditioned"
    case_ bcgs 1 $ksp/ex2 "$ex2 -pc_type $pc -ksp_pc_side right -ksp_norm_type unpreconditioned"
  done
  for pc in none jacobi bjacobi icc gamg; do
    for norm in preconditioned unpreconditioned natural; do
      case_ cg 1 $ksp/ex2 "$ex2 -pc_type $pc -ksp_norm_type $norm"
    done
  done
  for np in 1 2; do
    for extra in "-ksp_norm_type none -ksp_max_it 7" "-ksp_max_it 5" "-ksp_max_it 5 -ksp_converged_maxits" "-ksp_min_it 22" "-ksp_check_norm_iteration 4" \
      "-ksp_initial_guess_nonzero -ksp_rtol 1e-6" "-ksp_rtol 1e-3" "-ksp_atol 1e-2 -ksp_rtol 1e-20" "-ksp_divtol 1.01 -ksp_rtol 1e-6" "-ksp_lag_norm" \
      "-ksp_monitor_true_residual -ksp_view" "-ksp_converged_use_initial_residual_norm -ksp_initial_guess_nonzero" "-ksp_error_if_not_converged 0 -ksp_max_it 1"; do
      case_ bcgs $np $ksp/ex2 "$ex2 -pc_type jacobi $extra"
      case_ cg $np $ksp/ex2 "$ex2 -pc_type jacobi $extra"
    done
    case_ bcgs $np $ksp/ex2 "$ex2 -pc_type jacobi -ksp_norm_type none -ksp_pc_side right -ksp_max_it 6"
  done
  for extra in "-ksp_cg_single_reduction" "-ksp_view_eigenvalues" "-ksp_view_singularvalues" "-ksp_cg_radius 0.5"; do
    case_ cg 1 $ksp/ex2 "$ex2 -pc_type jacobi $extra"
  done
  # The other programs: time steps, Newton steps, new values in the same matrix, null spaces, multigrid.
  for np in 1 2; do
    case_ bcgs $np $ksp/ex5 "-pc_type jacobi"
    case_ bcgs $np ksp/ksp/tests/ex3 "-m 9 -pc_type jacobi"
    case_ bcgs $np snes/tutorials/ex9 "-snes_grid_sequence 1 -pc_type jacobi -snes_monitor"
    case_ bcgs $np ts/tutorials/ex15 "-da_grid_x 16 -da_grid_y 16 -boundary 1 -ts_max_steps 4 -ts_monitor -pc_type jacobi"
    case_ bcgs $np $ksp/ex29 "-da_grid_x 17 -da_grid_y 17 -pc_type bjacobi -ksp_pc_side right"
    case_ cg $np $ksp/ex23 "-n 40 -pc_type jacobi"
    case_ cg $np $ksp/ex29 "-da_grid_x 17 -da_grid_y 17 -bc_type neumann -pc_type jacobi"
    case_ cg $np $ksp/ex29 "-da_grid_x 9 -da_grid_y 9 -da_refine 1 -pc_type mg -pc_mg_galerkin"
    case_ cg $np $ksp/ex45 "-da_grid_x 11 -da_grid_y 11 -da_grid_z 11 -pc_type jacobi"
    case_ cg $np $ksp/ex32 "-da_grid_x 12 -da_grid_y 12 -pc_type jacobi"
    case_ cg $np $ksp/ex50 "-da_grid_x 21 -da_grid_y 21 -pc_type jacobi"
  done
  case_ bcgs 1 $ksp/ex1 "-pc_type none"
  case_ bcgs 1 $ksp/ex1 "-pc_type ilu"
  case_ bcgs 1 snes/tutorials/ex5 "-da_grid_x 21 -da_grid_y 21 -snes_monitor -par 6.0 -pc_type ilu"
  case_ bcgs 1 snes/tutorials/ex5 "-da_grid_x 21 -da_grid_y 21 -snes_monitor -par 6.0 -pc_type none"
  case_ cg 1 snes/tutorials/ex5 "-da_grid_x 21 -da_grid_y 21 -snes_monitor -par 5.0 -pc_type none"
  case_ cg 1 $ksp/ex56 "-ne 5 -alpha 1.e-3 -pc_type jacobi -two_solves"
  case_ cg 1 $ksp/ex56 "-ne 5 -alpha 1.e-3 -pc_type gamg"
}

if [ "${1:-}" = --list ]; then
  sweep
  exit 0
fi
list=$work/sweep.txt
sweep >"$list"
flock 9
generate_scripts
# shellcheck disable=SC2046 # one word each
build_programs $(cut -d'|' -f3 "$list" | sort -u)
flock -u 9
ab --title "sweep" --work "$work/sweep" --commands "$list" --require mult group:fused --stock "-mat_type aij -dm_mat_type aij" \
  --plugin "-mat_type aijtc -dm_mat_type aijtc $plugin_options $by_layout"
