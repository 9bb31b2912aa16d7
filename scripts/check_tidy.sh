#!/usr/bin/env bash
# scripts/check_tidy.sh JOBS [FILE...]: clang-tidy (.clang-tidy) over the library and the command line, or these files.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
tidy=$(command -v clang-tidy-14 || command -v clang-tidy || echo /opt/homebrew/opt/llvm@14/bin/clang-tidy)
cmake --preset release >/dev/null
list() {
  if [ $# -gt 0 ]; then printf '%s\0' "$@"; else find src apps -name '*.cpp' -print0; fi
}
list "$@" | xargs -0 -r -n 1 -P "$jobs" "$tidy" -p build --quiet --warnings-as-errors='*' 2>/dev/null
echo "tidy: clean"
