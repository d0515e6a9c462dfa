#!/usr/bin/env bash
# Kernels for GPUs that neither copy in bulk nor let launches overlap, where this build has none for them: those in which that makes a difference, and Tensor Cores.
set -euo pipefail
commands=$PETSCTC_BUILD/compile_commands.json work=$PETSCTC_BUILD/tests/compute_capability_80
rm -rf "$work"
mkdir -p "$work"
python3 - "$commands" "$work" <<'END' >"$work/commands"
import json, shlex, sys
kernels = ("src/vec/cuda/vecreduce.cu", "src/mat/aijtc/cuda/mult_gather.cu", "src/ksp/tccg/cuda/tccgwindowed.cu")
for entry in json.load(open(sys.argv[1])):
    if not entry["file"].endswith(kernels) or "compute_80" in entry["command"]:
        continue
    words = [word for word in shlex.split(entry["command"]) if not word.startswith("--generate-code") and word != "-c"]
    words[words.index("-o") + 1] = f"{sys.argv[2]}/{entry['file'].rsplit('/', 1)[1]}bin"
    print(shlex.join(words + ["-arch=sm_80", "-cubin"]))
END
[ -s "$work/commands" ] || { echo "skipped: no kernels in this build, or 8.0 among its architectures" && exit 77; }
xargs -P 2 -d '\n' -I{} bash -c '{}' <"$work/commands"
ls "$work"/*.cubin
[ "$(find "$work" -name '*.cubin' -size +0 | wc -l)" = 3 ]
