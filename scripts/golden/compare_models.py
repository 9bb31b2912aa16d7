"""Compares every model with PyTorch's, on weights and inputs from the generator: the logits of `russet predict`, and the
gradients of one step of training. russet computes in float32, PyTorch in float64.

Usage: compare_models.py [--build build] [MODEL...]
Run it with the Python of scripts/golden/setup.sh, once the command line and golden_training_step are built. Exits with 1
if logits differ by more than 1e-4 of the largest, or a gradient by more than 1e-3 of its norm.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import reference_models
import simclr
from table import row

LOGITS_LIMIT = 1e-4
GRADIENT_LIMIT = 1e-3
# A gradient that is zero but for rounding (of a bias before a norm, of a key's bias) has no relative error: below this
# share of the largest gradient's norm, it counts against this share.
LEAST_NORM = 1e-3
LOGITS_BATCH = 2
TEMPERATURE = 0.5
ROOT = pathlib.Path(__file__).resolve().parents[2]


def widened(tensors):
    return {key: value.double() if value.is_floating_point() else value for key, value in tensors.items()}


def save(tensors, path):
    save_file({key: value.detach().clone() for key, value in tensors.items()}, path)


def filled(name, image_size=None):
    model = reference_models.build(name, image_size)
    reference_models.fill(model, ranges=reference_models.ranges(name, model.state_dict()))
    return model


class Comparison:
    def __init__(self, name, build, folder):
        self.name, self.build, self.folder = name, build, folder

    def path(self, part):
        return self.folder / f"{self.name}.{part}.safetensors"

    def run(self, *command):
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)

    def logits(self):
        model, inputs = filled(self.name).eval(), reference_models.sample(self.name, LOGITS_BATCH)
        save(model.state_dict(), self.path("weights"))
        save(inputs, self.path("inputs"))
        with torch.no_grad():
            expected = reference_models.logits(model.double(), widened(inputs))
        self.run(self.build / "bin/russet", "predict", self.name, "--weights", self.path("weights"), "--input",
                 self.path("inputs"), "--output", self.path("outputs"))
        found = load_file(self.path("outputs"))["y"].double()
        if found.shape != expected.shape:
            raise SystemExit(f"{self.name}: the logits are {list(found.shape)}, not {list(expected.shape)}")
        largest = float(expected.abs().max())
        difference = float((found - expected).abs().max()) / largest
        return row(f"{self.name}: logits", difference, LOGITS_LIMIT, f"the largest is {largest:.3g}")

    def step(self, model, inputs):
        """PyTorch's loss and gradients, in the model's type."""
        given = dict(inputs)
        labels = given.pop("labels", None)
        outputs = reference_models.logits(model, given)
        loss = simclr.nt_xent(outputs, TEMPERATURE) if labels is None else F.cross_entropy(outputs.flatten(0, -2), labels.flatten())
        loss.backward()
        return loss.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}

    def gradients(self):
        image_size, batch = reference_models.STEPS[self.name]
        model = reference_models.without_dropout(filled(self.name, image_size)).train()
        inputs = reference_models.step_sample(model, self.name, batch, image_size)
        if self.name != "simclr_resnet18":
            inputs["labels"] = reference_models.labels(self.name, batch)
        save(model.state_dict(), self.path("weights"))
        save(inputs, self.path("inputs"))
        loss, expected = self.step(model.double(), widened(inputs))
        self.run(self.build / "tests/golden_training_step", self.name, self.path("weights"), self.path("inputs"),
                 self.path("outputs"))
        found = load_file(self.path("outputs"))
        found_loss = float(found.pop("loss"))
        if missing := set(expected) ^ set(found):
            raise SystemExit(f"{self.name}: only one side has a gradient of {', '.join(sorted(missing))}")
        difference, worst = farthest(found, expected)
        holds = row(f"{self.name}: loss of a step", abs(found_loss - float(loss)) / abs(float(loss)), LOGITS_LIMIT,
                    f"loss {float(loss):.4f}, batch {batch}" + (f", {image_size} pixels" if image_size else ""))
        return row(f"{self.name}: gradients of a step", difference, GRADIENT_LIMIT, f"worst of {worst}") and holds


def farthest(found, expected):
    """The largest difference of a gradient, relative to its norm, and its name."""
    norms = {name: float(gradient.norm()) for name, gradient in expected.items()}
    floor = LEAST_NORM * max(norms.values())
    distances = {name: float((found[name].double() - gradient).norm()) / max(norms[name], floor)
                 for name, gradient in expected.items()}
    worst = max(distances, key=distances.get)
    return distances[worst], worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(reference_models.MODELS))
    arguments = parser.parse_args()
    holds = True
    for name in arguments.models or reference_models.MODELS:
        with tempfile.TemporaryDirectory() as folder:
            comparison = Comparison(name, arguments.build, pathlib.Path(folder))
            holds &= comparison.logits()
            holds &= comparison.gradients()
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
