#!/usr/bin/env bash
# scripts/fetch_wheel.sh REQUIREMENT TARGET PREFIX PARTS [PIP_OPTION]...: loads the wheel that the file REQUIREMENT pins by
# its hash, and puts what lies in it under PREFIX into the folder TARGET, but only files and folders that PARTS names,
# separated by spaces. Exit status 1 if it cannot be loaded, 2 if it is another one than the hash says.
set -euo pipefail
requirement=$1 target=$2 prefix=$3 parts=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes "$@" \
  --dest "$folder" --requirement "$requirement" 2>"$folder/log" || {
  cat "$folder/log" >&2
  if grep -q "DO NOT MATCH THE HASHES" "$folder/log"; then exit 2; fi
  exit 1
}
python3 - "$folder" "$prefix" "$parts" <<'PYTHON'
import pathlib, sys, zipfile
folder, prefix, parts = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split()
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        path = name.removeprefix(prefix)
        if name.startswith(prefix) and path.split("/")[0] in parts:
            target = folder / "parts" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
            target.chmod(0o755 if wheel.getinfo(name).external_attr >> 16 & 0o111 else 0o644)
PYTHON
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$folder/parts" "$target"
