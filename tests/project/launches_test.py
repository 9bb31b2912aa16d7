#!/usr/bin/env python3
"""How many kernels a training step launches on the simulated GPU, and what it moves: neither may grow.

Usage: launches_test.py PROGRAM   where PROGRAM is the built russet. Exit status 77 if there is no simulated GPU."""
import json
import os
import re
import subprocess
import sys

# model: kernels in all, those that touch an activation, bytes moved
LIMITS = {
    "lenet5": (21, 11, 3_790_000),
    "resnet50": (257, 161, 5_080_000_000),
    "bert_base": (264, 253, 9_260_000_000),
}
SMALL = 100_000  # bytes: statistics of channels, and their parts


def touches_activation(step):
    """Whether it may: second launches that add up columns do not; of others the bytes are counted with the first."""
    if re.fullmatch(r"(column|tiles \d+x\d+), results", step["kernel"]):
        return False
    return step["bytes"] == 0 or step["bytes"] > SMALL


def main() -> int:
    environment = dict(os.environ, RUSSET_METAL="simulator")
    failed = False
    for model, limits in LIMITS.items():
        command = [sys.argv[1], "plan", model, "--device", "mps", "--batch", "8", "--steps", "--json"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
        if run.returncode != 0:
            print(run.stderr)
            return 77 if "mps" in run.stderr else 1
        plan = json.loads(run.stdout)
        activations = sum(touches_activation(step) for step in plan["list"])
        found = (plan["launches"], activations, plan["bytes_moved"])
        verdict = "as allowed" if all(f <= limit for f, limit in zip(found, limits)) else f"TOO MANY, {limits} are allowed"
        print(f"{model}: {found[0]} kernels, {activations} touch activations, {found[2]} bytes moved: {verdict}")
        failed |= verdict != "as allowed"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
