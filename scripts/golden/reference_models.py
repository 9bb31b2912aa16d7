"""The models of russet in PyTorch, as torchvision, timm and Hugging Face write them."""

import math

import timm
import torch
import torchvision.models as vision
from torch import nn
from torchvision.ops import StochasticDepth
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

import generator

MODELS = ["mlp", "lenet5", "alexnet", "vgg16", "resnet18", "resnet18_cifar", "resnet50", "efficientnet_b0",
          "efficientnet_b4", "convmixer_768_32", "vit_b_16", "simclr_resnet18", "bert_base", "bert_base_mlm"]
SEED = 5
# One step of training that float32 can be held to: height and width of images, and how many there are. On larger ones
# single ReLUs fall to the other side of zero: PyTorch's own float32 and float64 part by 4.5e-3 at 224 pixels.
STEPS = {"mlp": (None, 16), "lenet5": (28, 16), "alexnet": (96, 2), "vgg16": (64, 2), "resnet18": (64, 8),
         "resnet18_cifar": (32, 8), "resnet50": (64, 8), "efficientnet_b0": (64, 8), "efficientnet_b4": (64, 8),
         "convmixer_768_32": (56, 2), "vit_b_16": (64, 4), "simclr_resnet18": (32, 8), "bert_base": (None, 4), "bert_base_mlm": (None, 2)}
CLASSES = {"mlp": 10, "lenet5": 10, "resnet18_cifar": 10, "bert_base": 2}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1024, 512)
        self.fc2 = nn.Linear(512, 256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
                               nn.AvgPool2d(2))
        self.c = nn.Sequential(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))

    def forward(self, x):
        return self.c(self.f(x).flatten(1))


def resnet18_cifar():
    model = vision.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


class SimClr(nn.Module):
    """SimCLR has no form that all use: a resnet18 for small images, and a projection head of two layers."""

    def __init__(self):
        super().__init__()
        self.encoder = resnet18_cifar()
        self.encoder.fc = nn.Identity()
        self.projection = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return self.projection(self.encoder(x))


def bert(kind=BertForSequenceClassification, **options):
    return kind(BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **options))


def bert_mlm(**options):
    return bert(BertForMaskedLM, **options)


MADE_HERE = {"mlp": Mlp, "lenet5": LeNet5, "resnet18_cifar": resnet18_cifar, "simclr_resnet18": SimClr, "bert_base": bert,
             "bert_base_mlm": bert_mlm,
             "convmixer_768_32": lambda: timm.create_model("convmixer_768_32")}


def build(name, image_size=None):
    """A model by russet's name, in PyTorch's default initialisation. Only ViT's depends on the size of images."""
    if name in MADE_HERE:
        return MADE_HERE[name]()
    options = {"image_size": image_size} if image_size and name.startswith("vit") else {}
    return getattr(vision, name)(**options)


def without_dropout(model):
    for layer in model.modules():
        if isinstance(layer, (nn.Dropout, StochasticDepth)):
            layer.p = 0.0
    return model


def ranges(name, state):
    """Where models differ from generator.bounds. Without norms, activations would shrink by the square root of two from
    layer to layer. Untrained and deep, ConvMixer and ResNet-50 multiply roundings by 10,000 in their gradients, because
    ReLU's inputs near zero fall to its other side: their biases move most of them away."""
    if name in ("alexnet", "vgg16"):
        bounds = [(key, math.sqrt(6 / math.prod(t.shape[1:]))) for key, t in state.items() if t.dim() > 1]
        return [(key, -bound, bound) for key, bound in bounds]
    if name == "convmixer_768_32":
        return [("stem.0.bias", 1.5, 2.5), ("fn.0.bias", 1.5, 2.5), (".1.bias", 1.5, 2.5)]
    if name == "resnet50":
        return [(f"bn{number}.bias", 1.5, 2.5) for number in (1, 2, 3)]
    return []


def move_from_kinks(model, inputs):
    """Moves the biases of layers that a ReLU follows directly so that, for these inputs, no value lies near zero.

    Of millions of values some lie closer to zero than float32 rounds: on which side is chance, and one of them on the
    other side changes gradients by more than all roundings together (VGG-16's first by 2.9e-3 of its norm). A channel's
    bias moves by at most a hundredth of the values' spread, into the middle of the widest gap there.
    """
    def move(layer, _, values):
        of_channels = values.movedim(1, 0).flatten(1)
        shifts = [gap_near_zero(channel) for channel in of_channels]
        moved = (layer.bias - torch.stack(shifts)).float().to(values.dtype)
        difference = (moved - layer.bias).reshape([-1] + [1] * (values.dim() - 2))
        layer.bias.copy_(moved)
        return values + difference

    followed = [layer for part in model.modules() if isinstance(part, nn.Sequential)
                for layer, next_layer in zip(part, list(part)[1:])
                if isinstance(next_layer, nn.ReLU) and getattr(layer, "bias", None) is not None]
    if not followed:
        return
    hooks = [layer.register_forward_hook(move) for layer in followed]
    with torch.no_grad():
        logits(model.double(), inputs)
    for hook in hooks:
        hook.remove()
    model.float()


