#!/usr/bin/env python3
"""train_mps.py RUSSET [--steps N] [--all]: training on the simulated Apple GPU follows training on the cpu.

LeNet-5 on MNIST, and with --all a resnet18 of an eighth of its width on CIFAR-10's pictures, from the same seeds: the
losses of the first ten steps are within 1e-4 of the cpu's, those of fifty within 1e-2; two runs leave the same bits;
two steps whose launches are cut give the same losses; and two steps under all of the simulator's checks give no report. Real data lies where RUSSET_DATA says; without it this
is skipped.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LENET5 = ["lenet5", "--batch", "32"]
# A rate at which the training does not amplify last bits: at 0.02 the cpu with one thread and with two are 3e-2 apart
# after ten steps, at this one 2e-7, and 2e-3 after fifty.
RESNET18 = ["resnet18_cifar", "--width", "0.125", "--batch", "8", "--lr", "0.0005", "--momentum", "0"]
NEAR = [(10, 1e-4), (50, 1e-2)]  # steps, difference of losses at most


def train(russet, arguments, folder, device, steps, simulator="", **variables):
    """Returns seconds and what was said on standard error."""
    environment = dict(os.environ, RUSSET_METAL="simulator", RUSSET_SIMULATOR=simulator, RUSSET_FALLBACK="error",
                       **variables)
    command = [russet, "train", *arguments, "--holdout", "0", "--workers", "1", "--device", device, "--steps",
               str(steps), "--out", str(folder)]
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return time.monotonic() - began, done.stderr


def losses_of(folder):
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "step" in line]


def compare(name, losses, expected):
    worst = 0
    for step, (loss, other) in enumerate(zip(losses, expected, strict=True), 1):
        bound = next(bound for steps, bound in NEAR if step <= steps)
        worst = max(worst, abs(loss - other))
        if not abs(loss - other) <= bound:
            sys.exit(f"{name}: the loss of step {step} is {loss} on mps and {other} on the cpu")
    return worst


def check(russet, name, arguments, steps, scratch):
    folders = {run: scratch / name / run for run in ("cpu", "mps", "again", "cut", "checked")}
    cpu, _ = train(russet, arguments, folders["cpu"], "cpu", steps)
    mps, _ = train(russet, arguments, folders["mps"], "mps", steps, "unchecked")
    train(russet, arguments, folders["again"], "mps", steps, "unchecked")
    losses = losses_of(folders["mps"])
    worst = compare(name, losses, losses_of(folders["cpu"]))
    for file in ("model.safetensors", "best.safetensors"):
        if (folders["mps"] / file).read_bytes() != (folders["again"] / file).read_bytes():
            sys.exit(f"{name}: two runs on mps left different {file}")
    if losses != losses_of(folders["again"]):
        sys.exit(f"{name}: two runs on mps had different losses")
    # Launches of a microsecond, by the model: most have several threadgroups, and are cut.
    train(russet, arguments, folders["cut"], "mps", 2, "unchecked", RUSSET_METAL_LAUNCH_MS="0.001")
    if losses_of(folders["cut"]) != losses[:2]:
        sys.exit(f"{name}: steps whose launches are cut give other losses")
    checked, said = train(russet, arguments, folders["checked"], "mps", 2)
    if losses_of(folders["checked"])[0] != losses[0]:
        sys.exit(f"{name}: a checked step gives another loss than an unchecked one")
    if said:
        sys.exit(f"{name}: two checked steps said:\n{said}")
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps, at most {worst:.1e} from the cpu's; "
          f"{mps:.0f} s (cpu {cpu:.0f} s), two checked steps {checked:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("russet")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--all", action="store_true", help="the narrow resnet18 too: minutes")
    arguments = parser.parse_args()
    data = os.environ.get("RUSSET_DATA", "")
    if not data:
        print("RUSSET_DATA is not set: it names a folder with MNIST's files and cifar/train")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        check(arguments.russet, "lenet5", [*LENET5, "--data", f"mnist:{data}"], arguments.steps, scratch)
        if not arguments.all:
            return
        check(arguments.russet, "resnet18_cifar", [*RESNET18, "--data", f"folder:{data}/cifar/train"], arguments.steps,
              scratch)


if __name__ == "__main__":
    main()
