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
    "lenet5": (20, 10, 3_300_000),
    "resnet50": (236, 126, 4_460_000_000),
    "bert_base": (216, 208, 7_780_000_000),
}
BATCH = 8
MOST_OVER_IDEAL = 1.3
SMALL = 100_000  # bytes: statistics of channels, and their parts


def touches_activation(step):
    """Whether it may: second launches that add up columns do not; of others the bytes are counted with the first."""
    if re.fullmatch(r"(column|tiles [\dx]+), results", step["kernel"]):
        return False
    if re.fullmatch(r"bundle of \d+: (\d+ results of [^;]*(; )?)+", step["step"]):
        return False
    return step["bytes"] == 0 or step["bytes"] > SMALL


def ideal_bytes_of_resnet50():
    """What forward and backward move if each contraction reads its operands and writes its result once, each column
    reduction (two for a batch norm's statistics and gradients) reads what it adds up once more, and nothing else
    moves. The parameters' update, which our step has, is not in it."""
    convolutions = [(3, 224, 64, 112, 7)]  # channels and side of the input, of the output, window
    channels, side = 64, 56
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            smaller = side // (first_stride if block == 0 else 1)
            convolutions += [(channels, side, width, side, 1), (width, side, width, smaller, 3),
                             (width, smaller, 4 * width, smaller, 1)]
            if block == 0:
                convolutions.append((channels, side, 4 * width, smaller, 1))
            channels, side = 4 * width, smaller
    elements = 3 * (BATCH * 2048 + BATCH * 1000 + 2048 * 1000)  # the classifier: forward, and two gradients
    for index, (inputs, input_side, outputs, output_side, window) in enumerate(convolutions):
        x = BATCH * inputs * input_side**2
        y = BATCH * outputs * output_side**2
        products = 3 if index > 0 else 2  # nobody needs the images' gradient
        elements += products * (x + y + inputs * outputs * window**2)
        elements += 3 * y  # the mean and variance read y, the gradient's sums its gradient and y
    return 4 * elements


def main() -> int:
    environment = dict(os.environ, RUSSET_METAL="simulator", RUSSET_TUNE="off")
    failed = False
    for model, limits in LIMITS.items():
        command = [sys.argv[1], "plan", model, "--device", "mps", "--batch", str(BATCH), "--steps", "--json"]
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
        if model == "resnet50":
            ideal = ideal_bytes_of_resnet50()
            ratio = found[2] / ideal
            print(f"resnet50: forward, backward and update move {ratio:.4f} times the ideal's {ideal} bytes")
            failed |= ratio > MOST_OVER_IDEAL
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
