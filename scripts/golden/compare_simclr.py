"""Compares SimCLR's parts with torchvision and PyTorch: the pixels of augmentations with given and with drawn numbers, and
NT-Xent with its gradient.

Usage: compare_simclr.py [--build build] [--draws 50]
Run it with the Python of scripts/golden/setup.sh, once golden_simclr_test is built: the values are made anew, and the test
reads them. Exits with 1 if a level differs (of a blur: by more than 1), the loss by more than 1e-5, its gradient by more
than 1e-3 of its norm, or anything else that the test asks for.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import simclr
from table import row

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_test(program, folder):
    """Whether the test passed, and what it recorded."""
    results = pathlib.Path(folder) / "results.json"
    done = subprocess.run([program, f"--gtest_output=json:{results}"], env=os.environ | {"RUSSET_TEST_GOLDEN": folder},
                          capture_output=True, text=True)
    if not results.exists():
        raise SystemExit(f"{program} failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    if done.returncode != 0:
        print(done.stdout[-3000:])
    recorded = {}
    for suite in json.loads(results.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            recorded |= test
    return done.returncode == 0, recorded


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--draws", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        simclr.write(folder, arguments.draws)
        passed, found = run_test(arguments.build / "tests/golden_simclr_test", folder)
    far = float("inf")  # where the test ended before it recorded anything
    holds = [row("SimCLR: pixels, in levels", float(found.get("levels", far)), 0, f"{found.get('changes')} changes"),
             row("SimCLR: pixels of blurs, in levels", float(found.get("levels_of_blurs", far)), 1),
             row("SimCLR: NT-Xent, loss", float(found.get("loss", far)), 1e-5),
             row("SimCLR: NT-Xent, gradient", float(found.get("gradient", far)), 1e-3)]
    return 0 if passed and all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
