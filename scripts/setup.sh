#!/usr/bin/env bash
# Installs what is missing, and nothing when all is there.
#   scripts/setup.sh [build|format|check|fuzz|data|aarch64]...     (build if none is named)
set -euo pipefail
. "$(dirname "$0")/packages.sh"
kinds=${*:-build}

names_of() {  # the packages of all kinds under one manager
  local kind list
  for kind in $kinds; do
    list=$1_$kind
    if [ -z "${!list:-}" ]; then
      echo "setup: there is no kind '$kind' (build, format, check, fuzz, data, aarch64)" >&2
      exit 2
    fi
    printf '%s ' ${!list}
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    echo "setup: asking sudo for: $*"
    local options=()
    [ -t 0 ] || options=(-n)  # where nobody can type a password, asking for one would wait forever
    sudo "${options[@]}" "$@"
  else
    echo "setup: as root, please run: $*" >&2
    exit 1
  fi
}

with_apt() {
  local missing="" name
  for name in $(names_of apt); do
    case "$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null || true)" in
      *" ok installed") ;;
      *) missing="$missing $name" ;;
    esac
  done
  [ -z "$missing" ] && return
  echo "setup: installing$missing"
  as_root apt-get update -q
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

with_brew() {
  local missing="" name
  for name in $(names_of brew); do
    brew list --versions "$name" >/dev/null 2>&1 || missing="$missing $name"
  done
  [ -z "$missing" ] && return
  echo "setup: installing$missing"
  # shellcheck disable=SC2086
  brew install $missing
}

if [ "$(uname)" = Darwin ]; then
  if ! command -v brew >/dev/null; then
    echo "setup: Homebrew is needed to install: $(names_of brew)" >&2
    exit 1
  fi
  with_brew
elif command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  with_apt
else
  echo "setup: neither apt-get nor brew is here; russet needs what these Debian packages hold: $(names_of apt)" >&2
fi

case " $kinds " in
  *" build "*) "$(dirname "$0")/fetch_metal_cpp.sh" ;;
esac
case " $kinds " in
  *" format "* | *" check "*) "$(dirname "$0")/fetch_clang_format.sh" ;;
esac
