#!/usr/bin/env bash
# scripts/build.sh PRESET JOBS [-DNAME=VALUE]...: configures a preset and builds all of it.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2
shift 2
# A cache of compilations serves any checkout, wherever it lies.
export CCACHE_BASEDIR=$PWD
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset "$preset" --parallel "$jobs"
