#!/usr/bin/env bash
# scripts/test.sh BUILD_FOLDER [--all | PATTERN] [CTEST_OPTION]...: runs the tests of a build and sums them up: those that
# are not labelled `long`, or all, or all whose name matches.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
case "${2:-}" in
  "") choice=(--label-exclude '^long$') ;;
  --all) choice=() ;;
  *) choice=(--tests-regex "$2") ;;
esac
[ $# -le 2 ] || choice+=("${@:3}")
rm -rf "$build/test-results"
mkdir -p "$build/test-results"
status=0
ctest --test-dir "$build" --parallel "$(getconf _NPROCESSORS_ONLN)" --output-on-failure --no-tests=error \
  ${choice[@]+"${choice[@]}"} --output-junit "$build/test-results/ctest.xml" || status=$?
scripts/test_summary.py "$build/test-results" || status=1
exit "$status"
