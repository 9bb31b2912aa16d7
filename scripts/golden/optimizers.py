"""Golden values of optimizers, learning-rate schedules and gradient clipping.

Usage: optimizers.py OUTPUT_FOLDER     writes optimizers.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import pathlib
import sys
import warnings

import torch
from torch.optim import lr_scheduler as schedules

import generator

SEED = 77
STEPS = 10
SHAPES = [[3, 4], [5], [2, 1, 3], []]
# Gradient of parameter p at step t (from 0): offset 1000 + 10 t + p. Parameter p itself: offset p.
OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
# (optimizer, options of the first group: parameters 0 and 1, options of the second group: parameters 2 and 3)
CASES = [
    ("sgd", {"lr": 0.1}, {}),
    ("sgd", {"lr": 0.1, "momentum": 0.9}, {}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, {}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.05}, {}),
    ("sgd", {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.05, "nesterov": True}, {"lr": 0.02, "weight_decay": 0.0}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}, {"momentum": 0.0, "dampening": 0.0}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "maximize": True}, {}),
    ("adam", {}, {}),
    ("adam", {"lr": 0.01}, {"lr": 0.1}),
    ("adam", {"lr": 0.01, "betas": [0.8, 0.95], "eps": 1e-4}, {}),
    ("adam", {"lr": 0.01, "weight_decay": 0.1}, {"weight_decay": 0.0}),
    ("adam", {"lr": 0.01, "amsgrad": True}, {}),
    ("adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}, {"betas": [0.5, 0.9]}),
    ("adamw", {}, {}),
    ("adamw", {"lr": 0.01}, {"weight_decay": 0.0}),
    ("adamw", {"lr": 0.01, "weight_decay": 0.3, "betas": [0.8, 0.95], "eps": 1e-5}, {}),
    ("adamw", {"lr": 0.01, "amsgrad": True}, {"lr": 0.002}),
    ("adamw", {"lr": 0.01, "maximize": True}, {}),
]
# (schedule, options); the base rate is 0.1 in the first group and 0.01 in the second.
SCHEDULES = [
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 4, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [3, 10, 20]}),
    ("MultiStepLR", {"milestones": [5, 6], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 30}),
    ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.001}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 8}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 12}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 6}),
    ("PolynomialLR", {"total_iters": 25, "power": 2.0}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 31}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 31, "pct_start": 0.2, "anneal_strategy": "linear"}),
    ("CosineAnnealingWarmRestarts", {"T_0": 6, "T_mult": 2}),
]


def floats(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().double().flatten().tolist()]


def parameters():
    made = []
    for index, shape in enumerate(SHAPES):
        made.append(torch.from_numpy(generator.real(SEED, index, shape)).double().requires_grad_())
    return made


def set_gradients(made, step):
    for index, parameter in enumerate(made):
        values = generator.real(SEED, 1000 + 10 * step + index, SHAPES[index])
        parameter.grad = torch.from_numpy(values).double()


def optimizer_record(name, first, second):
    made = parameters()
    optimizer = OPTIMIZERS[name]([{"params": made[:2]}, {"params": made[2:], **second}], **first)
    values = []
    for step in range(STEPS):
        set_gradients(made, step)
        optimizer.step()
        values.append([floats(p) for p in made] if step in (0, 4, 9) else [])
    return {"optimizer": name, "options": first, "second": second, "values": values}


def schedule_record(name, options):
    made = parameters()
    optimizer = torch.optim.SGD([{"params": made[:2], "lr": 0.1}, {"params": made[2:], "lr": 0.01}], lr=0.1)
    schedule = getattr(schedules, name)(optimizer, **options)
    rates = []
    for _ in range(30):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    return {"schedule": name, "options": options, "rates": rates}


def warmup_record():
    """Linear warmup of five steps, then a cosine over the 25 others."""
    made = parameters()
    optimizer = torch.optim.SGD(made, lr=0.1)
    warm = schedules.LinearLR(optimizer, start_factor=0.2, total_iters=5)
    cosine = schedules.CosineAnnealingLR(optimizer, T_max=25)
    schedule = schedules.SequentialLR(optimizer, [warm, cosine], milestones=[5])
    rates = []
    for _ in range(30):
        rates.append([optimizer.param_groups[0]["lr"]])
        optimizer.step()
        schedule.step()
    return {"schedule": "SequentialLR", "options": {"warmup": 5, "start_factor": 0.2, "T_max": 25}, "rates": rates}


def clip_record(kind, limit, power):
    made = parameters()
    set_gradients(made, 0)
    record = {"clip": kind, "limit": limit, "power": "inf" if power == float("inf") else power}
    if kind == "norm":
        record["total"] = float(torch.nn.utils.clip_grad_norm_(made, limit, norm_type=power))
    else:
        torch.nn.utils.clip_grad_value_(made, limit)
    record["gradients"] = [floats(p.grad) for p in made]
    return record


def main():
    warnings.simplefilter("ignore")
    clips = [("norm", 1.0, 2.0), ("norm", 100.0, 2.0), ("norm", 0.5, 1.0), ("norm", 0.25, float("inf")),
             ("value", 0.3, 0.0)]
    answer = {
        "seed": SEED,
        "shapes": SHAPES,
        "optimizers": [optimizer_record(*case) for case in CASES],
        "schedules": [schedule_record(*case) for case in SCHEDULES] + [warmup_record()],
        "clips": [clip_record(*case) for case in clips],
    }
    path = pathlib.Path(sys.argv[1]) / "optimizers.json.gz"
    path.write_bytes(gzip.compress(json.dumps(answer, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
