#!/usr/bin/env python3
"""train_fp16.py RUSSET: LeNet-5 learns MNIST in float16, with scaled gradients, to 97 % of what it was not trained on.

MNIST's files lie where RUSSET_DATA says; without them this is skipped.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

EPOCHS = 8  # of the 9,000 of MNIST's 10,000 test images that are not held out
ACCURACY = 0.97


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("russet")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    data = os.environ.get("RUSSET_DATA", "")
    if not data:
        print("RUSSET_DATA is not set: it names a folder with MNIST's files")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        subprocess.run([arguments.russet, "train", "lenet5", "--data", f"mnist:{data}", "--holdout", "0.1",
                        "--precision", "fp16", "--device", arguments.device, "--epochs", str(EPOCHS), "--out", str(out)],
                       check=True)
        lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        accuracy = [line["accuracy"] for line in lines if "epoch" in line][-1]
    if accuracy < ACCURACY:
        sys.exit(f"lenet5 in float16 reached {accuracy:.4f} in {EPOCHS} epochs, not {ACCURACY}")
    print(f"lenet5 in float16: {accuracy:.4f} in {EPOCHS} epochs")


if __name__ == "__main__":
    main()
