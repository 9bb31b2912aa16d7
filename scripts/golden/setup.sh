#!/bin/sh
# Installs PyTorch, and what the golden scripts need besides, into a folder of its own.
# Usage: scripts/golden/setup.sh [FOLDER]    (default: build/torch-venv)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/torch-venv}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --requirement "$here/requirements.txt"
"$folder/bin/python" -c 'import torch; print("PyTorch", torch.__version__, "is in", __import__("sys").prefix)'
