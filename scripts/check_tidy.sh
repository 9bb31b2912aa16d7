#!/usr/bin/env bash
# scripts/check_tidy.sh JOBS [FILE...]: clang-tidy (.clang-tidy) over the library and the command line, or these files.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
tidy=$(command -v clang-tidy-14 || command -v clang-tidy || echo /opt/homebrew/opt/llvm@14/bin/clang-tidy)
cmake --preset release >/dev/null
if [ $# -eq 0 ]; then
  mapfile -t files < <(find src apps -name '*.cpp' | sort)
else
  files=("$@")
fi
printf '%s\0' "${files[@]}" | xargs -0 -r -n 1 -P "$jobs" "$tidy" -p build --quiet --warnings-as-errors='*' 2>/dev/null
echo "tidy: ${#files[@]} files, clean"