def closest_tie(model, inputs):
    """How near the two largest values of a max pool's window come, of those that are not zero, over their root mean
    square. What float32 rounds otherwise takes the other one, and the gradient goes elsewhere. None without max pools."""
    gaps = []

    def look(pool, given, _):
        (values,) = given
        kernel, stride, padding = (size if isinstance(size, tuple) else (size, size)
                                   for size in (pool.kernel_size, pool.stride, pool.padding))
        padded = nn.functional.pad(values, (padding[1], padding[1], padding[0], padding[0]), value=-float("inf"))
        windows = padded.unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1]).flatten(4)
        first, second = windows.topk(2, dim=-1).values.unbind(-1)
        gaps.append(float((first - second)[first != 0].min() / values.square().mean().sqrt()))

    hooks = [part.register_forward_hook(look) for part in model.modules() if isinstance(part, nn.MaxPool2d)]
    if hooks:
        with torch.no_grad():
            logits(model.double(), inputs)
        model.float()
    for hook in hooks:
        hook.remove()
    return min(gaps, default=None)


def step_sample(model, name, batch, size, candidates=12):
    """Inputs for a step of training of a model whose biases are moved from kinks for them: of a few samples the one that
    comes least near to a tie in a max pool."""
    given = {key: value.clone() for key, value in model.state_dict().items()}
    best = None
    for seed in range(SEED, SEED + candidates):
        inputs = sample(name, batch, seed, size)
        wide = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
        model.load_state_dict(given)
        move_from_kinks(model, wide)
        tie = closest_tie(model, wide)
        if tie is None:
            return inputs
        if best is None or tie > best[0]:
            best = tie, inputs, {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(best[2])
    return best[1]


def gap_near_zero(values):
    """The middle of the widest gap between values within a hundredth of their root mean square around zero."""
    reach = 0.01 * float(values.square().mean().sqrt())
    inside = values[values.abs() < reach]
    ends = torch.cat([values.new_tensor([-reach]), inside.sort().values, values.new_tensor([reach])])
    widest = int(torch.argmax(ends.diff()))
    return (ends[widest] + ends[widest + 1]) / 2


def fill(model, seed=SEED, ranges=()):
    """Gives entry i of the state dict its values from the generator; answers [name, shape, low, high] of each.

    ranges: (end of the name, low, high) where they differ from generator.bounds.
    """
    made = []
    state = model.state_dict()
    for index, (name, tensor) in enumerate(state.items()):
        shape = list(tensor.shape)
        low, high = generator.bounds(name, shape)
        for end, *bounds in ranges:
            low, high = bounds if name.endswith(end) else (low, high)
        state[name] = torch.from_numpy(generator.real(seed, index, shape, low, high)).to(tensor.dtype)
        made.append([name, shape, low, high])
    model.load_state_dict(state)
    return made


def sample(name, batch, seed=SEED, size=None):
    """Inputs of a model by name: offsets from 10,000 on. size: height and width of images, if not the usual."""
    shapes = {"mlp": [1024], "lenet5": [1, 28, 28], "resnet18_cifar": [3, 32, 32], "simclr_resnet18": [3, 32, 32],
              "efficientnet_b4": [3, 380, 380]}
    if name.startswith("bert_base"):
        lengths = generator.integer(seed, 10_001, [batch], 64, 129)
        mask = (torch.arange(128)[None] < torch.from_numpy(lengths)[:, None]).long()
        return {"input_ids": torch.from_numpy(generator.integer(seed, 10_000, [batch, 128], 1, 30_000)),
                "attention_mask": mask,
                "token_type_ids": torch.from_numpy(generator.integer(seed, 10_002, [batch, 128], 0, 2))}
    shape = shapes.get(name, [3, 224, 224])
    if size:
        shape = [shape[0], size, size]
    return {"x": torch.from_numpy(generator.real(seed, 10_000, [batch, *shape], -1.7, 1.7))}


def labels(name, batch, seed=SEED):
    """A class for each sample, or, of masked words, for each seventh token."""
    if name == "bert_base_mlm":
        words = torch.from_numpy(generator.integer(seed, 10_003, [batch, 128], 1, 30_000))
        return words.masked_fill(torch.arange(128) % 7 != 3, -100)
    return torch.from_numpy(generator.integer(seed, 10_003, [batch], 0, CLASSES.get(name, 1000)))


def logits(model, inputs):
    return model(inputs["x"]) if "x" in inputs else model(**inputs).logits
