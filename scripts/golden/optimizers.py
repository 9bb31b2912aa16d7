"""Golden values of optimizers, learning-rate schedules, averaged models and gradient clipping.

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
MATRICES = [[3, 4], [5, 2], [4, 4], [2, 6]]  # for Muon
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
    ("adam", {"lr": 0.01, "weight_decay": 0.2, "decoupled_weight_decay": True}, {}),
    ("adadelta", {}, {}),
    ("adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}, {"weight_decay": 0.0}),
    ("adadelta", {"maximize": True}, {"rho": 0.95}),
    ("adafactor", {}, {}),
    ("adafactor", {"lr": 0.3, "beta2_decay": -0.5, "d": 1.5, "weight_decay": 0.1}, {"eps": [1e-3, 0.1]}),
    ("adafactor", {"lr": 0.1, "eps": [1e-4, 1e-2], "maximize": True}, {"lr": 1.0}),
    ("adagrad", {}, {}),
    ("adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}, {"lr_decay": 0.0}),
    ("adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True}, {}),
    ("adamax", {}, {}),
    ("adamax", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-3, "weight_decay": 0.1}, {"betas": [0.5, 0.9]}),
    ("adamax", {"lr": 0.05, "maximize": True}, {"lr": 0.1}),
    ("asgd", {}, {}),
    ("asgd", {"lr": 0.1, "lambd": 0.05, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}, {"lambd": 0.01}),
    ("asgd", {"lr": 0.1, "t0": 0, "maximize": True}, {"alpha": 1.0}),
    ("lars", {"lr": 10.0}, {}),
    ("lars", {"lr": 10.0, "weight_decay": 0.1, "trust_coefficient": 0.01}, {"momentum": 0.0}),
    ("lars", {"lr": 10.0, "weight_decay": 0.1, "nesterov": True, "maximize": True}, {"exclude_bias_and_norm": False}),
    ("muon", {"lr": 0.02}, {}),
    ("muon", {"lr": 0.02, "momentum": 0.8, "nesterov": False, "weight_decay": 0.0}, {"ns_steps": 3}),
    ("muon", {"lr": 0.02, "adjust_lr_fn": "match_rms_adamw"}, {"ns_coefficients": [2.0, -1.5, 0.5]}),
    ("nadam", {}, {}),
    ("nadam", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.1}, {"momentum_decay": 0.1}),
    ("nadam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True}, {}),
    ("radam", {}, {}),
    ("radam", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.1}, {"betas": [0.5, 0.7]}),
    ("radam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True}, {}),
    ("rmsprop", {}, {}),
    ("rmsprop", {"lr": 0.05, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1}, {"momentum": 0.9}),
    ("rmsprop", {"lr": 0.05, "centered": True, "momentum": 0.5, "maximize": True}, {"momentum": 0.0}),
    ("rprop", {}, {}),
    ("rprop", {"lr": 0.1, "etas": [0.3, 1.5], "step_sizes": [0.01, 0.2]}, {"lr": 0.05}),
    ("rprop", {"lr": 0.1, "maximize": True}, {}),
]
LBFGS_CASES = [
    {"lr": 0.5, "max_iter": 4},
    {"lr": 1.0, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "max_iter": 5},
    {"line_search_fn": "strong_wolfe", "max_iter": 25, "max_eval": 9, "history_size": 3, "lr": 3.0},
    {"line_search_fn": "strong_wolfe", "lr": 20.0, "max_iter": 8},
]
SCALED_STEPS = 30
# Step to parameter and what the first element of its gradient is.
PLANTED = {0: (0, "inf"), 3: (1, "nan"), 4: (2, "-inf"), 17: (3, "inf")}
SCALERS = [{"init_scale": 1024.0, "growth_interval": 4},
           {"init_scale": 300.0, "growth_factor": 1.5, "backoff_factor": 0.3, "growth_interval": 3}]
# (schedule, options, optimizer, rates set by hand: epoch to rate of the first group); the base rate is 0.1 in the first
# group and 0.01 in the second.
WARM = ["LinearLR", {"start_factor": 0.2, "total_iters": 5}]
COSINE = ["CosineAnnealingLR", {"T_max": 25}]
SCHEDULES = [
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 4, "gamma": 0.5}, "sgd", {13: 0.7}),
    ("MultiStepLR", {"milestones": [3, 10, 20]}),
    ("MultiStepLR", {"milestones": [5, 6, 6], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 30}),
    ("CosineAnnealingLR", {"T_max": 9, "eta_min": 0.001}),
    ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.002}, "sgd", {5: 0.3}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 8}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 12}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 6}),
    ("ConstantLR", {}),
    ("PolynomialLR", {"total_iters": 25, "power": 2.0}),
    ("PolynomialLR", {}),
    ("LambdaLR", {"lr_lambda": "inverse"}),
    ("LambdaLR", {"lr_lambda": ["inverse", "alternating"]}),
    ("MultiplicativeLR", {"lr_lambda": "alternating"}, "sgd", {9: 0.4}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 6}),
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": [0.2, 0.5], "step_size_up": 4, "step_size_down": 7,
                  "mode": "triangular2", "base_momentum": 0.7}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5, "mode": "exp_range", "gamma": 0.97}, "adam"),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5, "scale_fn": "inverse",
                  "scale_mode": "iterations", "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 41}),
    ("OneCycleLR", {"max_lr": 0.4, "total_steps": 41, "pct_start": 0.2, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": [0.4, 0.1], "epochs": 4, "steps_per_epoch": 10, "three_phase": True,
                    "base_momentum": [0.7, 0.8], "max_momentum": 0.9, "div_factor": 10.0}, "adam"),
    ("CosineAnnealingWarmRestarts", {"T_0": 6, "T_mult": 2}),
    ("CosineAnnealingWarmRestarts", {"T_0": 7, "eta_min": 0.003}),
    ("SWALR", {"swa_lr": 0.05}),
    ("SWALR", {"swa_lr": [0.05, 0.2], "anneal_epochs": 6, "anneal_strategy": "linear"}, "sgd", {3: 0.5}),
    ("SWALR", {"swa_lr": 0.3, "anneal_epochs": 0}),
    ("SequentialLR", {"schedules": [WARM, COSINE], "milestones": [5]}),
    ("SequentialLR", {"schedules": [["ConstantLR", {"factor": 0.1, "total_iters": 4}],
                                    ["ExponentialLR", {"gamma": 0.9}],
                                    ["SWALR", {"swa_lr": 0.02, "anneal_epochs": 5}]], "milestones": [6, 20]}),
    ("ChainedScheduler", {"schedules": [["ConstantLR", {"factor": 0.1, "total_iters": 20}],
                                        ["ExponentialLR", {"gamma": 0.9}]]}),
    ("ChainedScheduler", {"schedules": [WARM, ["CosineAnnealingLR", {"T_max": 10, "eta_min": 0.004}]]}),
    ("ReduceLROnPlateau", {"patience": 2}),
    ("ReduceLROnPlateau", {"mode": "max", "factor": 0.5, "patience": 1, "threshold": 0.05, "threshold_mode": "abs",
                           "cooldown": 3, "min_lr": [0.03, 1e-4]}),
    ("ReduceLROnPlateau", {"factor": 0.3, "patience": 0, "threshold": 0.2, "min_lr": 1e-5}),
]
FUNCTIONS = {"inverse": lambda epoch: 1 / (1 + epoch / 4), "alternating": lambda epoch: 0.8 if epoch % 2 else 1.1}
EPOCHS = 40
# (schedule, options, epochs to go to)
JUMPS = [
    ("StepLR", {"step_size": 4}, [9, 2, 0]),
    ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.001}, [7, 31, 3]),
    ("LinearLR", {"total_iters": 8}, [4, 20, 1]),
    ("CosineAnnealingWarmRestarts", {"T_0": 6, "T_mult": 2}, [0.5, 7.25, 18, 17.5, 3]),
]


class LARS(torch.optim.Optimizer):
    """The update of You, Gitman and Ginsburg (2017), with the learning rate inside the momentum, as in SimCLR."""

    def __init__(self, params, lr=0.3, momentum=0.9, weight_decay=0.0, trust_coefficient=1e-3, nesterov=False,
                 exclude_bias_and_norm=True, maximize=False):
        names = ("lr", "momentum", "weight_decay", "trust_coefficient", "nesterov", "exclude_bias_and_norm", "maximize")
        given = locals()
        super().__init__(params, {name: given[name] for name in names})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state.setdefault(p, {})
                g = -p.grad if group["maximize"] else p.grad
                rate = group["lr"]
                if p.dim() > 1 or not group["exclude_bias_and_norm"]:
                    g = g + group["weight_decay"] * p
                    sizes = [float(p.norm()), float(g.norm())]
                    rate *= group["trust_coefficient"] * sizes[0] / sizes[1] if min(sizes) > 0 else 1
                velocity = group["momentum"] * state.get("velocity", 0) + rate * g
                state["velocity"] = velocity
                p -= group["momentum"] * velocity + rate * g if group["nesterov"] else velocity


OPTIMIZERS = {name.lower(): getattr(torch.optim, name) for name in torch.optim.__all__ if name != "Optimizer"}
OPTIMIZERS["lars"] = LARS


def floats(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().double().flatten().tolist()]


def parameters(shapes=SHAPES):
    made = []
    for index, shape in enumerate(shapes):
        made.append(torch.from_numpy(generator.real(SEED, index, shape)).double().requires_grad_())
    return made


def set_gradients(made, step):
    for index, parameter in enumerate(made):
        values = generator.real(SEED, 1000 + 10 * step + index, list(parameter.shape))
        parameter.grad = torch.from_numpy(values).double()


def optimizer_record(name, first, second):
    made = parameters(MATRICES if name == "muon" else SHAPES)
    optimizer = OPTIMIZERS[name]([{"params": made[:2]}, {"params": made[2:], **second}], **first)
    values = []
    for step in range(STEPS):
        set_gradients(made, step)
        optimizer.step()
        values.append([floats(p) for p in made] if step in (0, 4, 9) else [])
    return {"optimizer": name, "options": first, "second": second, "values": values}


def scaled_record(name, first, second, scaler_options):
    """Steps of losses sum(p g), scaled, with infinities and NaNs in some g, two skipped steps in a row among them."""
    made = parameters(MATRICES if name == "muon" else SHAPES)
    optimizer = OPTIMIZERS[name]([{"params": made[:2]}, {"params": made[2:], **second}], **first)
    scaler = torch.amp.GradScaler("cpu", **scaler_options)
    values, scales, trackers = [], [], []
    for step in range(SCALED_STEPS):
        set_gradients(made, step)
        gradients = [p.grad for p in made]
        optimizer.zero_grad()
        if step in PLANTED:
            which, number = PLANTED[step]
            gradients[which].view(-1)[0] = float(number)
        scaler.scale(sum((p * g).sum() for p, g in zip(made, gradients))).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        trackers.append(scaler.state_dict()["_growth_tracker"])
        values.append([floats(p) for p in made] if step in (0, 5, 14, 29) else [])
    return {"optimizer": name, "options": first, "second": second, "scaler": scaler_options, "values": values,
            "scales": scales, "trackers": trackers}


def lbfgs_record(options):
    """Fits tanh(x w^T + b) to y, with a quartic penalty: three steps of several iterations."""
    w, b = (torch.from_numpy(generator.real(SEED, 50 + i, shape)).double().requires_grad_()
            for i, shape in enumerate([[3, 4], [3]]))
    x, y = (torch.from_numpy(generator.real(SEED, 52 + i, shape)).double() for i, shape in enumerate([[8, 4], [8, 3]]))
    optimizer = torch.optim.LBFGS([w, b], **options)

    def closure():
        optimizer.zero_grad()
        loss = ((torch.tanh(x @ w.T + b) - y) ** 2).mean() + 0.01 * (w ** 4).sum()
        loss.backward()
        return loss

    losses, values = [], []
    for _ in range(3):
        losses.append(float(optimizer.step(closure)))
        values.append([floats(w), floats(b)])
    state = optimizer.state[w]
    return {"options": options, "losses": losses, "values": values, "n_iter": state["n_iter"],
            "func_evals": state["func_evals"]}


def schedule_of(name, options, optimizer):
    options = dict(options)
    for key in ("lr_lambda", "scale_fn"):
        if key in options:
            word = options[key]
            options[key] = [FUNCTIONS[w] for w in word] if isinstance(word, list) else FUNCTIONS[word]
    if "schedules" in options:
        inner = [schedule_of(*schedule, optimizer) for schedule in options.pop("schedules")]
        if name == "ChainedScheduler":
            return schedules.ChainedScheduler(inner)
        return schedules.SequentialLR(optimizer, inner, **options)
    return getattr(torch.optim.swa_utils if name == "SWALR" else schedules, name)(optimizer, **options)


def scheduled(name, options, kind):
    made = parameters()
    groups = [{"params": made[:2], "lr": 0.1}, {"params": made[2:], "lr": 0.01}]
    optimizer = OPTIMIZERS[kind](groups, **({"momentum": 0.5} if kind == "sgd" else {}))
    return optimizer, schedule_of(name, options, optimizer)


def metric_at(epoch):
    """Falls, stays, and rises again."""
    return 1 / (1 + min(epoch, 9)) + (0.02 * (epoch - 25) if epoch > 25 else 0)


def schedule_record(name, options, kind="sgd", by_hand={}):
    optimizer, schedule = scheduled(name, options, kind)
    rates, momenta, metrics = [], [], []
    for epoch in range(EPOCHS):
        if epoch in by_hand:
            optimizer.param_groups[0]["lr"] = by_hand[epoch]
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.append([group["momentum"] if kind == "sgd" else group["betas"][0] for group in optimizer.param_groups])
        optimizer.step()
        if name == "ReduceLROnPlateau":
            metrics.append(metric_at(epoch))
            schedule.step(metrics[-1])
        else:
            schedule.step()
    return {"schedule": name, "options": options, "optimizer": kind, "by_hand": sorted(by_hand.items()),
            "rates": rates, "momenta": momenta, "metrics": metrics}


def jump_record(name, options, epochs):
    optimizer, schedule = scheduled(name, options, "sgd")
    rates = []
    for epoch in epochs:
        schedule.step(epoch)
        rates.append([group["lr"] for group in optimizer.param_groups])
    return {"schedule": name, "options": options, "epochs": epochs, "rates": rates}


def drawn(model, offset):
    """Draws all that a model holds, but for counters."""
    with torch.no_grad():
        for index, (name, tensor) in enumerate(model.state_dict().items()):
            if tensor.is_floating_point():
                low = 0.5 if name.endswith("running_var") else -1
                tensor.copy_(torch.from_numpy(generator.real(SEED, offset + index, list(tensor.shape), low, 1)))


def averaged_record(kind, use_buffers):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    drawn(model, 60)
    swa = torch.optim.swa_utils
    options = {
        "default": {},
        "swa": {"avg_fn": swa.get_swa_avg_fn()},
        "ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    }[kind]
    averaged = swa.AveragedModel(model, use_buffers=use_buffers, **options)
    for step in range(4):
        drawn(model, 70 + 10 * step)
        averaged.update_parameters(model)
    record = {"averaged": kind, "use_buffers": use_buffers}
    record["state"] = {name: floats(tensor) for name, tensor in averaged.state_dict().items()}
    batches = [torch.from_numpy(generator.real(SEED, 200 + i, [6, 4])).double() for i in range(3)]
    swa.update_bn(batches, averaged)
    record["updated"] = {name: floats(tensor) for name, tensor in averaged.named_buffers()}
    return record


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
    torch.set_default_dtype(torch.float64)  # of the numbers that optimizers keep, too
    clips = [("norm", 1.0, 2.0), ("norm", 100.0, 2.0), ("norm", 0.5, 1.0), ("norm", 0.25, float("inf")),
             ("value", 0.3, 0.0)]
    answer = {
        "seed": SEED,
        "shapes": SHAPES,
        "optimizers": [optimizer_record(*case) for case in CASES],
        "matrices": MATRICES,
        "planted": [[step, which, number] for step, (which, number) in PLANTED.items()],
        "scaled": [scaled_record(*case, SCALERS[i % 2]) for i, case in enumerate(CASES)],
        "lbfgs": [lbfgs_record(case) for case in LBFGS_CASES],
        "schedules": [schedule_record(*case) for case in SCHEDULES],
        "jumps": [jump_record(*case) for case in JUMPS],
        "averaged": [averaged_record(kind, use) for kind in ("default", "swa", "ema") for use in (False, True)],
        "clips": [clip_record(*case) for case in clips],
    }
    path = pathlib.Path(sys.argv[1]) / "optimizers.json.gz"
    path.write_bytes(gzip.compress(json.dumps(answer, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
