"""Golden values of MixUp and CutMix: what torchvision makes of batches by given random numbers.

Usage: mixing.py OUTPUT_FOLDER     writes mixing.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import pathlib
import sys
from types import SimpleNamespace
from unittest import mock

import torch
from torchvision.transforms import v2

import generator

SEED = 21
CLASSES = 4
# [rows, channels, height, width]
BATCHES = [[4, 3, 6, 5], [1, 2, 3, 3], [2, 1, 7, 8]]


def batch(offset, shape):
    images = torch.from_numpy(generator.real(SEED, 2 * offset, shape))
    return images, torch.from_numpy(generator.integer(SEED, 2 * offset + 1, shape[:1], 0, CLASSES))


def mixed(transform, share, images, labels, place=()):
    """The transform's result where its draws are these."""
    transform._dist = SimpleNamespace(sample=lambda shape: torch.tensor(share, dtype=torch.float64))
    draws = [torch.tensor([number]) for number in place]
    with mock.patch("torch.randint", side_effect=draws):
        return transform(images, labels)


def records():
    for offset, shape in enumerate(BATCHES):
        _, _, height, width = shape
        images, labels = batch(offset, shape)
        cases = [("mixup", v2.MixUp, share, ()) for share in (0.0, 0.3, 0.8125, 1.0)]
        cases += [("cutmix", v2.CutMix, share, place) for share in (0.0, 0.2, 0.7, 0.99, 1.0)
                  for place in ((0, 0), (width // 2, height // 2), (width - 1, height - 1))]
        for name, make, share, place in cases:
            inputs, targets = mixed(make(num_classes=CLASSES), share, images.clone(), labels, place)
            yield {"name": name, "offset": offset, "shape": shape, "share": share, "place": place,
                   "inputs": inputs.double().flatten().tolist(), "targets": targets.double().flatten().tolist()}


def main():
    path = pathlib.Path(sys.argv[1]) / "mixing.json.gz"
    record = {"seed": SEED, "classes": CLASSES, "cases": list(records())}
    path.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
