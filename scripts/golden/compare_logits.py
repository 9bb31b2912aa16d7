"""Compares the logits of every model with PyTorch's: weights and inputs from the generator, on both sides.

Usage: compare_logits.py [--russet build/bin/russet] [--batch 2] [MODEL...]
Run it with the Python of scripts/golden/setup.sh. Exits with 1 if a difference exceeds 1e-4 of the largest logit.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

import reference_models

LIMIT = 1e-4
ROOT = pathlib.Path(__file__).resolve().parents[2]


def expected_logits(name, inputs, weights):
    """Writes the weights that the generator gives; answers what PyTorch makes of the inputs, in float64."""
    model = reference_models.build(name).eval()
    reference_models.fill(model)
    save_file({key: value.clone() for key, value in model.state_dict().items()}, weights)
    wide = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    with torch.no_grad():
        return reference_models.logits(model.double(), wide)


def compare(name, russet, batch, folder):
    weights, given, answer = (folder / f"{name}.{part}.safetensors" for part in ("weights", "input", "output"))
    inputs = reference_models.sample(name, batch)
    expected = expected_logits(name, inputs, weights)
    save_file(inputs, given)
    subprocess.run([russet, "predict", name, "--weights", weights, "--input", given, "--output", answer], check=True,
                   stdout=subprocess.DEVNULL)
    found = load_file(answer)["y"].double()
    if found.shape != expected.shape:
        raise SystemExit(f"{name}: the logits have shape {list(found.shape)}, not {list(expected.shape)}")
    largest = float(expected.abs().max())
    difference = float((found - expected).abs().max()) / largest
    for path in (weights, given, answer):
        path.unlink()
    return {"model": name, "batch": batch, "largest": largest, "difference": difference, "ok": difference <= LIMIT}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--russet", default=ROOT / "build" / "bin" / "russet")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(reference_models.MODELS))
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models or reference_models.MODELS:
            record = compare(name, arguments.russet, arguments.batch, pathlib.Path(folder))
            print(json.dumps(record), flush=True)
            failed |= not record["ok"]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
