#!/bin/sh
# Compares russet with PyTorch, torchvision, timm and transformers, which it installs into a folder of its own: logits and
# gradients of every model, the fine-tuning of a small BERT on TREC, SimCLR's parts. Prints one table; exits with 1 if a
# limit is broken.
# Usage: RUSSET_DATA=FOLDER scripts/golden/parity.sh [TORCH [BUILD]]
# FOLDER has TREC's train_5500.label. PyTorch is, or will be, in TORCH (default: build/torch-venv), russet in BUILD
# (default: build).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
torch=${1:-$root/build/torch-venv}
build=${2:-$root/build}
trec=${RUSSET_DATA:?names the folder with train_5500.label, the questions of TREC}/train_5500.label
for needed in "$trec" "$build/bin/russet" "$build/tests/golden_training_step" "$build/tests/golden_simclr_test"; do
  [ -e "$needed" ] || { echo "parity: $needed is missing$([ "$needed" = "$trec" ] || echo ': make build')" >&2; exit 2; }
done
"$here/setup.sh" "$torch" >&2
status=0
"$torch/bin/python" "$here/table.py"
"$torch/bin/python" "$here/compare_models.py" --build "$build" || status=1
"$torch/bin/python" "$here/finetune_bert.py" "$trec" --build "$build" || status=1
"$torch/bin/python" "$here/compare_simclr.py" --build "$build" || status=1
[ $status = 0 ] && echo "all limits hold" || echo "a limit is broken, or a comparison failed" >&2
exit $status
