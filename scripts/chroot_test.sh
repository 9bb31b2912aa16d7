#!/usr/bin/env bash
# scripts/chroot_test.sh [TARGET...]: proves that a fresh machine is enough. Makes a minimal Debian with git, make and
# ca-certificates alone, clones HEAD into it and runs `make TARGET` for each (demo and test if none is named).
#   CHROOT=DIR     where the system is made (default: a new folder, removed at the end)
#   KEEP=1         keeps it; a kept one is used again, without the caches of before
#   MIRROR, SUITE  the Debian mirror (default: the first one of this machine's apt) and release (bookworm, or trixie)
#   PACKAGES=DIR   a folder of .deb files that apt may take instead of loading them
# Needs root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@")
[ $# -eq 0 ] && targets=(demo test)
suite=${SUITE:-bookworm}
mirror=${MIRROR:-$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
  head -n 1 | tr -d ' ' || true)}
mirror=${mirror:-http://deb.debian.org/debian}
root=${CHROOT:-$(mktemp -d)}

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "chroot_test: this needs root and the package debootstrap" >&2
  exit 1
fi

cleanup() {
  for mount in proc sys dev; do
    mountpoint -q "$root/$mount" && umount "$root/$mount"
  done
  if [ -z "${KEEP:-}" ]; then
    rm -rf --one-file-system "$root"
  else
    echo "chroot_test: kept $root"
  fi
}
trap cleanup EXIT

inside() {
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} chroot "$root" "$@"
}

started=$SECONDS
passed() { echo "chroot_test: $1 after $((SECONDS - started)) s"; }

if [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=git,make,ca-certificates "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; exit 1; }
  rm -f "$root.log"
  cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp /etc/resolv.conf "$root/etc/resolv.conf"
fi
# What this machine's administrator trusts: a proxy may stand between it and the network.
if cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null; then
  inside update-ca-certificates >/dev/null 2>&1
fi
passed "a Debian $suite from $mirror with $(inside dpkg-query -W | wc -l) packages"
[ -z "${PACKAGES:-}" ] || cp "$PACKAGES"/*.deb "$root/var/cache/apt/archives/"

# Without these, libraries cannot see the processors; a bind mount of a container's own is enough.
for mount in proc sys dev; do
  mountpoint -q "$root/$mount" || mount --bind "/$mount" "$root/$mount"
done

rm -rf "$root/root/russet" "$root/root/.cache"
git clone -q --no-hardlinks . "$root/root/russet"
for target in "${targets[@]}"; do
  inside sh -c "cd /root/russet && make $target"
  passed "make $target"
done
