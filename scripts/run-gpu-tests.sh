#!/usr/bin/env bash
# Tests and measures PETSc-TC on a node with a GPU, from the bundle that scripts/bundle.sh packed.
#   run-gpu-tests.sh [sanity|tests|harness|sanitizer|acceptance|bench|multi|all]...     default: all; STEPS=REGEX in the environment: only steps whose names match; PART=K/N: of the acceptance every Nth case
# Each section takes less than 10 minutes, harness on a single GPU without MPS up to 15. Where there is no GPU, what needs one is reported as skipped. Logs go to $OUT (default ./results), one for each
# section; the end of the output tells everything: what failed with its last lines, the table of times, the count.
# Where there are several GPUs (of CUDA_VISIBLE_DEVICES, if it is set), tests are spread over them and the sanitizer's steps run side by side, one a GPU;
# the benchmarks are alone on the first one.
set -uo pipefail
case ${1-} in -h | --help) sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;; esac
bundle=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "${OUT:-./results}")
work=$(mktemp -d "${TMPDIR:-/tmp}/petsctc.XXXXXX")
mps=
trap '[ -z "$mps" ] || end_mps; rm -rf "$work"' EXIT
mkdir -p "$out"
unset PETSC_ARCH DATAFILESPATH
export PETSC_OPTIONS="-use_gpu_aware_mpi 0" # Open MPI of the distributions is not GPU-aware, and PETSc refuses to start a GPU with it otherwise
export PETSC_DIR=$bundle/petsc PETSCTC_LIB=$bundle/lib/libpetsctc.so PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PATH=$PATH:/usr/local/cuda/bin
export LD_LIBRARY_PATH=$bundle/lib:${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64

missing() { ldd "$bundle"/lib/*.so* "$bundle"/bin/* 2>/dev/null | awk '/not found/ {print $1}' | sort -u | tr '\n' ' '; }
if [ -f "$bundle/mpi.tar.xz" ] && { [ -n "$(missing)" ] || ! mpiexec -n 1 true >/dev/null 2>&1; }; then
  mkdir "$work/mpi"
  tar -C "$work/mpi" -xJf "$bundle/mpi.tar.xz"
  export OPAL_PREFIX=$work/mpi PATH=$work/mpi/bin:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$work/mpi/lib/needed
fi
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
gpu=$((gpus > 0))
mapfile -t devices < <(seq 0 $((gpus - 1)))
if [ $gpu = 1 ] && [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  IFS=, read -ra devices <<<"$CUDA_VISIBLE_DEVICES"
  gpus=${#devices[@]}
fi
least() { printf '%s\n' "$@" | sort -n | head -1; }
cores=$(env -u OMP_NUM_THREADS nproc) # nproc heeds OMP_NUM_THREADS
jobs=$(least "$cores" 16)
# Processes on one GPU take turns: more of them only slow each other down
harness_jobs=$(least "$cores" $((4 * gpus)))
acceptance_jobs=$jobs
[ "$gpus" -le 1 ] || acceptance_jobs=$(least "$cores" $((6 * gpus)))

# Where many processes share a GPU, NVIDIA's Multi-Process Service lets their kernels run side by side instead of by turns: PETSc's tests take a tenth of the time. A server of our own, ended with the section;
# without the service things go on as they are
start_mps() {
  [ $gpu = 1 ] && [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && command -v nvidia-cuda-mps-control >/dev/null || return 0
  mkdir -p "$work/mps"
  CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps nvidia-cuda-mps-control -d >/dev/null 2>&1 || return 0
  mps=$work/mps
  export CUDA_MPS_PIPE_DIRECTORY=$mps
  harness_jobs=$(least "$cores" $((8 * gpus))) acceptance_jobs=$harness_jobs # the service takes 48 clients a GPU, and a test has up to 6 processes
}
end_mps() {
  [ -n "$mps" ] || return 0
  echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
  unset CUDA_MPS_PIPE_DIRECTORY
  mps=
}

# Each call of mpiexec sees one GPU, by turns: as many as this file is long
mpiexec=mpiexec
if [ "$gpus" -gt 1 ]; then
  mpiexec=$work/mpiexec
  cat >"$mpiexec" <<END
#!/usr/bin/env bash
devices=(${devices[*]})
exec 9>>"$work/turns"
flock 9
turn=\$(wc -c <"$work/turns")
printf . >&9
exec 9>&-
CUDA_VISIBLE_DEVICES=\${devices[turn % $gpus]} exec "$(command -v mpiexec)" "\$@"
END
  chmod +x "$mpiexec"
fi
export MPIEXEC="$mpiexec --oversubscribe"
on_gpu() { # TURN COMMAND...: it sees the GPU whose turn it is
  if [ "$gpus" -gt 1 ]; then
    CUDA_VISIBLE_DEVICES=${devices[$1 % gpus]} "${@:2}"
  else
    "${@:2}"
  fi
}

# within LIMIT COMMAND...: ends all its processes after LIMIT seconds, with exit status 137
within() {
  local limit=$1 status=0
  (
    trap - EXIT
    "${@:2}"
  ) &
  local pid=$!
  # The limit: a watcher ends the command's processes, all children of that shell
  (
    trap - EXIT
    for ((i = 0; i < limit; i++)); do
      sleep 1
      kill -0 $pid 2>/dev/null || exit 0
    done
    kill_tree $pid
  ) >/dev/null 2>&1 &
  local watcher=$!
  wait $pid 2>/dev/null || status=$?
  kill $watcher 2>/dev/null
  wait $watcher 2>/dev/null
  [ $status != 137 ] || echo "ended after its limit of $limit s"
  return $status
}
kill_tree() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do kill_tree "$child"; done
  kill -KILL "$1" 2>/dev/null
}

# step NAME LIMIT COMMAND...: runs it within LIMIT seconds; exit status 77 is a skip. Its output goes to the section's log.
passed=0 skipped=0 failed=0
failures=()
step() {
  [[ $1 =~ ${STEPS:-.} ]] || return 0
  run_step "$work/step" "${@:2}"
  report_step "$1" "$work/step"
}
run_step() { # FOLDER LIMIT COMMAND...: the output and the result stay in FOLDER, $scratch of the command
  local start=$SECONDS status=0
  scratch=$1
  rm -rf "$scratch"
  mkdir "$scratch"
  within "${@:2}" >"$scratch/log" 2>&1 || status=$?
  echo $status $((SECONDS - start)) >"$scratch/result"
}
report_step() { # NAME FOLDER
  local name=$1 status seconds line
  read -r status seconds <"$2/result"
  printf '\n=== %s: %s\n' "$section" "$name" >>"$log"
  cat "$2/log" >>"$log"
  case $status in
    0) passed=$((passed + 1)) && printf 'pass    %s: %s (%d s)\n' "$section" "$name" "$seconds" ;;
    77) skipped=$((skipped + 1)) && printf 'skipped %s: %s: %s\n' "$section" "$name" "$(tail -1 "$2/log")" ;;
    *)
      failed=$((failed + 1))
      line=$(printf 'FAILED  %s: %s (%d s, exit status %d)' "$section" "$name" "$seconds" "$status")
      failures+=("$line"$'\n'"$(told "$2/log")")
      echo "$line"
      ;;
  esac
}
told() { # LOG: the lines that say what went wrong, and the last ones
  { grep -m5 -E 'PETSC ERROR: [^-]|FAILED  \]|^ *not ok|^did not end|FAILURE|Failure$|=+ (Invalid|Error|Uninit)|SLOWER' "$1" && tail -3 "$1" || tail -8 "$1"; } | cut -c1-160 | sed 's/^/          /'
}
gpu_step() {
  if [ $gpu = 1 ]; then
    step "$@"
  else
    step "$1" 5 no_gpu
  fi
}
no_gpu() {
  echo "no GPU"
  return 77
}

# free_gpu_step NAME LIMIT COMMAND...: a gpu_step that, where there are several GPUs, starts when one is free and has it alone; wait_steps reports
names=() pids=()
free_gpu_step() {
  if [ "$gpus" -le 1 ]; then
    gpu_step "$@"
  elif [[ $1 =~ ${STEPS:-.} ]]; then
    (
      trap - EXIT
      take_gpu
      run_step "$work/step.${#names[@]}" "${@:2}"
    ) &
    names+=("$1") pids+=($!)
  fi
}
take_gpu() { # until this shell ends, which knows of no other and takes its share of the cores
  local k
  while :; do
    for k in "${!devices[@]}"; do
      exec 9>"$work/gpu.$k"
      flock -n 9 || continue
      export CUDA_VISIBLE_DEVICES=${devices[k]}
      jobs=$(least "$jobs" $((cores / gpus + 1)))
      gpus=1
      return
    done
    sleep 1
  done
}
wait_steps() {
  local k
  for k in "${!names[@]}"; do
    wait "${pids[k]}"
    report_step "${names[k]}" "$work/step.$k"
  done
  names=() pids=()
}

# --- sanity
machine() {
  cat "$bundle/VERSION"
  uname -sr
  grep PRETTY_NAME /etc/os-release
  echo "$cores cores"
  nvcc --version | tail -2
  echo "libpetsc from $(ldd "$bundle/bin/solve" | awk '/libpetsc.so/ {print $3}'), MPI from $(command -v mpiexec): $(mpiexec --version 2>&1 | head -1)"
  [ -z "$(missing)" ] || { echo "missing libraries: $(missing)" && return 1; }
  ldd "$bundle/bin/solve" | grep -q "libpetsc.so.* => $bundle/lib" || { echo "PETSc is not the bundle's" && return 1; }
}
device() { nvidia-smi && nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm --format=csv; }
host_solve() { CUDA_VISIBLE_DEVICES='' "$bundle/bin/solve" -f "$bundle/matrices/cage10.mtx.gz" -compare -repeat 2 -petsctc_summary | tee /dev/fd/2 | grep -q '^PETSc-TC: mult.* mult_parent [1-9]'; }
gpu_solve() { # the backend option is an error where the GPU is not used
  "$bundle/bin/solve" -f "$bundle/matrices/cage10.mtx.gz" -compare -repeat 2 -petsctc_summary -mat_aijtc_backend cuda -mat_aijtc_check "$@" | tee /dev/fd/2 | grep -q '^PETSc-TC: mult [1-9]'
}
no_copies() { # METHOD PC: a second solve copies no vector and no matrix between host and GPU, as PETSc's log counts them
  "$bundle/bin/solve" -laplacian 60 -compare -repeat 2 -mat_aijtc_backend cuda -ksp_type "$1" -pc_type "$2" | tee /dev/fd/2 | awk '/bytes copied, second solve/ { seen = 1; bytes = $NF } END { exit !seen || bytes != 0 }'
}
two_processes() { $MPIEXEC -n 2 "$bundle/bin/solve" -f "$bundle/matrices/cage10.mtx.gz" -compare -repeat 2 -use_gpu_aware_mpi 0; }
dmma() { # the Tensor Core kernels hold DMMA instructions, their CUDA-core twins none
  command -v cuobjdump >/dev/null || { echo "no cuobjdump" && return 77; }
  local kernels
  kernels=$(cuobjdump -res-usage "$PETSCTC_LIB" 2>/dev/null | sed -n 's/^ *Function \([^:]*\(Tensor\|Core\)Sums[^:]*\):.*/\1/p' | sort -u | paste -sd,) # all of the library would take minutes
  cuobjdump --dump-sass -fun "$kernels" "$PETSCTC_LIB" 2>/dev/null | awk '
    /arch = /    { arch = $3 }
    /Function :/ { kernel = $3 }
    /DMMA/       { count[arch " " kernel]++ }
    /Function :/ { seen[arch " " kernel] }
    END { for (k in seen) { printf "%4d DMMA in %s\n", count[k], k
            if (k ~ /TensorSums/ && !count[k]) bad++
            if (k ~ /CoreSums/ && count[k]) bad++
            if (k ~ /TensorSums/) tensor++ }
          if (!tensor) print "no Tensor Core product found"
          exit bad || !tensor }'
}
section_sanity() {
  step "machine and libraries" 60 machine
  gpu_step "device" 60 device
  step "solve on the host" 120 host_solve
  gpu_step "solve on the GPU, Tensor Core, checked" 120 gpu_solve -mat_aijtc_mma tensor
  gpu_step "solve on the GPU, CUDA cores, checked" 120 gpu_solve -mat_aijtc_mma core
  gpu_step "two processes on the GPU" 120 two_processes
  gpu_step "a second solve copies nothing, CG" 60 no_copies tccg jacobi
  gpu_step "a second solve copies nothing, BiCGSTAB" 60 no_copies tcbcgs none
  gpu_step "a second solve copies nothing, CR" 60 no_copies tccr jacobi
  step "DMMA instructions where they should be" 120 dmma
}

# --- tests
unpack_unit_tests() { [ -d "$work/unit" ] || tar -C "$work" -xJf "$bundle/unit.tar.xz"; }
# How GoogleTest's parameters name where a test computes
on_tensor='*Tensor*:*tensor*' on_core='*Core*:*core*'
fills_device='BuildMemory*' # runs alone
on_device="*CUDA*-$on_tensor:$on_core:$fills_device"
# Shards run side by side, spread over the GPUs; a skip is where nothing ran
unit_test() { # PROGRAM FILTER [SHARDS [UNDER WHICH COMMAND...]]: green, and something ran
  local program=$1 filter=$2 shards=${3:-$(least "$jobs" 12)} shard pid pids=() bad=0
  shift $(($# < 3 ? $# : 3))
  for ((shard = 0; shard < shards; shard++)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard on_gpu "$shard" "$@" "$program" --gtest_filter="$filter" --gtest_brief=1 >"$scratch/gtest.$shard" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || [ $? = 77 ] || bad=1; done
  cat "$scratch"/gtest.*
  [ $bad = 0 ] || return 1
  grep -q '\[  PASSED  \] [1-9]' "$scratch"/gtest.* || return 77
}
has_tests() { "$1" --gtest_list_tests --gtest_filter="$2" 2>/dev/null | grep -q '^ '; }
# PETSc's harness on the plugin's own tests: ends in time to tell which ones took too long
harness_scripts() { # LIMIT JOBS PATTERN [EXCEPT]
  local deadline=$((SECONDS + $1)) script scripts total bad unended tests=$work/harness
  rm -rf "$tests"
  mapfile -t scripts < <(grep -E "$3" "$bundle/harness/scripts.txt" | grep -Ev "${4:-^$}" | sort -t/ -k2,2 -k3,3Vr) # those of ksp and the last of mat, the longest, first
  for script in "${scripts[@]}"; do
    mkdir -p "$tests/$(dirname "$script")"
    sed -e "s#@TESTS@#$tests#g" -e "s#@PETSC@#$PETSC_DIR#g" -e "s#@SOURCE@#$bundle/harness/source#g" -e "s#^executable='../#&#" \
      -e "s#^executable='\.\./\(.*\)'#executable='$bundle/harness/$(dirname "$script")/\1'#" "$bundle/harness/$script" >"$tests/$script"
  done
  cd "$tests" || return 1
  for script in "${scripts[@]}"; do
    while (($(jobs -rp | wc -l) >= $2)); do wait -n; done
    harness_script "$script" "$deadline" &
  done
  wait
  cat "${scripts[@]/%/.out}" >all.out
  total=$(grep -c '^ *ok' all.out)
  bad=$(grep -c '^ *not ok' all.out)
  unended=$(grep -c '^did not end' all.out)
  grep '^ *ok.*SKIP' all.out | sort -u
  grep -v '^ *ok' all.out
  echo "slowest of ${#scripts[@]} scripts: $(sort -rn seconds | head -5 | paste -sd, | sed 's/,/, /g')"
  echo "$total ok, $bad not ok, $unended scripts did not end"
  [ "$bad" = 0 ] && [ "$unended" = 0 ] && [ "$total" -gt 0 ]
}
harness_script() { # SCRIPT DEADLINE: its output in SCRIPT.out, a line in the file of seconds
  local start=$SECONDS limit folder=${1%.sh} status=0
  limit=$(least 240 $(($2 - SECONDS)))
  if [ "$limit" -le 0 ]; then
    echo "did not end: $1 was not started before the time was over" >"$1.out"
    return
  fi
  PETSCMPIEXEC=$MPIEXEC within "$limit" bash "$1" -t 120 >"$1.out" 2>&1 || status=$?
  echo "$((SECONDS - start)) s ${1##*/}" >>seconds
  [ $status = 137 ] || return 0
  { # The harness writes a file for each program before it starts it
    echo "did not end: $1 in $((SECONDS - start)) s, at $(newest "$folder"/*.sh)"
    tail -n 5 "$1.out" "$(newest "$folder"/*.tmp)" "$(newest "$folder"/*.err)" 2>/dev/null | sed 's/^/#   /'
  } >"$folder.unended"
  cat "$folder.unended" >>"$1.out"
}
newest() { find "$@" -prune -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -1 | cut -d' ' -f2-; }
section_tests() {
  local program
  unpack_unit_tests
  for program in "$work"/unit/*; do
    # Beside a GPU the host twins are tried with fewer parameters
    PETSCTC_TEST_SHORT=${PETSCTC_TEST_SHORT-$([ $gpu = 0 ] || echo 1)} step "${program##*/}, host" 120 unit_test "$program" "-*CUDA*:$on_tensor:$on_core:$fills_device"
    has_tests "$program" "$on_tensor" && gpu_step "${program##*/}, GPU: Tensor Core" 120 unit_test "$program" "$on_tensor"
    has_tests "$program" "$on_core" && gpu_step "${program##*/}, GPU: CUDA cores" 120 unit_test "$program" "$on_core"
    has_tests "$program" "$on_device" && gpu_step "${program##*/}, GPU: the others" 120 unit_test "$program" "$on_device"
  done
  for program in "$work"/unit/*; do
    has_tests "$program" "$fills_device" && gpu_step "${program##*/}, out of memory" 120 unit_test "$program" "$fills_device" 1
  done
  PETSC_OPTIONS="$PETSC_OPTIONS -device_enable none -mat_aijtc_backend host -options_left no" step "harness, host tests" 300 harness_scripts 280 $((jobs / 2 + 1)) . '_cuda'
}

# --- harness: with the Tensor Core, then on CUDA cores the scripts that do not try both
section_harness() {
  local both
  start_mps
  both=$(cd "$bundle/harness" && grep -l 'mat_aijtc_mma' $(grep '_cuda' scripts.txt) </dev/null | paste -sd'|')
  gpu_step "GPU tests, Tensor Core" 560 harness_scripts 540 "$harness_jobs" '_cuda'
  PETSC_OPTIONS="$PETSC_OPTIONS -mat_aijtc_mma core -options_left 0" gpu_step "GPU tests, CUDA cores" 300 harness_scripts 280 "$harness_jobs" '_cuda' "${both:+$both|}ex9_cuda" # ex9 tests the default of that option
  end_mps
}

# --- sanitizer
sanitized_unit_test() { # TOOL PROGRAM: the program's kernels are all ours, so that nothing is filtered. Fewer parameters
  local filter="*CUDA*:$on_tensor:$on_core"
  [ "${2##*/}" != unit_test_build ] || filter="-$fills_device"
  local barriers=
  [ "$1" != synccheck ] || barriers='--num-cuda-barriers 100000' # of all blocks together; with fewer places than it has seen barriers the tool fails
  PETSCTC_TEST_SHORT=1 unit_test "$2" "$filter" '' compute-sanitizer --tool "$1" $barriers --error-exitcode 9 --print-limit 20
}
# Libraries of CUDA run in a whole solve too: an error counts when its kernel is ours.
own_kernels='RowsKernel|GatherKernel|SweepKernel|TilesKernel|MixedKernel|SumsKernel|ColumnsKernel|PairsKernel|PiecesKernel|DiagonalKernel|RowPointersKernel|NumbersKernel|PermuteKernel|DealKernel|CountKernel|PickKernel|FillKernel|CodesKernel|CollectKernel|PencilsKernel|NumberKernel|LinkKernel|TakeKernel|MarkKernel|GhostsKernel|ResidentKernel|SingleKernel|StreamedKernel|WindowedKernel|LookKernel|OrderKernel|aijtcbuild|PetscTC|AIJTC'
sanitized_solve() { # TOOL OPTIONS...
  local tool=$1 all own
  shift
  compute-sanitizer --tool "$tool" --print-limit 1000 "$bundle/bin/solve" -laplacian 14 -ksp_max_it 6 -repeat 1 -mat_aijtc_backend cuda "$@" >"$scratch/sanitizer.log" 2>&1
  grep -q 'ERROR SUMMARY\|RACECHECK SUMMARY' "$scratch/sanitizer.log" || { tail -20 "$scratch/sanitizer.log" && return 1; }
  all=$(grep -cE '^=+ +(at|in) ' "$scratch/sanitizer.log")
  own=$(grep -cE "^=+ +(at|in|by|Write|Read|Kernel).*($own_kernels)" "$scratch/sanitizer.log")
  grep -vE 'Host Frame|^=+$' "$scratch/sanitizer.log" | head -60
  grep -E 'SUMMARY' "$scratch/sanitizer.log"
  echo "$all places reported, $own in the plugin's kernels"
  [ "$own" = 0 ]
}
section_sanitizer() {
  local tool program
  unpack_unit_tests
  for tool in memcheck racecheck initcheck synccheck; do
    if [ $gpu = 1 ] && ! command -v compute-sanitizer >/dev/null; then
      step "$tool" 5 bash -c 'echo "no compute-sanitizer"; exit 77'
      continue
    fi
    for program in "$work"/unit/*; do
      has_tests "$program" "*CUDA*:$on_tensor:Build.*" && free_gpu_step "$tool ${program##*/}" 200 sanitized_unit_test $tool "$program"
    done
    free_gpu_step "$tool solve tccg, Tensor Core" 60 sanitized_solve $tool -ksp_type tccg -pc_type jacobi -ksp_tccg_uniform_pc false
    free_gpu_step "$tool solve tcbcgs, CUDA cores" 60 sanitized_solve $tool -ksp_type tcbcgs -pc_type jacobi -ksp_tcbcgs_uniform_pc false -mat_aijtc_mma core
  done
  wait_steps
}

# --- acceptance
ab() { python3 "$here/ab.py" --petsc "$PETSC_DIR" --tree "$here/tests" --jobs "$acceptance_jobs" "$@"; }
section_acceptance() {
  here=$bundle/acceptance
  plugin_options="-dll_append $PETSCTC_LIB -petsctc_summary"
  source "$here/gpu_ab.bash"
  start_mps
  gpu_step "PETSc's GPU tests, aijtc against aijcusparse" 400 gpu_scripts --part "${PART:-1/1}" --limit 330 --timeout 60 --keep-failures "$out/acceptance-scripts.tar.gz"
  gpu_step "option sweep" 180 gpu_sweep "$here/sweep-gpu.txt" --part "${PART:-1/1}" --limit 130 --timeout 40 --keep-failures "$out/acceptance-sweep.tar.gz"
  gpu_step "PETSc's tests with every AIJ ours" 130 gpu_folders --part "${PART:-1/1}" --limit 90 --timeout 40 --keep-failures "$out/acceptance-folders.tar.gz"
  end_mps
}

# --- bench: first petsctc-bench on what docs/performance.md reports; its numbers stay in $out/bench-*.json, all its tables in $out/bench.log, the table of times is printed
stencils=7pt:256,7pt:101,27pt:100,elas:40,7pt:43,5pt:387x388,sw2:81920,diag:15439
irregular=tet:1000000:random,tet:1000000:rcm,webgraph:1000000,denserow:1000000,longrows:2000x10000
benchmark() { # NAME OPTIONS...
  local name=$1 status=0
  shift
  "$bundle/bin/petsctc-bench" -bench_folder "$bundle/matrices" -bench_json "$out/bench-$name.json" "$@" >"$work/benchmark" 2>&1 || status=$?
  cat "$work/benchmark"
  {
    printf '\n%s: %s\n' "$name" "$*"
    grep FAILED "$work/benchmark" | sort -u | head -5 | cut -c1-160
    sed -n '/^us  /,$p' "$work/benchmark"
  } >>"$work/times"
  return $status
}

# Then time per iteration, best of 5 solves; the table has one line for each matrix, method and preconditioner
solve_line() { # MATRIX-OPTIONS METHOD PC MMA: iterations, stock us, our us
  local output
  # shellcheck disable=SC2086 # options
  output=$("$bundle/bin/solve" $1 -compare -repeat 5 -ksp_type "tc$2" -pc_type "$3" -ksp_rtol 1e-10 -ksp_max_it 500 -mat_aijtc_mma "$4") || { echo "$output" >&2 && return 1; }
  echo "$output" >&2
  awk '$1 == "iterations" {iterations = $3} $1 == "us/iteration" {print iterations, $2, $3}' <<<"$output"
}
table_line() { # NAME MATRIX-OPTIONS METHOD PC
  local tensor core
  tensor=$(solve_line "$2" "$3" "$4" tensor) && core=$(solve_line "$2" "$3" "$4" core) || return 1
  awk -v name="$1" -v method="$3" -v pc="$4" -v tensor="$tensor" -v core="$core" 'BEGIN {
    split(tensor, t); split(core, c)
    printf "%-15s %-5s %-7s %6d %13.2f %13.2f %11.2f %9.2f%s\n", name, method, pc, t[1], t[2], t[3], c[3], t[2] / t[3], (t[3] > t[2] ? "  SLOWER" : "") }' >>"$work/table"
  tail -1 "$work/table"
  ! tail -1 "$work/table" | grep -q SLOWER
}
section_bench() {
  local pc matrix method
  gpu_step "products of stencils" 300 benchmark stencils -bench_matrices $stencils -bench_ksp
  gpu_step "products of stencils, random values" 300 benchmark random -bench_matrices $stencils -bench_values random
  gpu_step "products of irregular matrices" 200 benchmark irregular -bench_matrices $irregular
  gpu_step "products of the paper's matrices" 200 benchmark paper -bench_matrices paper18 -bench_ksp
  gpu_step "products of the paper's matrices, random values" 200 benchmark paper-random -bench_matrices paper18 -bench_values random
  for pc in none jacobi; do
    for matrix in apache1 shallow_water1 cage10 7-point-101^3; do
      for method in cg bcgs; do
        [ "$matrix $method" != "cage10 cg" ] || continue # nonsymmetric
        case $matrix in
          7-point*) gpu_step "$matrix $method $pc" 120 table_line "$matrix" "-laplacian 101" $method $pc ;;
          *) gpu_step "$matrix $method $pc" 60 table_line "$matrix" "-f $bundle/matrices/$matrix.mtx.gz" $method $pc ;;
        esac
      done
    done
  done
}

