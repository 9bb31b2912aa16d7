#!/usr/bin/env bash
# scripts/aarch64.sh [JOBS]: cross-compiles russet for aarch64 Linux, and runs the unit and conformance tests under qemu.
# The libraries are Debian's for arm64, unpacked under build/; only apt_aarch64 of packages.sh is installed in the system.
# Exit status 77 if what it needs cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
jobs=${1:-$(nproc)}
sysroot=$PWD/build/aarch64-sysroot

leave_out() {
  echo "aarch64: left out: $1"
  exit 77
}

# The libraries among the packages that a build needs, and what they depend on.
libraries=$(printf '%s\n' $apt_build | grep -e '-dev$' | grep -v benchmark | tr '\n' ' ')

# An apt of its own: an empty system for arm64, for which packages are loaded but not installed.
arm64_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$packages" \
    -o Dir::State::status="$packages/status" -o Dir::Cache="$packages" -o APT::Sandbox::User="$(id -un)" \
    -o Debug::NoLocking=1 "$@"
}

load_libraries() {
  mkdir -p "$packages/lists/partial" "$packages/archives/partial"
  : >"$packages/status"
  echo "aarch64: loading $libraries"
  # shellcheck disable=SC2086
  { arm64_apt update && arm64_apt install --yes --download-only --no-install-recommends $libraries; } \
    >"$packages/log" 2>&1
}

unpack_libraries() {
  local package link target
  mkdir -p "$sysroot/usr/lib"
  ln -s usr/lib "$sysroot/lib"
  for package in "$packages"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$sysroot" --no-same-owner --keep-directory-symlink
  done
  # Links to the root of the system become links within the folder.
  find "$sysroot" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do
    ln -sfnr "$sysroot$target" "$link"
  done
  echo "$libraries" >"$sysroot/packages"
}

grep -qs '^ID=debian$' /etc/os-release ||
  leave_out "it needs Debian, whose mirrors have packages for arm64 beside this machine's"
scripts/setup.sh aarch64 || leave_out "$apt_aarch64 cannot be installed"
if [ "$(cat "$sysroot/packages" 2>/dev/null)" != "$libraries" ]; then
  packages=$(mktemp -d)
  trap 'rm -rf "$packages"' EXIT
  load_libraries || {
    tail -n 20 "$packages/log" >&2
    leave_out "Debian's packages for arm64 cannot be loaded"
  }
  rm -rf "$sysroot"
  unpack_libraries
fi

for area in unit conformance; do
  scripts/build.sh aarch64 "$jobs" "tests_$area"
done
echo "aarch64: without mps, for the simulator runs on x86-64 alone"
scripts/test.sh build/aarch64 '^unit/|^conformance/'
