#!/usr/bin/env bash
# scripts/fetch_metal_cpp.sh: loads metal-cpp's headers (Apple's, under the Apache License) into the user's cache, from
# the wheel that metal_cpp.txt names, unless they are there. Without them russet is built without the device mps.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's/^mlx-metal==\([0-9.]*\) .*/\1/p' metal_cpp.txt)
target=${XDG_CACHE_HOME:-$HOME/.cache}/russet/metal-cpp-$version
[ -e "$target/Metal/Metal.hpp" ] && exit 0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "setup: loading metal-cpp's headers"
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  --platform macosx_14_0_arm64 --dest "$folder" --requirement metal_cpp.txt; then
  echo "setup: metal-cpp's headers could not be loaded; russet is built without the device mps" >&2
  exit 0
fi
# Only the headers: the wheel holds 40 MiB of other things.
python3 - "$folder" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
prefix = "mlx/include/metal_cpp/"
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        part = name.removeprefix(prefix)
        if name.startswith(prefix) and part.split("/")[0] in ("Foundation", "Metal", "QuartzCore", "LICENSE.txt"):
            target = folder / "headers" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
PYTHON
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$folder/headers" "$target"
