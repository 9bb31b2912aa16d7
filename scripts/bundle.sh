#!/usr/bin/env bash
# scripts/bundle.sh [FILE]: packs what was built into one archive (russet-bundle.tar.xz if none is named) that runs on
# another Linux of the same processor family as it is: the command line, the tests that run on a GPU, what they compare
# with, and all shared libraries but the C library's, which there must be no older, and NVIDIA's.
#   BUILD=DIR   the build folder (build)
set -euo pipefail
cd "$(dirname "$0")/.."
file=$(realpath -m "${1:-russet-bundle.tar.xz}")
build=$(realpath "${BUILD:-build}")
[ -x "$build/bin/russet" ] || { echo "bundle: nothing was built in $build" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/russet
mkdir -p "$root/bin" "$root/lib/russet" "$root/tests"
cp "$build/bin/russet" "$root/bin/"
for area in conformance models golden; do
  for program in "$build/tests/${area}"_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then cp "$program" "$root/tests/"; fi
  done
done
cp -L "$build"/lib/librusset.so.[0-9]* "$root/lib/"
if [ -x "$build/lib/russet/compile-for-cuda" ]; then cp "$build/lib/russet/compile-for-cuda" "$root/lib/russet/"; fi
# What the loader would take, but for the C library's own and russet's.
ldd "$root/bin/russet" "$root"/tests/* "$build"/lib/librusset.so | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -vE '/(lib(c|m|dl|rt|pthread|resolv)\.so|ld-linux|librusset)' | while read -r library; do
    cp -L "$library" "$root/lib/"
  done
find "$root" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true
mkdir -p "$root/tests/golden" "$root/tests/conformance"
cp -r tests/golden/data "$root/tests/golden/"
cp tests/conformance/calls.jsonl "$root/tests/conformance/"
cat >"$root/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM [ARGUMENT]...: runs a program of this folder ("bin/russet", "tests/models_devices_test") with its libraries.
here=$(dirname "$(realpath "$0")")
program=$1
shift
RUSSET_TEST_GOLDEN=$here/tests/golden/data LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
  exec "$here/$program" "$@"
RUN
chmod +x "$root/run"
tar -C "$folder" -c russet | xz -T0 -6 >"$file.part"
mv "$file.part" "$file"
echo "bundle: $file, $(($(stat -c %s "$file") >> 20)) MiB"
