"""Golden values of models of images: logits, and the gradients of one step, at an eighth of the width.

Usage: models.py OUTPUT_FOLDER     writes models.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import efficientnet

import generator
import reference_models

SEED = 17
CLASSES = 10
WIDTH = 0.125
PROJECTIONS = 4
# Height and width, images in a batch. Where batch norms see few numbers, float32 says little about gradients.
CASES = {"alexnet": (96, 2), "vgg16": (64, 2), "efficientnet_b0": (96, 8), "efficientnet_b4": (96, 8),
         "convmixer_768_32": (56, 2), "simclr_resnet18": (32, 8)}


def scaled(width):
    return max(round(WIDTH * width), 1)


def narrowed_layer(layer, is_first, is_last):
    """A layer without its weights, between narrower ones."""
    if isinstance(layer, nn.BatchNorm2d):
        return nn.BatchNorm2d(scaled(layer.num_features), eps=layer.eps, momentum=layer.momentum)
    if isinstance(layer, nn.Linear):
        return nn.Linear(scaled(layer.in_features), CLASSES if is_last else scaled(layer.out_features))
    inputs = layer.in_channels if is_first else scaled(layer.in_channels)
    return nn.Conv2d(inputs, scaled(layer.out_channels), layer.kernel_size, layer.stride, layer.padding,
                     groups=1 if layer.groups == 1 else scaled(layer.groups), bias=layer.bias is not None)


def narrowed(name):
    """The library's model with layers of an eighth of their widths. EfficientNets know how to do that."""
    if name.startswith("efficientnet"):
        factors = {"efficientnet_b0": (1.0, 1.0), "efficientnet_b4": (1.4, 1.8)}[name]
        stages, _ = efficientnet._efficientnet_conf(name, width_mult=WIDTH * factors[0], depth_mult=factors[1])
        return efficientnet.EfficientNet(stages, 0.0, 0.0, num_classes=CLASSES)
    model = reference_models.build(name)
    layers = [(n, m) for n, m in model.named_modules() if isinstance(m, (nn.Conv2d, nn.Linear, nn.BatchNorm2d))]
    for at, (path, layer) in enumerate(layers):
        model.set_submodule(path, narrowed_layer(layer, at == 0, at == len(layers) - 1))
    return reference_models.without_dropout(model)


def projections(index, gradient):
    """Inner products with vectors of random numbers of variance 1: those of a difference are as large as its norm."""
    flat = gradient.double().flatten().numpy()
    return [float(flat @ ((generator.uniform(SEED, 100_000 + PROJECTIONS * index + k, flat.size) - 0.5) * math.sqrt(12)))
            for k in range(PROJECTIONS)]


def answers(model, x, labels):
    """Logits in evaluation, and gradients in training."""
    model.eval()
    with torch.no_grad():
        logits = model(x)
    model.train()
    F.cross_entropy(model(x), labels).backward()
    gradients = [[name, float(p.grad.double().norm()), projections(index, p.grad)]
                 for index, (name, p) in enumerate(model.named_parameters())]
    return logits.double().flatten().tolist(), gradients


def record(name):
    """In float64 (the golden values) and float32 (how much of them float32 can say)."""
    size, batch = CASES[name]
    found = {}
    for kind in (torch.float64, torch.float32):
        model = narrowed(name)
        state = reference_models.fill(model, SEED, reference_models.ranges(name, model.state_dict()))
        x = torch.from_numpy(generator.real(SEED, 1_000_000, [batch, 3, size, size], -1.7, 1.7)).to(kind)
        labels = torch.from_numpy(generator.integer(SEED, 2_000_000, [batch], 0, CLASSES))
        found[kind] = answers(model.to(kind), x, labels)
    (logits, gradients), (narrow_logits, narrow_gradients) = found[torch.float64], found[torch.float32]
    spread = max(abs(a - b) for a, b in zip(logits, narrow_logits)) / max(map(abs, logits))
    largest = max(norm for _, norm, _ in gradients)
    slack = max(math.dist(a[2], b[2]) / math.sqrt(PROJECTIONS) / max(a[1], 1e-3 * largest)
                for a, b in zip(gradients, narrow_gradients))
    print(f"{name}: logits to {max(map(abs, logits)):.3g}; float32 differs by {spread:.2g}, gradients by {slack:.2g}")
    return {"model": name, "seed": SEED, "width": WIDTH, "image_size": size, "batch": batch, "classes": CLASSES,
            "state": state, "logits": logits, "gradients": gradients}


def main():
    path = pathlib.Path(sys.argv[1]) / "models.json.gz"
    text = json.dumps([record(name) for name in CASES], separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
