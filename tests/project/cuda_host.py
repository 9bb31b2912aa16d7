#!/usr/bin/env python3
"""cuda_host.py RUSSET STAND_INS: what the host does on the device cuda, without a GPU.

In the folder STAND_INS lie stand-ins for NVIDIA's libraries. They copy, compute nothing, and count calls: so numbers mean
nothing here, but a step of training must be one launch of a graph, and nothing in it may wait.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Of a step of training: one graph; two uploads, of images and labels, and one copy of what changes from step to step.
# The host waits once, for the loss that it prints. One event tells when the step has ended.
MOST_OF_A_STEP = {"cuGraphLaunch": 1, "cuLaunchKernel": 0, "cuGraphInstantiate": 0, "cuMemcpyHtoDAsync": 3,
                  "cuMemcpyDtoHAsync": 1, "cuStreamSynchronize": 2, "cuMemAlloc": 0, "cuEventRecord": 1}
STEPS = 50


class Machine:
    def __init__(self, program, libraries, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.calls = self.folder / "calls"
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "RUSSET_CACHE": str(self.folder / "cache"),
                            "RUSSET_TUNE": "off", "CUDA_STAND_IN_CALLS": str(self.calls)}

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"russet {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def say_of_a_fault(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                              env={**self.environment, "CUDA_STAND_IN_FAULT": "1"})
        return f"{done.returncode}: {done.stderr}"

    def calls_of(self, *arguments):
        self.run(*arguments)
        return {name: int(count) for name, count in map(str.split, self.calls.read_text().splitlines())}


def calls_of_a_step(machine):
    """Calls in later steps: of a longer training, less those of a shorter one."""
    train = ("train", "lenet5", "--data", "shapes", "--device", "cuda", "--batch", 16, "--out")
    shorter = machine.calls_of(*train, machine.folder / "a", "--steps", STEPS)
    longer = machine.calls_of(*train, machine.folder / "b", "--steps", 2 * STEPS)
    return {name: (longer[name] - shorter[name]) / STEPS for name in MOST_OF_A_STEP}


def check_steps(machine):
    wrong = [f"{name}: {calls} times a step, at most {MOST_OF_A_STEP[name]} are allowed"
             for name, calls in calls_of_a_step(machine).items() if calls > MOST_OF_A_STEP[name]]
    # Labels that the GPU drew are looked at once and not in every step.
    calls = machine.calls_of("bench", "lenet5", "--device", "cuda", "--batch", 16, "--phase", "train", "--seconds", 0.5)
    if calls["cuMemcpyDtoHAsync"] * 10 > calls["cuGraphLaunch"]:
        wrong.append(f"bench reads {calls['cuMemcpyDtoHAsync']} times in {calls['cuGraphLaunch']} launches")
    return wrong


def check_graphs(machine):
    """An epoch's features lie at as many addresses as it has batches: there is no graph for each of them. A step of
    training, which has many more kernels, has four graphs, since parameters of one size take turns in memory."""
    calls = machine.calls_of("train", "simclr_resnet18", "--data", "shapes", "--device", "cuda", "--batch", 8, "--samples",
                             1200, "--width", 0.125, "--epochs", 3, "--out", machine.folder / "simclr")
    wrong = []
    for of, most, made in (("evaluation", 6, calls["cuGraphInstantiate"] - calls["large_graphs"]),
                           ("training", 4, calls["large_graphs"])):
        if made > most:
            wrong.append(f"{made} graphs were made of an epoch's {of}, at most {most} are allowed")
    return wrong


def check_chain(machine):
    """Of mlp's launches few wait for each other: two layers forward, three back, what casts and adds up, and updates.
    None waits for nothing: a graph has one start, which is no launch, since CUDA starts each further one by itself."""
    most = 8
    calls = machine.calls_of("bench", "mlp", "--device", "cuda", "--batch", 1024, "--phase", "train", "--precision", "bf16",
                             "--seconds", 0)
    in_a_row = calls["launches_in_a_row"]
    at_the_start = calls["launches_at_the_start"]
    told = []
    if in_a_row > most:
        told.append(f"{in_a_row} launches of a step of mlp wait for each other, at most {most} are allowed")
    if at_the_start > 0:
        told.append(f"{at_the_start} launches of mlp's graphs wait for nothing")
    return told


def check_profile(machine):
    """A profile asks for the GPU's own times, which are a quarter of a millisecond a submission here."""
    trace = machine.folder / "trace.json"
    machine.run("profile", "mlp", "--device", "cuda", "--batch", 16, "--steps", 1, "--trace", trace)
    times = {round(event["dur"], 3) for event in json.loads(trace.read_text())["traceEvents"]}
    return [] if times == {250} else [f"a profile's times are {sorted(times)[:5]}, each should be 250"]


def check_devices(machine):
    lines = [json.loads(line) for line in machine.run("devices", "--json").splitlines()]
    device = next(line for line in lines if line["device"] == "cuda")
    reasons = {library["name"]: library.get("reason", "") for library in device.get("libraries", [])}
    wanted = {"cuDNN": "libcudnn.so.9 has no cudnnCreate", "cuBLASLt": "libcublasLt.so.13 has no cublasLtCreate"}
    return [f"devices says of {name}: {reasons.get(name)!r}" for name, words in wanted.items()
            if words not in reasons.get(name, "")]


def check_missing(machine, libraries, folder):
    """cuDNN would end the process where cuBLASLt is missing."""
    without = pathlib.Path(folder) / "without"
    shutil.copytree(libraries, without)
    for name in ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"):
        (without / name).write_text("not a library")
    lines = [json.loads(line) for line in Machine(machine.program, without, folder).run("devices", "--json").splitlines()]
    device = next(line for line in lines if line["device"] == "cuda")
    reason = next(library.get("reason", "") for library in device["libraries"] if library["name"] == "cuDNN")
    return [] if "needs cuBLASLt" in reason else [f"devices says of cuDNN without cuBLASLt: {reason!r}"]


def check_fault(machine):
    said = machine.say_of_a_fault("bench", "lenet5", "--device", "cuda", "--batch", 16, "--seconds", 0)
    return [] if said.startswith("2: ") and "must be started again" in said else [f"a fault of the GPU is told as: {said!r}"]


def main():
    program, libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(program, libraries, folder)
        wrong = (check_devices(machine) + check_steps(machine) + check_graphs(machine) + check_chain(machine) +
                 check_profile(machine) + check_missing(machine, libraries, folder) + check_fault(machine))
    print("\n".join(wrong) or f"a step of training: {MOST_OF_A_STEP}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
