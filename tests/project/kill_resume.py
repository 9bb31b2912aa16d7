#!/usr/bin/env python3
"""Kills a training run at seeded moments, resumes it each time, and compares what it leaves with a run that was never
killed, bit for bit: weights, best weights, checkpoint, and the log but for its times. The event files that all its
processes left hold whole records, and show what the log says.

usage: kill_resume.py RUSSET [KILLS] [SEED]
"""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

import event_files

EXACT = ["model.safetensors", "best.safetensors"]
TRAIN = ["lenet5", "--holdout", "0.2", "--batch", "8", "--dropout", "0.2", "--epochs", "8", "--checkpoint-every", "3",
         "--optimizer", "adam", "--lr", "0.002", "--warmup", "5", "--workers", "2"]


def write_data(path):
    """Bright bars in one of four directions on noise: x [n, 1, 12, 12] and y [n]."""
    chance = random.Random(1)
    count, side = 400, 12
    pixels, classes = [], []
    for sample in range(count):
        kind = sample % 4
        at = chance.randrange(3, 9)
        for row in range(side):
            for column in range(side):
                on = [row == at, column == at, row - column == at - 6, row + column == at + 5][kind]
                pixels.append(2.0 * on + chance.gauss(0, 0.5))
        classes.append(kind)
    data = struct.pack(f"<{len(pixels)}f", *pixels) + struct.pack(f"<{count}q", *classes)
    border = 4 * len(pixels)
    header = json.dumps({"x": {"dtype": "F32", "shape": [count, 1, side, side], "data_offsets": [0, border]},
                         "y": {"dtype": "I64", "shape": [count], "data_offsets": [border, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def start(russet, arguments):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen([russet, "train", *arguments], env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    _, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"the run ended with {process.returncode}: {errors}")


def arguments_for(folder):
    """A run that was killed before its first checkpoint starts anew."""
    if (folder / "checkpoint").exists():
        return ["--resume", str(folder), "--checkpoint-every", "3", *events_of(folder)]
    return [*TRAIN, *data_of(folder), "--out", str(folder), *events_of(folder)]


def event_folder(folder):
    return folder.parent / f"{folder.name}-events"


def events_of(folder):
    return ["--tensorboard", str(event_folder(folder))]


def data_of(folder):
    return ["--data", f"tensors:{folder.parent / 'data.safetensors'}"]


def kill_once(russet, folder, delay, in_checkpoint):
    """Kills the run after `delay` seconds, or as soon as a file is being written beside the checkpoint. True if the
    run had ended before."""
    process = start(russet, arguments_for(folder))
    deadline = time.monotonic() + delay
    while process.poll() is None:
        beside = in_checkpoint and folder.exists() and any(
            name.startswith((".checkpoint", "checkpoint")) and name != "checkpoint" for name in os.listdir(folder))
        if time.monotonic() > deadline and (beside or not in_checkpoint or time.monotonic() > deadline + 2):
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return False
        time.sleep(0.0005)
    finish(process)
    return True


def log_of(folder):
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("ms", None)
    return lines


def main():
    russet = sys.argv[1]
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    with tempfile.TemporaryDirectory() as scratch:
        whole = pathlib.Path(scratch) / "whole"
        write_data(whole.parent / "data.safetensors")
        began = time.monotonic()
        finish(start(russet, arguments_for(whole)))
        duration = time.monotonic() - began
        killed = pathlib.Path(scratch) / "killed"
        done = 0
        runs = 0
        while done < kills:
            # A run that ended counts for nothing: the next one is another, to the same end.
            if kill_once(russet, killed, chance.uniform(0, duration * 0.6), chance.random() < 0.4):
                compare(whole, killed)
                runs += 1
                for path in [*killed.iterdir(), *event_folder(killed).iterdir()]:
                    path.unlink()
            else:
                done += 1
        finish(start(russet, arguments_for(killed)))
        compare(whole, killed)
        left = sorted(path.name for path in killed.iterdir())
        expected = sorted(["best.safetensors", "checkpoint", "log.jsonl", "model.safetensors", "report.html"])
        if left != expected:
            sys.exit(f"the folder holds {left}, not {expected}")
        print(f"killed {done} times in {runs + 1} run(s): the same bits each time")


def compare(whole, killed):
    for name in EXACT:
        if (whole / name).read_bytes() != (killed / name).read_bytes():
            sys.exit(f"{name} differs")
    if log_of(whole) != log_of(killed):
        sys.exit("the log differs")
    compare_events(whole)
    compare_events(killed)


def compare_events(folder):
    """Events are float32."""
    log = log_of(folder)
    losses = {line["step"]: event_files.as_float32(line["loss"]) for line in log if "step" in line}
    accuracies = [event_files.as_float32(line["accuracy"]) for line in log if "epoch" in line]
    shown = event_files.read_folder(event_folder(folder))
    if shown["train/loss"] != losses:
        sys.exit(f"the event files of {folder.name} show other losses than the log")
    if list(shown["test/accuracy"].values()) != accuracies:
        sys.exit(f"the event files of {folder.name} show other accuracies than the log")


if __name__ == "__main__":
    main()
