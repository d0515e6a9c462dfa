#!/usr/bin/env bash
# cmake --install, then projects that say find_package(petsctc): in C and in C++, told where PETSc is by nothing but the package.
set -euo pipefail
source "$(dirname "$0")/common.bash"
cmake --install "$PETSCTC_BUILD" --prefix "$prefix" >"$work/install.log"
installed
unset PETSC_DIR PETSC_ARCH
for language in C CXX; do
  project=$work/$language
  mkdir -p "$project"
  if [ $language = C ]; then source=solve.c; else source=solve.cxx; fi
  cp "$here/solve.c" "$project/$source"
  cat >"$project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES $language)
find_package(petsctc 0.1 REQUIRED)
add_executable(solve $source)
target_link_libraries(solve PRIVATE petsctc::petsctc)
END
  cmake -S "$project" -B "$project/build" -DCMAKE_PREFIX_PATH="$prefix" >"$project/log" && cmake --build "$project/build" >>"$project/log" 2>&1 || {
    cat "$project/log" && echo "FAILED: find_package(petsctc) in a project in $language" && exit 1
  }
  solves "$project/build/solve"
done
# A wrong version is refused
sed -i 's/petsctc 0.1/petsctc 99.0/' "$work/C/CMakeLists.txt"
! cmake -S "$work/C" -B "$work/C/other" -DCMAKE_PREFIX_PATH="$prefix" >"$work/C/log" 2>&1 || { echo "FAILED: version 99 was found" && exit 1; }
