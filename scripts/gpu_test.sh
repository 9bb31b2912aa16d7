#!/usr/bin/env bash
# scripts/gpu_test.sh BUNDLE [PART...]: everything of russet that needs an NVIDIA GPU, with the programs of an archive of
# scripts/bundle.sh. Parts, all of them if none is named:
#   tests      the conformance suite, the models and trainings with PyTorch's values
#   repeat     two trainings from one seed give the same bytes, and the losses of `cpu`: of drawn shapes, and of MNIST
#              and CIFAR-10 where RUSSET_DATA has them
#   simclr     seconds that an epoch of SimCLR on CIFAR-10 takes (RUSSET_DATA)
#   sanitizer  a training step of each model in bfloat16 and float32, narrow but for the smallest, and evaluations, under
#              compute-sanitizer's memcheck
#   memory     what plans say that they take beside what nvidia-smi sees
#   faults     too large a batch, a fault of the GPU, and each of NVIDIA's libraries missing
#   start      the first step of resnet50, with an empty cache of kernels and with a full one
#   speeds     ms a step of the workloads, training and evaluating, in bfloat16 and float32
#   bench      the same beside PyTorch's, compiled to CUDA graphs (bench/compare_torch.py)
#   OUT=DIR     where logs go (a new folder)
#   PYTHON=P    a Python with PyTorch, torchvision, timm and transformers, for `bench` (python3)
#   WORKLOADS=...  of `speeds` and `bench` (all of the comparison)
set -uo pipefail
source_folder=$(realpath "$(dirname "$0")/..")
bundle=$(realpath "$1")
shift
parts=("$@")
[ $# -eq 0 ] && parts=(tests repeat simclr sanitizer memory faults start speeds bench)
workloads=${WORKLOADS:-resnet50 vgg16 bert_base vit_b_16 efficientnet_b0 convmixer_768_32 resnet18_cifar lenet5 mlp}
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -C "$folder" -xf "$bundle"
run=$folder/russet/run
export run out source_folder
export RUSSET_TEST_DEVICES=cuda RUSSET_TUNE=off RUSSET_CACHE=${RUSSET_CACHE:-$folder/cache}
failed=0

# One shard of a test program; prints a line.
shard() {
  local program=$1 number=$2 of=$3 log started=$SECONDS
  log=$out/$(basename "$program").$number.txt
  if GTEST_TOTAL_SHARDS=$of GTEST_SHARD_INDEX=$number "$run" "$program" >"$log" 2>&1; then
    echo "pass $program $number: $(grep -c '^\[       OK' "$log") passed in $((SECONDS - started)) s"
  else
    echo "FAIL $program $number: see $log"
  fi
}
export -f shard

tests() {
  local shards=8 program number
  for program in "$folder"/russet/tests/conformance_*_test tests/models_devices_test tests/models_captured_test \
    tests/golden_training_test; do
    for number in $(seq 0 $((shards - 1))); do echo "tests/$(basename "$program") $number $shards"; done
  done | xargs -P "$(nproc)" -L 1 bash -c 'shard "$0" "$1" "$2"' >"$out/tests.txt"
  grep FAIL "$out/tests.txt"
  echo "tests: the longest:" && grep '^pass' "$out/tests.txt" | sort -k 7 -n -r | sed -n '1,5s/^pass /  /p'
  echo "tests: $(awk '{sum += $4} END {print sum}' <(grep '^pass' "$out/tests.txt")) passed," \
    "$(grep -c FAIL "$out/tests.txt") programs failed"
  ! grep -q FAIL "$out/tests.txt"
}

# CIFAR-10's pictures, as they lie in RUSSET_DATA or unpacked once.
cifar() {
  if [ -d "$RUSSET_DATA/cifar" ]; then
    echo "folder:$RUSSET_DATA/cifar"
    return
  fi
  [ -d "$folder/cifar" ] || tar -C "$folder" --zstd -xf "$RUSSET_DATA/cifar10-jpeg.tar.zst"
  echo "folder:$folder/cifar"
}

# Fifty steps of training on a device, into a folder.
training() { # MODEL DATA DEVICE FOLDER [OPTION...]
  "$run" bin/russet train "$1" --data "$2" --device "$3" --steps 50 --batch 64 --seed 1 --out "$out/$4" --json "${@:5}" \
    >"$out/$4.txt" 2>&1
}

repeat() {
  local status=0 cases=("lenet5 shapes" "resnet18_cifar shapes") case model data name rate=()
  if [ -n "${RUSSET_DATA:-}" ]; then
    cases+=("lenet5 mnist:$RUSSET_DATA" "resnet18_cifar $(cifar)")
  else
    echo "repeat: without MNIST and CIFAR-10: RUSSET_DATA is not set"
  fi
  for case in "${cases[@]}"; do
    read -r model data <<<"$case"
    name=$model-${data%%:*}
    # At the recipe's rate of 0.1 rounding grows a hundredfold in ten steps: one CPU's losses with AVX2 and with AVX-512
    # are 1e-3 apart then.
    rate=()
    [ "$model" = resnet18_cifar ] && rate=(--lr 0.001)
    training "$model" "$data" cuda "$name-first" "${rate[@]}" &&
      training "$model" "$data" cuda "$name-second" "${rate[@]}" &&
      training "$model" "$data" cpu "$name-cpu" "${rate[@]}"
    python3 - "$name" "$out/$name-first" "$out/$name-second" "$out/$name-cpu" <<'COMPARE' || status=1
import json, pathlib, sys
model, first, second, cpu = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
def losses(folder):
    records = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [record["loss"] for record in records if "step" in record]
same = (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
apart = [abs(a - b) for a, b in zip(losses(first), losses(cpu), strict=True)]
print(f"repeat: {model}: {'the same weights twice' if same else 'TWO RUNS DIFFER'}; losses apart from cpu's by at most "
      f"{max(apart[:10]):.2g} in ten steps, {max(apart):.2g} in fifty")
learns = max(losses(first)) > 0
if not learns:
    print(f"repeat: {model}: all losses are 0, which says nothing: has its folder one class alone?")
sys.exit(0 if same and learns and max(apart[:10]) < 1e-4 and max(apart) < 1e-2 else 1)
COMPARE
  done
  return $status
}

simclr() {
  if [ -z "${RUSSET_DATA:-}" ]; then
    echo "simclr: skipped: RUSSET_DATA is not set"
    return 0
  fi
  "$run" bin/russet train simclr_resnet18 --data "$(cifar)" --device cuda --precision bf16 --batch 128 --epochs 4 \
    --out "$out/simclr" --json >"$out/simclr.txt" 2>&1 || return 1
  python3 - "$out/simclr.txt" <<'TELL'
import json, sys
for line in map(json.loads, open(sys.argv[1])):
    if "epoch" in line:
        print(f"simclr: epoch {line['epoch']}: {line['seconds']:.2f} s, loss {line['loss']:.3f}, "
              f"nearest neighbours right for {100 * line['accuracy']:.1f} %")
TELL
}

# A step under compute-sanitizer's memcheck; prints a line.
checked() { # MODEL PRECISION PHASE BATCH WIDTH
  local log=$out/sanitizer-$1-$2-$3.txt
  if compute-sanitizer --tool memcheck --error-exitcode 9 "$run" bin/russet bench "$1" --precision "$2" --phase "$3" \
    --batch "$4" --width "$5" --seconds 0 --device cuda >"$log" 2>&1; then
    echo "sanitizer: $1, $2, $3: clean"
  else
    echo "sanitizer: $1, $2, $3: FAIL, see $log"
  fi
}
export -f checked

# The longest ones first.
sanitizer() {
  local model precision phase
  {
    for precision in bf16 fp32; do
      for model in efficientnet_b0 convmixer_768_32 resnet50 vit_b_16 bert_base vgg16 alexnet resnet18_cifar; do
        echo "$model $precision train 2 0.25"
      done
    done
    for model in resnet50 resnet18_cifar vgg16; do echo "$model bf16 eval 2 0.25"; done
    for precision in bf16 fp32; do
      for model in lenet5 mlp; do
        for phase in train eval; do echo "$model $precision $phase 64 1"; done
      done
    done
  } | xargs -P "$(nproc)" -L 1 bash -c 'checked "$@"' checked | tee "$out/sanitizer.txt"
  ! grep -q FAIL "$out/sanitizer.txt"
}

# MiB of the GPU in use, the most of a command's run.
most_used() {
  "$@" >"$out/used.json" 2>&1 &
  local process=$! used most=0
  while kill -0 "$process" 2>/dev/null; do
    used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)
    ((used > most)) && most=$used
    sleep 0.1
  done
  echo "$most"
}

planned() { python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["planned_bytes"] >> 20)' "$out/used.json"; }

# What the process takes without a plan is what a small network's takes beyond it.
memory() {
  local status=0 model batch used context
  local options=(--device cuda --phase train --precision bf16 --seconds 2 --json)
  used=$(most_used "$run" bin/russet bench lenet5 --batch 64 "${options[@]}")
  context=$((used - $(planned)))
  for model in resnet50:128 vit_b_16:64 bert_base:64 convmixer_768_32:64; do
    batch=${model#*:}
    used=$(most_used "$run" bin/russet bench "${model%:*}" --batch "$batch" "${options[@]}")
    awk -v model="${model%:*}" -v used="$used" -v context="$context" -v planned="$(planned)" 'BEGIN {
      apart = (used - context) / planned - 1
      printf "memory: %s: planned %d MiB, seen %d beside the context of %d: %+.1f %%\n", model, planned,
             used - context, context, 100 * apart
      exit apart > 0.05 || apart < -0.05 }' || status=1
  done
  return $status
}

# A folder in which one of NVIDIA's libraries is no library.
without() { # NAME
  local folder=$out/without-$1 number
  mkdir -p "$folder"
  for number in "" .9 .12 .13; do echo "not a library" >"$folder/$1.so$number"; done
  echo "$folder"
}

faults() {
  local status=0 name path
  "$run" tests/models_cuda_faults_test >"$out/faults.txt" 2>&1 || status=1
  echo "faults: $(grep -c '^\[       OK' "$out/faults.txt") of 2 passed"
  for name in libnvrtc libcublasLt libcudnn; do
    path=$(without "$name"):${LD_LIBRARY_PATH:-}
    echo "faults: without $name: $(LD_LIBRARY_PATH=$path "$run" bin/russet devices | grep -m 1 "$name")"
    LD_LIBRARY_PATH=$path "$run" bin/russet devices | grep -q "$name" || status=1
    [ "$name" = libnvrtc ] && continue
    LD_LIBRARY_PATH=$path RUSSET_FALLBACK=error "$run" bin/russet bench resnet18_cifar --device cuda --phase train \
      --batch 8 --seconds 0 >"$out/without-$name.txt" 2>&1 || { echo "faults: FAIL without $name"; status=1; }
  done
  return $status
}

# NVRTC keeps what it compiled in CUDA's own cache, too: a first step is one without.
start() {
  local cache=$out/cache which
  local -x CUDA_CACHE_DISABLE=1
  for which in empty full; do
    echo "start: resnet50, bfloat16, $which cache: $(RUSSET_CACHE=$cache "$run" bin/russet bench resnet50 --device cuda \
      --phase train --precision bf16 --batch 128 --seconds 1 --json |
      python3 -c 'import json, sys; told = json.loads(sys.stdin.readlines()[-1]); print(told["first_step_s"], "s, later ones", told["ms"], "ms")')"
  done
}

