#!/usr/bin/env bash
# scripts/fetch_wheel.sh REQUIREMENT TARGET PREFIX PARTS [PIP_OPTION]...: loads the wheels that the file REQUIREMENT pins
# by their hashes, and puts what lies in them under PREFIX, in which * is any one folder, into the folder TARGET, but only
# files and folders that PARTS names, separated by spaces. Exit status 1 if one cannot be loaded, 2 if one is another than
# the hash says.
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
import pathlib, re, sys, zipfile
folder, parts = pathlib.Path(sys.argv[1]), sys.argv[3].split()
prefix = re.compile(re.escape(sys.argv[2]).replace(r"\*", "[^/]+"))
for path in folder.glob("*.whl"):
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            found = prefix.match(name)
            if not found or name[found.end():].split("/")[0] not in parts:
                continue
            target = folder / "parts" / name[found.end():]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
            target.chmod(0o755 if wheel.getinfo(name).external_attr >> 16 & 0o111 else 0o644)
PYTHON
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$folder/parts" "$target"
