"""Golden distributions of initial values: of every parameter of the models, of layers, and of nn.init's functions.

Usage: initialisers.py OUTPUT_FOLDER     writes initialisers.json.gz.
Scales follow from the formulas in PyTorch's, torchvision's and Hugging Face's sources; this script holds them against
what those libraries drew, and stops if one does not fit.
"""

import gzip
import json
import math
import pathlib
import sys

import torch
import torchvision
from torch import nn

import reference_models


def constant(value):
    return {"kind": "constant", "value": value}


def uniform(bound):
    return {"kind": "uniform", "bound": bound}


def normal(deviation):
    return {"kind": "normal", "deviation": deviation}


def fan_in(shape):
    return math.prod(shape[1:])


def check(name, expected, tensor):
    """Stops unless `tensor` can be a sample of `expected`."""
    values, count = tensor.detach().double().flatten(), tensor.numel()
    if expected["kind"] == "constant":
        good = bool((values == expected["value"]).all())
    else:
        flat = expected["kind"] == "uniform"
        deviation = expected["bound"] / math.sqrt(3) if flat else expected["deviation"]
        error = 6 * deviation / math.sqrt(count)
        good = abs(float(values.mean())) < error and abs(float(values.square().mean().sqrt()) - deviation) < error
        if flat:  # the bound as float32 has it
            good = good and float(values.abs().max()) <= float(torch.tensor(expected["bound"], dtype=torch.float32))
    if not good:
        raise SystemExit(f"{name} {list(tensor.shape)} is not {expected}: mean {values.mean()}, std {values.std()}")


def plain(name, shape, state):
    """Layers as torch.nn makes them: uniform within 1 / sqrt(fan_in), norms ones and zeros."""
    if len(shape) >= 2:
        return uniform(1 / math.sqrt(fan_in(shape)))
    weight = state.get(name.removesuffix("bias") + "weight")
    if name.endswith("bias") and weight is not None and weight.dim() >= 2:
        return uniform(1 / math.sqrt(fan_in(weight.shape)))
    return constant(1.0 if name.endswith(("weight", "running_var")) else 0.0)


def resnet(name, shape, state):
    """torchvision.models.resnet: convolutions by Kaiming's normal rule, fan_out; norms ones and zeros."""
    if len(shape) == 4:
        return normal(math.sqrt(2 / (shape[0] * shape[2] * shape[3])))
    return plain(name, shape, state)


def vgg(name, shape, state):
    """torchvision.models.vgg: linear layers by a normal distribution of 0.01, biases zeros."""
    if name.endswith("bias"):
        return constant(0.0)
    return normal(0.01) if len(shape) == 2 else resnet(name, shape, state)


def efficientnet(name, shape, state):
    """torchvision.models.efficientnet: convolutions as a resnet's, the classifier uniform within 1 / sqrt(fan_out)."""
    if name.endswith("bias"):
        return constant(0.0)
    return uniform(1 / math.sqrt(shape[0])) if len(shape) == 2 else resnet(name, shape, state)


def vit(name, shape, state):
    """torchvision.models.vision_transformer."""
    if name == "conv_proj.weight":
        return normal(math.sqrt(1 / fan_in(shape)))
    if name.endswith("pos_embedding"):
        return normal(0.02)
    if name.endswith("in_proj_weight"):
        return uniform(math.sqrt(6 / (shape[0] + shape[1])))
    if ".mlp." in name:
        return uniform(math.sqrt(6 / sum(shape))) if len(shape) == 2 else normal(1e-6)
    if name.endswith("out_proj.weight"):
        return plain(name, shape, state)
    if len(shape) == 1 and name.endswith("weight"):
        return constant(1.0)
    return constant(0.0)


def bert(name, shape, state):
    """transformers' initializer_range: normal of 0.02; word embeddings, which masked words share, have a row of zeros for
    padding."""
    del state
    if len(shape) == 2:
        return normal(0.02) | ({"zero_row": 0} if "word_embeddings" in name or "decoder" in name else {})
    return constant(1.0 if name.endswith("weight") else 0.0)


RULES = {"mlp": plain, "lenet5": plain, "alexnet": plain, "vgg16": vgg, "resnet18": resnet, "resnet18_cifar": resnet,
         "resnet50": resnet, "efficientnet_b0": efficientnet, "efficientnet_b4": efficientnet,
         "convmixer_768_32": plain, "vit_b_16": vit, "simclr_resnet18": resnet, "bert_base": bert,
         "bert_base_mlm": bert}
