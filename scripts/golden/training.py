"""Golden values of training: ten steps of resnet18_cifar and of a two-layer BERT; names and shapes of state dicts.

Usage: training.py OUTPUT_FOLDER     writes training.json.gz and state_dicts.json.gz; docs/golden.md describes them.
"""

import gzip
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

import generator
import reference_models

SEED = 11
STEPS = 10
BERT = {"vocab_size": 1000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 512, "max_position_embeddings": 64, "num_labels": 6}


# Residual branches start damped, and all steps see one batch: otherwise ten steps of random labels in batches of eight
# are chaotic, and float32 and float64 part by 0.4 in the loss.
DAMPED = [("bn2.weight", 0.16, 0.24)]


def image_batch(step, kind):
    del step
    x = torch.from_numpy(generator.real(SEED, 1_000_000, [8, 3, 32, 32], -1.7, 1.7)).to(kind)
    return {"x": x}, torch.from_numpy(generator.integer(SEED, 2_000_000, [8], 0, 10))


def token_batch(step, kind):
    del kind
    ids = torch.from_numpy(generator.integer(SEED, 1_000_000 + step, [8, 32], 1, 1000))
    lengths = torch.from_numpy(generator.integer(SEED, 3_000_000 + step, [8], 8, 33))
    types = torch.from_numpy(generator.integer(SEED, 4_000_000 + step, [8, 32], 0, 2))
    mask = (torch.arange(32)[None] < lengths[:, None]).long()
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return inputs, torch.from_numpy(generator.integer(SEED, 2_000_000 + step, [8], 0, 6))


def gradient_record(name, gradient):
    flat = gradient.double().flatten()
    places = sorted({0, flat.numel() // 3, flat.numel() // 2, flat.numel() - 1})
    return {"name": name, "norm": float(flat.norm()), "at": places, "values": [float(flat[p]) for p in places]}


def train(model, batch, optimizer, kind):
    """Losses of the steps and the gradients of the first."""
    model.train()
    losses, gradients = [], []
    for step in range(STEPS):
        inputs, labels = batch(step, kind)
        optimizer.zero_grad()
        loss = F.cross_entropy(reference_models.logits(model, inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        if step == 0:
            gradients = [gradient_record(n, p.grad) for n, p in model.named_parameters() if p.grad is not None]
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses, gradients


def record(name, make, batch, make_optimizer, options):
    """Trains in float64 (the golden values) and float32 (how much of them float32 can say)."""
    answers = {}
    for kind in (torch.float64, torch.float32):
        model = make()
        made = reference_models.fill(model, SEED, DAMPED)
        model = model.to(kind)
        answers[kind] = train(model, batch, make_optimizer(model.parameters()), kind)
    wide, narrow = answers[torch.float64], answers[torch.float32]
    spread = max(abs(a - b) for a, b in zip(wide[0], narrow[0]))
    largest = max(a["norm"] for a in wide[1])
    slack = max(abs(a["norm"] - b["norm"]) / max(a["norm"], 1e-6 * largest) for a, b in zip(wide[1], narrow[1]))
    print(f"{name}: losses {[round(v, 5) for v in wide[0]]}\n  float32 differs by {spread:.2g}, norms by {slack:.2g}")
    statistics = [{"name": n, "norm": float(b.double().norm())} for n, b in model.named_buffers() if "running" in n]
    return {"model": name, "seed": SEED, "options": options, "state": made, "losses": wide[0], "gradients": wide[1],
            "statistics": statistics}


def write(path, value):
    path.write_bytes(gzip.compress(json.dumps(value, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[1])
    sgd = {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9}
    adamw = {"optimizer": "adamw", "lr": 1e-3}
    write(folder / "training.json.gz", [
        record("resnet18_cifar", reference_models.resnet18_cifar, image_batch,
               lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), sgd),
        record("bert", lambda: reference_models.bert(**BERT), token_batch, lambda p: torch.optim.AdamW(p, lr=1e-3),
               adamw | {"config": BERT}),
    ])
    states = {}
    for name in reference_models.MODELS:
        state = reference_models.build(name).state_dict()
        states[name] = [[n, list(t.shape), str(t.dtype).removeprefix("torch.")] for n, t in state.items()]
    write(folder / "state_dicts.json.gz", states)


if __name__ == "__main__":
    main()
