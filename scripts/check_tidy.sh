#!/usr/bin/env bash
# scripts/check_tidy.sh JOBS [FILE...]: clang-tidy (.clang-tidy) over the library and the command line, or these files.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
tidy=$(command -v clang-tidy || command -v clang-tidy-14 || echo "$(brew --prefix llvm)/bin/clang-tidy")
# In a folder of its own, for clang reads no header that g++ has precompiled.
cmake --preset release -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
list() {
  if [ $# -gt 0 ]; then printf '%s\0' "$@"; else find src apps -name '*.cpp' -print0; fi
}
# What CMake has compiled by a command of its own (cmake/RussetMetal.cmake) it tells nobody how.
metal_cpp=$(sed -n 's/^RUSSET_METAL_CPP:[A-Z]*=//p' build/tidy/CMakeCache.txt)
options=(-p build/tidy --quiet "--warnings-as-errors=*")
if [ "$(uname)" != Darwin ] && [ -n "$metal_cpp" ]; then
  options+=(--extra-arg=-fblocks "--extra-arg=-isystem$metal_cpp"
            "--extra-arg=-isystem$PWD/src/device/gpu/simulator/objects/include")
fi
list "$@" | xargs -0 -r -n 1 -P "$jobs" "$tidy" "${options[@]}" 2>/dev/null
echo "tidy: clean"
