#!/usr/bin/env bash
# scripts/check_format.sh [--fix]: every C++ file is formatted as .clang-format says (by version 14, others differ).
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=""
for candidate in clang-format-14 clang-format /opt/homebrew/opt/llvm@14/bin/clang-format /usr/local/opt/llvm@14/bin/clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [ -z "$formatter" ]; then
  echo "check_format: clang-format 14 is missing: scripts/setup.sh format" >&2
  exit 1
fi
mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
find include src apps tests bench examples \( -name '*.h' -o -name '*.cpp' \) -print0 |
  xargs -0 -r "$formatter" "${mode[@]}"
echo "format: clean"
