#!/usr/bin/env bash
# scripts/test.sh BUILD_FOLDER [PATTERN]: runs the tests of a build, all or those whose name matches, and sums them up.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 pattern=${2:-}
rm -rf "$build/test-results"
mkdir -p "$build/test-results"
status=0
ctest --test-dir "$build" --parallel "$(getconf _NPROCESSORS_ONLN)" --output-on-failure --no-tests=error ${pattern:+-R "$pattern"} \
  --output-junit "$PWD/$build/test-results/ctest.xml" || status=$?
scripts/test_summary.py "$build/test-results" || status=1
exit "$status"
