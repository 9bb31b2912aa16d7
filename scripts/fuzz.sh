#!/usr/bin/env bash
# scripts/fuzz.sh SECONDS: runs each fuzz target for so long. New inputs stay in build/fuzz/corpus, findings beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
export ASAN_OPTIONS=allocator_may_return_null=1 LSAN_OPTIONS=suppressions=$PWD/tests/sanitizers/leak.supp
shopt -s nullglob
programs=(build/fuzz/fuzz/*_fuzz)
if [ ${#programs[@]} -eq 0 ]; then
  echo "fuzz: there is no fuzz target" >&2
  exit 1
fi
for program in "${programs[@]}"; do
  name=$(basename "$program" _fuzz)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=(tests/fuzz/seeds/"$name")
  [ -d "${seeds[0]}" ] || seeds=()
  echo "== $name, $seconds s"
  "$program" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=25 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" "$corpus" ${seeds[@]+"${seeds[@]}"}
done
echo "fuzz: ${#programs[@]} targets, clean"