# The stem for small images is set after torchvision's initialisation, so it is a plain convolution.
SMALL_STEMS = {"resnet18_cifar": "conv1.weight", "simclr_resnet18": "encoder.conv1.weight"}
LAYERS = [
    ("Linear", [20, 30], lambda: nn.Linear(20, 30)),
    ("Conv2d", [8, 16, 3, 5], lambda: nn.Conv2d(8, 16, (3, 5))),
    ("Conv2dGroups", [8, 16, 3, 4], lambda: nn.Conv2d(8, 16, 3, groups=4)),
    ("Conv1d", [8, 16, 7], lambda: nn.Conv1d(8, 16, 7)),
    ("BatchNorm2d", [40], lambda: nn.BatchNorm2d(40)),
    ("LayerNorm", [40], lambda: nn.LayerNorm(40)),
    ("Embedding", [50, 40], lambda: nn.Embedding(50, 40)),
    ("EmbeddingPadding", [50, 40, 3], lambda: nn.Embedding(50, 40, padding_idx=3)),
    ("MultiheadAttention", [32, 4], lambda: nn.MultiheadAttention(32, 4)),
    ("TransformerEncoderLayer", [32, 4, 64], lambda: nn.TransformerEncoderLayer(32, 4, 64)),
]


def layer_rule(kind):
    def rule(name, shape, state):
        if kind.startswith("Embedding"):
            return normal(1.0) | ({"zero_row": 3} if kind.endswith("Padding") else {})
        if name.endswith("in_proj_weight"):
            return uniform(math.sqrt(6 / (shape[0] + shape[1])))
        if name.endswith(("in_proj_bias", "out_proj.bias")):
            return constant(0.0)
        return plain(name, shape, state)
    return rule


def distributions(label, model, rule):
    state = model.state_dict()
    answer = []
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            continue
        expected = rule(name, list(tensor.shape), state)
        sample = tensor
        if "zero_row" in expected:
            assert not bool(tensor[expected["zero_row"]].any())
            sample = torch.cat([tensor[:expected["zero_row"]], tensor[expected["zero_row"] + 1:]])
        check(f"{label}: {name}", expected, sample)
        answer.append([name, list(tensor.shape), expected])
    return answer


def stem_aware(name):
    def rule(parameter, shape, state):
        return (plain if parameter == SMALL_STEMS.get(name) else RULES[name])(parameter, shape, state)
    return rule


def functions():
    """nn.init: [function, shape, options, distribution]."""
    cases = []
    for shape in ([60, 40], [16, 8, 5, 3]):
        inputs, outputs = fan_in(shape), shape[0] * math.prod(shape[2:])
        cases += [("xavier_uniform_", shape, {}, uniform(math.sqrt(6 / (inputs + outputs)))),
                  ("xavier_uniform_", shape, {"gain": 2.0}, uniform(2 * math.sqrt(6 / (inputs + outputs)))),
                  ("xavier_normal_", shape, {}, normal(math.sqrt(2 / (inputs + outputs)))),
                  ("kaiming_uniform_", shape, {}, uniform(math.sqrt(6 / inputs))),
                  ("kaiming_uniform_", shape, {"a": math.sqrt(5)}, uniform(1 / math.sqrt(inputs))),
                  ("kaiming_uniform_", shape, {"mode": "fan_out", "nonlinearity": "relu"},
                   uniform(math.sqrt(6 / outputs))),
                  ("kaiming_normal_", shape, {}, normal(math.sqrt(2 / inputs))),
                  ("kaiming_normal_", shape, {"mode": "fan_out", "nonlinearity": "relu"}, normal(math.sqrt(2 / outputs))),
                  ("kaiming_normal_", shape, {"nonlinearity": "linear"}, normal(math.sqrt(1 / inputs))),
                  ("kaiming_normal_", shape, {"nonlinearity": "tanh"}, normal(5 / 3 / math.sqrt(inputs))),
                  ("trunc_normal_", shape, {"std": 0.02}, normal(0.02))]
    for name, shape, options, expected in cases:
        check(name, expected, getattr(nn.init, name)(torch.empty(shape), **options))
    # Cut at one standard deviation: the variance of what is left is 1 - 2 pdf(1) / (cdf(1) - cdf(-1)).
    inside = math.erf(1 / math.sqrt(2))
    cut = math.sqrt(1 - 2 * math.exp(-0.5) / math.sqrt(2 * math.pi) / inside)
    check("trunc_normal_", normal(cut), nn.init.trunc_normal_(torch.empty(200, 200), 0.0, 1.0, -1.0, 1.0))
    cases.append(("trunc_normal_", [200, 200], {"a": -1.0, "b": 1.0}, normal(cut)))
    return cases


def main():
    torch.manual_seed(3)
    assert torchvision.__version__.startswith("0.26.0")
    answer = {
        "models": {n: distributions(n, reference_models.build(n), stem_aware(n)) for n in reference_models.MODELS},
        "layers": [[kind, options, distributions(kind, make(), layer_rule(kind))] for kind, options, make in LAYERS],
        "functions": functions(),
        "gains": {n: nn.init.calculate_gain(n) for n in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu")},
    }
    path = pathlib.Path(sys.argv[1]) / "initialisers.json.gz"
    path.write_bytes(gzip.compress(json.dumps(answer, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
