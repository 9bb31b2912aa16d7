#!/usr/bin/env python3
"""How many kernels a training step launches on the simulated GPU, and what it moves: neither may grow.

Usage: launches_test.py PROGRAM   where PROGRAM is the built russet. Exit status 77 if there is no simulated GPU."""
import json
import os
import subprocess
import sys

# model: kernels in all
LIMITS = {"lenet5": 22, "resnet50": 334, "bert_base": 302}


def main() -> int:
    environment = dict(os.environ, RUSSET_METAL="simulator")
    failed = False
    for model, limit in LIMITS.items():
        command = [sys.argv[1], "plan", model, "--device", "mps", "--batch", "8", "--json"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
        if run.returncode != 0:
            print(run.stderr)
            return 77 if "mps" in run.stderr else 1
        plan = json.loads(run.stdout)
        verdict = "as allowed" if plan["launches"] <= limit else "TOO MANY"
        print(f"{model}: {plan['launches']} kernels, {limit} are allowed: {verdict}; {plan['peak_bytes']} bytes at most")
        failed |= plan["launches"] > limit
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
