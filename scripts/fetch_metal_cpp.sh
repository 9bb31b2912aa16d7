#!/usr/bin/env bash
# scripts/fetch_metal_cpp.sh: loads metal-cpp's headers (Apple's, under the Apache License) into the user's cache, from
# the wheel that metal_cpp.txt names, unless they are there. Without them russet is built without the device mps.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's/^mlx-metal==\([0-9.]*\) .*/\1/p' metal_cpp.txt)
target=${XDG_CACHE_HOME:-$HOME/.cache}/russet/metal-cpp-$version
[ -e "$target/Metal/Metal.hpp" ] && exit 0
echo "setup: loading metal-cpp's headers"
# Only the headers: the wheel holds 40 MiB of other things.
./fetch_wheel.sh metal_cpp.txt "$target" mlx/include/metal_cpp/ "Foundation Metal QuartzCore LICENSE.txt" \
  --platform macosx_14_0_arm64 ||
  echo "setup: metal-cpp's headers could not be loaded; russet is built without the device mps" >&2
