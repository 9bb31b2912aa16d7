#!/usr/bin/env python3
"""How many kernels a training step launches on the simulated GPU, and what it moves, there and in bfloat16 on a planned
GPU of NVIDIA's: neither may grow.

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
    "alexnet": (38, 33, 1_610_000_000),
    "vgg16": (59, 52, 6_590_000_000),
    # The gradients of depthwise weights are added up of parts, in a second launch which some share with small groups.
    "efficientnet_b0": (446, 261, 2_650_000_000),
    "convmixer_768_32": (418, 282, 21_650_000_000),
    "bert_base": (216, 208, 7_780_000_000),
}
# model: kernels in all, bytes moved
CUDA_LIMITS = {
    "lenet5": (19, 2_840_000),
    "mlp": (11, 11_000_000),
    # Three are copies of the pixels that convolutions see which stride: as products these take less than by cuDNN.
    "resnet50": (547, 3_549_000_000),
    "vit_b_16": (448, 6_358_000_000),
    # The parts of the first convolution's gradient are added up in a second launch.
    "efficientnet_b0": (635, 1_942_000_000),
    "convmixer_768_32": (693, 13_215_000_000),
    "bert_base": (527, 6_823_000_000),
}
BATCH = 8
SMALL = 100_000  # bytes: statistics of channels, and their parts


def touches_activation(step):
    """Whether it may: second launches that add up parts do not; of others the bytes are counted with the first."""
    if re.fullmatch(r"(column|tiles [\dx]+|depthwise, lines in \d+ parts), results", step["kernel"]):
        return False
    if re.fullmatch(r"bundle of \d+: (\d+ results of [^;]*(; )?)+", step["step"]):
        return False
    return step["bytes"] == 0 or step["bytes"] > SMALL


class Ideal:
    """What forward and backward move if each contraction reads its operands and writes its result once, each column
    reduction reads what it adds up once more, and nothing else moves. The parameters' update, which our step has, is
    not in it. A layer's sizes are channels and side; each method returns those of its result."""

    NORM = 3  # the mean and variance read the result, the gradient's sums its gradient and the result
    BIAS = 1  # the sum of the gradient
    SQUEEZE = 3  # the means read the result, the gradient's sums its gradient and the result

    def __init__(self):
        self.elements = 0

    def layer(self, inputs, outputs, weights, read_again):
        products = 3 if self.elements else 2  # nobody needs the images' gradient
        self.elements += products * (BATCH * (inputs + outputs) + weights) + read_again * BATCH * outputs

    def conv(self, size, channels, window, stride=1, read_again=NORM, groups=1):
        inputs, side = size
        result = (channels, -(-side // stride))
        self.layer(inputs * side**2, channels * result[1]**2, inputs * channels * window**2 // groups, read_again)
        return result

    def linear(self, inputs, outputs):
        self.layer(inputs, outputs, inputs * outputs, self.BIAS)
        return outputs


def resnet50(ideal):
    size = (ideal.conv((3, 224), 64, 7, 2)[0], 56)
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            if block == 0:
                ideal.conv(size, 4 * width, 1, stride)
            size = ideal.conv(ideal.conv(ideal.conv(size, width, 1), width, 3, stride), 4 * width, 1)
    ideal.linear(2048, 1000)


def classifier(ideal, inputs):
    ideal.linear(ideal.linear(ideal.linear(inputs, 4096), 4096), 1000)


def alexnet(ideal):
    ideal.layer(3 * 224**2, 64 * 55**2, 64 * 3 * 11**2, ideal.BIAS)
    ideal.conv((64, 27), 192, 5, read_again=ideal.BIAS)
    size = (192, 13)
    for channels in (384, 256, 256):
        size = ideal.conv(size, channels, 3, read_again=ideal.BIAS)
    classifier(ideal, 256 * 36)


def vgg16(ideal):
    size = (3, 448)
    for channels, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        size = (size[0], size[1] // 2)
        for _ in range(convolutions):
            size = ideal.conv(size, channels, 3, read_again=ideal.BIAS)
    classifier(ideal, 512 * 49)


def efficientnet_b0(ideal):
    size = ideal.conv((3, 224), 32, 3, 2)
    for expansion, window, first_stride, channels, blocks in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2),
                                                              (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
                                                              (6, 3, 1, 320, 1)):
        for block in range(blocks):
            squeezed = size[0] // 4
            wide = expansion * size[0]
            if expansion > 1:
                size = ideal.conv(size, wide, 1)
            size = ideal.conv(size, wide, window, first_stride if block == 0 else 1, ideal.NORM + ideal.SQUEEZE, wide)
            ideal.linear(ideal.linear(wide, squeezed), wide)
            size = ideal.conv(size, channels, 1)
    ideal.conv(size, 1280, 1)
    ideal.linear(1280, 1000)


def convmixer_768_32(ideal):
    again = ideal.NORM + ideal.BIAS
    ideal.layer(3 * 224**2, 768 * 32**2, 768 * 3 * 49, again)
    for _ in range(32):
        ideal.conv(ideal.conv((768, 32), 768, 7, 1, again, 768), 768, 1, 1, again)
    ideal.linear(768, 1000)


MOST_OVER_IDEAL = {
    "resnet50": (resnet50, 1.3),
    "alexnet": (alexnet, 1.97),
    "vgg16": (vgg16, 1.59),
    "efficientnet_b0": (efficientnet_b0, 1.2),
    "convmixer_768_32": (convmixer_768_32, 1.34),
}


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
        if model in MOST_OVER_IDEAL:
            layers, most = MOST_OVER_IDEAL[model]
            ideal = Ideal()
            layers(ideal)
            ratio = found[2] / (4 * ideal.elements)
            print(f"{model}: forward, backward and update move {ratio:.4f} times the ideal's {4 * ideal.elements} bytes")
            failed |= ratio > most
    return 1 if cuda_fails() or failed else 0


def cuda_fails():
    failed = False
    for model, limits in CUDA_LIMITS.items():
        command = [sys.argv[1], "plan", model, "--device", "cuda", "--chip", "h200", "--precision", "bf16",
                   "--batch", str(BATCH), "--json"]
        plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=500).stdout)
        found = (plan["launches"], plan["bytes_moved"])
        verdict = "as allowed" if all(f <= limit for f, limit in zip(found, limits)) else f"TOO MANY, {limits} are allowed"
        print(f"{model} on cuda: {found[0]} kernels, {found[1]} bytes moved: {verdict}")
        failed |= verdict != "as allowed"
    return failed


if __name__ == "__main__":
    sys.exit(main())
