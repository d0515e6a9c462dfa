#!/usr/bin/env bash
# Ctrl-C in a solve from Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/environment.bash"
: "${PETSCTC_LIB:?set it to the absolute path of libpetsctc.so}"
prepare_environment
unset PETSC_OPTIONS PETSC_OPTIONS_YAML
export OPENBLAS_NUM_THREADS=1 OMPI_MCA_hwloc_base_binding_policy=none
exec "$python" "$here/interrupt.py" -dll_append "$PETSCTC_LIB" -no_signal_handler
