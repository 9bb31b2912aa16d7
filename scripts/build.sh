#!/usr/bin/env bash
# scripts/build.sh PRESET JOBS TARGET [-DNAME=VALUE]...: configures a preset and builds a target of it: `all`, or one
# that CMake knows.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2 target=$3
shift 3
# A cache of compilations serves any checkout, wherever it lies.
export CCACHE_BASEDIR=$PWD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset "$preset" --parallel "$jobs" --target "$target"
