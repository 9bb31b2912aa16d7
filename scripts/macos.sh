#!/usr/bin/env bash
# scripts/macos.sh [JOBS]: cross-compiles the library and the command line for macOS on Apple silicon, with warnings as
# errors, and checks what they were linked with. Nothing runs: this shows that russet compiles and links there. Exit
# status 77 if what it needs cannot be loaded.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/russet
prefix=$PWD/build/macos-prefix
log=$(mktemp)
trap 'rm -f "$log"' EXIT

leave_out() {
  echo "macos: left out: $1"
  exit 77
}
# load FILE TARGET PREFIX PARTS: a pinned wheel, into the user's cache.
load() {
  local status=0
  [ -e "$cache/$2" ] || scripts/fetch_wheel.sh "scripts/$1" "$cache/$2" "$3" "$4" "${@:5}" || status=$?
  case $status in
    0) ;;
    1) leave_out "the wheel that scripts/$1 names cannot be loaded from PyPI" ;;
    *) exit "$status" ;;
  esac
}
version_of() { sed -n 's/^[a-z-]*==\([0-9.]*\) .*/\1/p' "scripts/$1"; }

metal_cpp=metal-cpp-$(version_of metal_cpp.txt)
scripts/fetch_metal_cpp.sh
[ -e "$cache/$metal_cpp" ] || leave_out "the wheel that scripts/metal_cpp.txt names cannot be loaded from PyPI"
zig=zig-$(version_of zig.txt)
load zig.txt "$zig" ziglang/ "zig lib LICENSE"
onednn=onednn-headers-$(version_of onednn_headers.txt)
load onednn_headers.txt "$onednn" "onednn_devel_cpu_gomp-${onednn##*-}.data/data/include/" oneapi \
  --platform manylinux1_x86_64

# Of this machine's headers only those of the dependencies: the others are for Linux.
rm -rf "$prefix/include" "$prefix/lib"
mkdir -p "$prefix/include" "$prefix/bin"
folders="/usr/include /usr/include/$(g++ -print-multiarch)"
for name in fmt hwy nlohmann CLI zlib.h zconf.h zip.h zipconf.h jpeglib.h jconfig.h jmorecfg.h jerror.h png.h \
  pngconf.h pnglibconf.h utf8proc.h protozero isa-l; do
  for folder in $folders; do
    [ -e "$folder/$name" ] && ln -s "$folder/$name" "$prefix/include/$name"
  done
  [ -e "$prefix/include/$name" ] || { echo "macos: there is no $name in $folders" >&2; exit 1; }
done
ln -s "$cache/$onednn/oneapi" "$prefix/include/oneapi"
# In the place of Apple's headers of frameworks: those that the simulator has, and one more.
ln -s "$PWD"/src/device/gpu/simulator/objects/include/{CoreFoundation,IOSurface} "$prefix/include/"
ln -s "$PWD/cmake/macos/include/Accelerate" "$prefix/include/"
ln -s "$PWD/cmake/macos/libraries" "$prefix/lib"

# zig takes what it is to be from its first argument; ccache takes it from the name.
cat >"$log" <<END
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR=$cache/zig-cache
exec $cache/$zig/zig c++ -target aarch64-macos.14.0 "\$@"
END
if ! cmp -s "$log" "$prefix/bin/clang++"; then
  cp "$log" "$prefix/bin/clang++"
  chmod +x "$prefix/bin/clang++"
fi

scripts/build.sh macos "$jobs" all -DRUSSET_METAL_CPP="$cache/$metal_cpp"
scripts/check_macho.py cmake/macos "$cache/$zig/lib/libc/darwin" build/macos/lib/librusset.dylib build/macos/bin/russet
