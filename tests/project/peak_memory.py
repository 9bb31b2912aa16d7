#!/usr/bin/env python3
"""peak_memory.py RUSSET [--all]: a process takes as much memory as `russet plan` says.

Each workload runs in a process of its own; the most that the system saw it grow by, from before the model was made on,
must be within 5 % of the planned peak. Planned peaks below 500 MB are refused: there the process's own few megabytes
(plans, generated code, stacks) count for too much. Without --all only the workload that takes seconds is run.
"""
import argparse
import json
import subprocess
import sys

# Model, precision, batch.
QUICK = [("mlp", "fp32", 65536)]
ALL = QUICK + [
    ("resnet18_cifar", "fp32", 128),
    ("resnet18_cifar", "bf16", 128),
    ("resnet50", "fp32", 32),
    ("vit_b_16", "fp32", 8),
    ("bert_base", "fp32", 8),
]
LEAST_PLANNED = 500_000_000
TOLERANCE = 0.05


def russet(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def check(program, model, precision, batch):
    workload = (model, "--phase", "train", "--precision", precision, "--batch", str(batch))
    planned = russet(program, "plan", *workload)["peak_bytes"]
    measured = russet(program, "bench", *workload, "--seconds", "0")
    grown = measured["resident_bytes"]
    if grown is None:
        print("this system does not tell a process's peak")
        sys.exit(77)
    ratio = grown / planned
    good = planned >= LEAST_PLANNED and abs(ratio - 1) <= TOLERANCE
    print(f"{model:15} {precision} batch {batch:5}: planned {planned:13,}, process {grown:13,}, "
          f"ratio {ratio:.4f}{'' if good else '  <-- WRONG'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("russet")
    parser.add_argument("--all", action="store_true", help="the large models too: some minutes")
    arguments = parser.parse_args()
    results = [check(arguments.russet, *workload) for workload in (ALL if arguments.all else QUICK)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