# Prints a line; some milliseconds of steps compile the kernels.
speed() { # MODEL PRECISION PHASE SECONDS
  local batch told
  batch=$(python3 "$source_folder/bench/batches.py" "$1" cuda)
  told=$("$run" bin/russet bench "$1" --device cuda --precision "$2" --phase "$3" --batch "$batch" --seconds "$4" --json) &&
    python3 -c 'import json, sys; print(*sys.argv[1:5], json.loads(sys.stdin.readlines()[-1])["ms"], "ms")' \
      "speed:" "$1" "$2" "$3" <<<"$told"
}
export -f speed

speeds() {
  local model precision phase status=0
  for precision in bf16 fp32; do
    for model in $workloads; do
      for phase in train eval; do echo "$model $precision $phase"; done
    done
  done >"$out/workloads.txt"
  # Side by side until their kernels are compiled: five of the largest have room in memory.
  xargs -P 5 -L 1 bash -c 'speed "$@" 0.01' speed <"$out/workloads.txt" >/dev/null
  while read -r model precision phase; do
    speed "$model" "$precision" "$phase" 0.3 || status=1
  done <"$out/workloads.txt"
  return $status
}

bench() {
  printf '#!/bin/sh\nexec "%s" bin/russet "$@"\n' "$run" >"$folder/russet.sh"
  chmod +x "$folder/russet.sh"
  # shellcheck disable=SC2086
  TORCHINDUCTOR_COMPILE_THREADS=2 "${PYTHON:-python3}" -u "$source_folder/bench/compare_torch.py" --device cuda \
    --modes graph --together 12 --pairs 1 --seconds 0.5 --python "${PYTHON:-python3}" --russet "$folder/russet.sh" \
    --out "$out/bench.json" $workloads | tee "$out/bench.txt"
}

for part in "${parts[@]}"; do
  started=$SECONDS
  "$part" || failed=1
  echo "gpu_test: $part took $((SECONDS - started)) s"
done
echo "gpu_test: logs in $out"
exit $failed