# --- multi: a process for each GPU, all of which see all GPUs; skipped where there is one
together() { "$(command -v mpiexec)" --oversubscribe -n "$@"; } # N COMMAND...
multi_step() {
  if [ "$gpus" -gt 1 ]; then
    step "$@"
  else
    step "$1" 5 bash -c 'echo "one GPU"; exit 77'
  fi
}
multi_test() { # N WAY
  cd "$scratch" && together "$1" "$bundle/harness/tests/ksp/ex21" -dll_append "$PETSCTC_LIB" -mat_type aijtc -petsctc_comm "$2" >out 2>&1
  diff out "$bundle/harness/source/tests/ksp/output/ex21.out"
}
multi_memcheck() { # METHOD
  together 2 compute-sanitizer --tool memcheck --error-exitcode 9 --print-limit 5 "$bundle/bin/solve" -laplacian 14 -ksp_max_it 80 -ksp_type "$1" -pc_type jacobi
}
many_solves() { # of few iterations, and no more memory after them than after the first hundred
  local before after
  before=$(together "$gpus" "$bundle/bin/solve" -laplacian 20 -ksp_max_it 20 -ksp_rtol 1e-30 -repeat 100 -memory_view 2>&1 | tee /dev/fd/2 | awk '/Current process memory/ {print $(NF-4); exit}')
  after=$(together "$gpus" "$bundle/bin/solve" -laplacian 20 -ksp_max_it 20 -ksp_rtol 1e-30 -repeat 10000 -memory_view 2>&1 | tee /dev/fd/2 | awk '/Current process memory/ {print $(NF-4); exit}')
  echo "process memory after 100 solves $before, after 10000 $after"
  awk -v a="$before" -v b="$after" 'BEGIN { exit !(a > 0 && b < 1.05 * a) }'
}
killed_process() { # the others end, with an error
  local status=0
  # shellcheck disable=SC2016 # each process's own variable
  together 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || { (sleep 5; kill -KILL $$) & }; exec "$0" "$@"' "$bundle/bin/solve" -laplacian 101 -ksp_max_it 100 -ksp_rtol 1e-30 -repeat 1000000 || status=$?
  echo "mpiexec ended with $status"
  [ $status != 0 ]
}
multi_line() { # NAME METHOD OPTIONS...: PETSc and ours on all GPUs, ours by MPI, ours on one
  local name=$1 all mpi one
  local -a run=("$bundle/bin/solve" -repeat 5 -ksp_max_it 100 -ksp_rtol 1e-30 -pc_type none -ksp_type "$2" -mat_type aijtc "${@:3}")
  all=$(together "$gpus" "${run[@]}" -compare 2>&1 | tee /dev/fd/2 | awk '$1 == "us/iteration" {print $2, $3}')
  mpi=$(together "$gpus" "${run[@]}" -petsctc_comm mpi 2>&1 | tee /dev/fd/2 | awk '$1 == "us/iteration" {print $2}')
  one=$(together 1 "${run[@]}" 2>&1 | tee /dev/fd/2 | awk '$1 == "us/iteration" {print $2}')
  [ -n "$all" ] && [ -n "$mpi" ] && [ -n "$one" ] || return 1
  printf '%-34s %12.1f %10.1f %10.1f %10.1f\n' "$name" $all "$mpi" "$one" >>"$work/multi"
}
section_multi() {
  local way
  for way in auto mpi; do multi_step "solvers on $gpus GPUs, way $way" 120 multi_test "$gpus" $way; done
  multi_step "solvers, two processes to a GPU" 180 multi_test $((2 * gpus)) auto
  for way in tccg tcbcgs tccr; do multi_step "memcheck of two GPUs, $way" 120 multi_memcheck $way; done
  multi_step "10,000 solves" 120 many_solves
  multi_step "a killed process" 60 killed_process
  multi_step "7-point 101^3 cg" 60 multi_line "7-point 101^3 cg" tccg -laplacian 101
  multi_step "7-point 101^3 cg, stored" 60 multi_line "7-point 101^3 cg, stored" tccg -laplacian 101 -mat_aijtc_compress pattern
  multi_step "7-point 256^3 cg" 90 multi_line "7-point 256^3 cg" tccg -laplacian 256
  multi_step "7-point 322^3 cg" 120 multi_line "7-point 322^3 cg" tccg -laplacian 322
  multi_step "7-point 101^3 bcgs" 60 multi_line "7-point 101^3 bcgs" tcbcgs -laplacian 101
  multi_step "7-point 256^3 bcgs, single" 90 multi_line "7-point 256^3 bcgs, single" tcbcgs -laplacian 256 -ksp_tcbcgs_variant single
}

