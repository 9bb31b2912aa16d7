#!/usr/bin/env bash
# scripts/fetch_clang_format.sh: where the system has no clang-format 14, loads the wheel that clang_format.txt names into
# the user's cache, where check_format.sh looks for it.
set -euo pipefail
cd "$(dirname "$0")"
./check_format.sh --find >/dev/null 2>&1 && exit 0
version=$(sed -n 's/^clang-format==\([0-9.]*\) .*/\1/p' clang_format.txt)
echo "setup: loading clang-format $version"
./fetch_wheel.sh clang_format.txt "${XDG_CACHE_HOME:-$HOME/.cache}/russet/clang-format-$version" clang_format/data/bin/ \
  clang-format
