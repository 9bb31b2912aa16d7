#!/usr/bin/env bash
# scripts/check_format.sh [--fix|--find]: every C++ file is formatted as .clang-format says, by version 14: others differ.
# --fix formats them, --find only says which formatter serves.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^clang-format==\([0-9.]*\) .*/\1/p' scripts/clang_format.txt)
formatter=""
for candidate in clang-format clang-format-14 \
  "${XDG_CACHE_HOME:-$HOME/.cache}/russet/clang-format-$version/clang-format"; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version ${version%%.*}\."; then
    formatter=$candidate
    break
  fi
done
if [ -z "$formatter" ]; then
  echo "check_format: clang-format ${version%%.*} is missing: scripts/setup.sh format" >&2
  exit 1
fi
if [ "${1:-}" = --find ]; then
  echo "$formatter"
  exit
fi
mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
find include src apps tests bench examples \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 -r "$formatter" "${mode[@]}"
echo "format: clean"
