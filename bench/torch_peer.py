"""The workloads of `russet bench` in PyTorch, one per process, and a probe of the machine.

Usage: torch_peer.py MODEL --phase train|eval --precision fp32|bf16 [--device cpu|cuda] [--mode eager|compile|graph]
                     [--batch N] [--seconds S]
       torch_peer.py --probe [--device cpu|cuda]
The mode `graph` is torch.compile's "reduce-overhead", which replays CUDA graphs.
Prints a JSON line: the median time of a step in milliseconds; or multiply-adds and bytes a second of the machine.
With --serve it prints an empty one once it has taken a first step, then measures for each line that it reads.
Run it with the Python of scripts/golden/setup.sh.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from batches import BATCHES, batch_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts" / "golden"))
import reference_models  # noqa: E402

SHAPES = {"mlp": [1024], "lenet5": [1, 28, 28], "resnet18_cifar": [3, 32, 32], "efficientnet_b4": [3, 380, 380],
          "simclr_resnet18": [3, 32, 32]}
CLASSES = {"mlp": 10, "lenet5": 10, "resnet18_cifar": 10, "simclr_resnet18": 128, "bert_base": 6}
WARM_STEPS, LEAST_STEPS, MOST_STEPS = 2, 3, 400
ROUND_SECONDS = 0.2  # as `russet bench` has it: short steps are timed together on a GPU


def build(name, batch, device):
    """The model, its input and its labels. Images and convolutions are channels-last: PyTorch is faster so."""
    model, x, labels = build_on_cpu(name, batch)
    return model.to(device), x.to(device), labels.to(device)


def build_on_cpu(name, batch):
    if name == "bert_base":
        from transformers import BertConfig, BertForSequenceClassification  # with dropout, as russet's workload has it

        model = BertForSequenceClassification(BertConfig(num_labels=CLASSES[name]))
        return model, torch.randint(0, 30_000, (batch, 128)), torch.randint(0, CLASSES[name], (batch,))
    model, x = reference_models.build(name), torch.randn(batch, *SHAPES.get(name, [3, 224, 224]))
    if x.dim() == 4:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return model, x, torch.randint(0, CLASSES.get(name, 1000), (batch,))


def outputs(model, x):
    return model(x) if x.is_floating_point() else model(input_ids=x).logits


def optimizer_of(name, model):
    """The perceptron's loop has none: it adds up gradients."""
    if name == "mlp":
        return None
    if name == "bert_base":
        return torch.optim.AdamW(model.parameters(), lr=1e-5)
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def train_step(name, model, x, labels, lower, wrap):
    optimizer = optimizer_of(name, model)

    def forward(x, labels):
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=lower):
            y = outputs(model, x)
        return y.float().mean() if optimizer is None else F.cross_entropy(y.float(), labels)

    compiled = wrap(forward)

    def step():
        if optimizer:
            optimizer.zero_grad(set_to_none=True)
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x, labels).backward()
        if optimizer:
            optimizer.step()

    model.train()
    if optimizer is None:  # gradients that were a graph's own results would be gone with its next run
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
    return step


def eval_step(model, x, lower, wrap):
    def forward(x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=lower):
            return outputs(model, x)

    compiled = wrap(forward)

    def step():
        with torch.no_grad():
            compiled(x)

    model.eval()
    return step


def time_of(step, count=1):
    """Seconds of a step, of `count` that nobody waits for in between."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def measure(step, seconds, device):
    """The median of steps in milliseconds, as `russet bench` measures."""
    for _ in range(WARM_STEPS):
        time_of(step)
    count = 1 if device == "cpu" else int(min(max(ROUND_SECONDS / time_of(step), 1), 1000))
    times, end = [], time.perf_counter() + seconds
    while (time.perf_counter() < end or len(times) < LEAST_STEPS) and len(times) < MOST_STEPS:
        times.append(time_of(step, count))
    return statistics.median(times) * 1e3


def probe(device):
    """What the machine gives now: it varies by a factor of two within minutes."""
    best = {}
    size = 1536 if device == "cpu" else 8192
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        fastest = min(time_of(lambda: a @ b) for _ in range(6))
        best[f"gflops_{name}"] = round(2 * size**3 / fastest / 1e9, 1)
    x = torch.zeros((32 if device == "cpu" else 512) * 2**20, device=device)
    fastest = min(time_of(lambda: x.add_(1)) for _ in range(4))
    best["gbytes"] = round(2 * x.numel() * 4 / fastest / 1e9, 2)
    return best


def answer(serve, result):
    print(json.dumps({} if serve else result()), flush=True)
    while serve and sys.stdin.readline():
        print(json.dumps(result()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=sorted(BATCHES))
    parser.add_argument("--phase", choices=["train", "eval"], default="train")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--mode", choices=["eager", "compile", "graph"], default="eager")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False  # by default its convolutions of float32 are of TF32
    if arguments.probe:
        answer(arguments.serve, lambda: probe(arguments.device))
        return
    if not arguments.model:
        parser.error("which MODEL?")
    batch = arguments.batch or batch_of(arguments.model, arguments.device)
    model, x, labels = build(arguments.model, batch, arguments.device)
    wraps = {"eager": lambda function: function, "compile": torch.compile,
             "graph": lambda function: torch.compile(function, mode="reduce-overhead")}
    wrap = wraps[arguments.mode]
    torch.backends.cudnn.benchmark = True
    lower = arguments.precision == "bf16"
    if arguments.phase == "train":
        step = train_step(arguments.model, model, x, labels, lower, wrap)
    else:
        step = eval_step(model, x, lower, wrap)
    first = time_of(step)

    def result():
        median = measure(step, arguments.seconds, arguments.device)
        return {"peer": "torch " + torch.__version__, "mode": arguments.mode, "model": arguments.model,
                "phase": arguments.phase, "precision": arguments.precision, "batch": batch, "ms": round(median, 4),
                "samples_per_s": round(batch / median * 1e3, 1), "first_step_s": round(first, 3)}

    answer(arguments.serve, result)


if __name__ == "__main__":
    main()
