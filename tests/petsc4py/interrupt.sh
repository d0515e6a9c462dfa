#!/usr/bin/env bash
# Ctrl-C in a solve from Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/environment.bash"
prepare_environment
exec "$python" "$here/interrupt.py" -dll_append "$PETSCTC_LIB" -no_signal_handler
