"""Golden values of a training that catches the errors of bad batches and goes on.

Usage: faults.py OUTPUT_FOLDER     writes faults.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

import generator

SEED = 23
STEPS = 30
BATCH, WIDTH, HIDDEN, CLASSES = 6, 5, 8, 3
# What is wrong with a step, and the operator that says so: nothing; a label, the loss; the number of a sample, the
# selection before the network; too few columns, its first layer.
FAULTS = ["none", "label", "none", "index", "none", "none", "shape", "label", "label", "none"]


def network():
    body = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN), torch.nn.BatchNorm1d(HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))
    with torch.no_grad():
        for offset, parameter in enumerate(body.parameters()):
            parameter.copy_(torch.from_numpy(generator.real(SEED, offset, list(parameter.shape), -0.5, 0.5)))
    return body.double()


def take_step(body, optimizer, step, fault):
    optimizer.zero_grad()
    x = torch.from_numpy(generator.real(SEED, 1000 + step, [BATCH, WIDTH])).double()
    labels = torch.from_numpy(generator.integer(SEED, 2000 + step, [BATCH], 0, CLASSES))
    if fault == "label":
        labels[step % BATCH] = 7
    if fault == "index":
        x = torch.index_select(x, 0, torch.tensor([0, 1, 2, 3, 4, BATCH]))
    if fault == "shape":
        x = x[:, :-1]
    F.cross_entropy(body(x), labels).backward()
    optimizer.step()


def train(make_optimizer):
    body = network()
    optimizer = make_optimizer(body.parameters())
    caught = 0
    for step in range(STEPS):
        try:
            take_step(body, optimizer, step, FAULTS[step % len(FAULTS)])
        except (IndexError, RuntimeError):
            caught += 1
    assert caught == STEPS // len(FAULTS) * sum(fault != "none" for fault in FAULTS)
    return [[name, list(value.shape), value.double().flatten().tolist()] for name, value in body.state_dict().items()]


def main():
    record = {
        "seed": SEED, "steps": STEPS, "faults": FAULTS, "sizes": [BATCH, WIDTH, HIDDEN, CLASSES],
        "sgd": train(lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
        "adam": train(lambda p: torch.optim.Adam(p, lr=0.01)),
    }
    path = pathlib.Path(sys.argv[1]) / "faults.json.gz"
    path.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