sections=("$@")
[ $# -gt 0 ] && [ "$1" != all ] || sections=(sanity tests harness sanitizer acceptance bench multi)
for section in "${sections[@]}"; do
  declare -F "section_$section" >/dev/null || { echo "no section $section: sanity tests harness sanitizer acceptance bench multi all" >&2 && exit 2; }
done
{
  for section in "${sections[@]}"; do
    log=$out/$section.log
    : >"$log"
    "section_$section"
  done
  echo
  echo "SUMMARY of ${sections[*]}, $(cat "$bundle/VERSION" | head -1), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 || true)"
  [ -z "${failures[*]}" ] || printf '%s\n' "${failures[@]}"
  grep -h '^A/B\|plugin.s use in all' "$out/acceptance.log" 2>/dev/null | cut -c1-220
  [ ! -f "$work/times" ] || cat "$work/times"
  if [ -f "$work/table" ]; then
    printf '%-15s %-5s %-7s %6s %13s %13s %11s %9s\n' "matrix" "KSP" "PC" "its" "PETSc us/it" "Tensor us/it" "core us/it" "speed-up"
    cat "$work/table"
  fi
  if [ -f "$work/multi" ]; then
    printf '%-34s %12s %10s %10s %10s\n' "us/it on $gpus GPUs" "PETSc" "ours" "by MPI" "one GPU"
    cat "$work/multi"
  fi
  echo "$passed passed, $skipped skipped, $failed failed; logs in $out"
  [ "$failed" = 0 ]
} 2>&1 | tee "$out/summary.txt"
exit "${PIPESTATUS[0]}"
