"""Golden values of functions: what PyTorch answers for a table of calls, and the gradients of the inputs.

Usage: composites.py OUTPUT_FOLDER     writes one composites_FAMILY.jsonl.gz for each module of cases/.
docs/golden.md describes the format.
"""

import gzip
import importlib
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

import generator

SEED = 2026
FAMILIES = ["elementwise", "reduction", "movement", "indexing", "contraction", "linalg", "nn", "warp", "losses", "creation", "promotion",
            "errors"]


class T:
    """A floating tensor from the generator, run in float32 and float64; takes a gradient unless grad=False."""

    def __init__(self, *shape, lo=-1.0, hi=1.0, grad=True):
        self.shape, self.lo, self.hi, self.grad = list(shape), float(lo), float(hi), grad


class I:
    """An integer tensor from the generator, in [lo, hi)."""

    def __init__(self, *shape, lo=0, hi=10, dtype="int64"):
        self.shape, self.lo, self.hi, self.dtype = list(shape), lo, hi, dtype


class B:
    """A boolean tensor from the generator."""

    def __init__(self, *shape):
        self.shape = list(shape)


class V:
    """A tensor of given values. dtype "float" is run in float32 and float64."""

    def __init__(self, values, dtype="float", grad=None):
        self.values, self.dtype = values, dtype
        self.grad = dtype == "float" if grad is None else grad


class K(dict):
    """Arguments by name, behind the others."""


def numbers(tensor):
    """Values of a tensor as JSON: 12 digits, non-finite ones as strings."""
    if tensor.dtype == torch.bool:
        return tensor.int().flatten().tolist()
    if not tensor.is_floating_point():
        return tensor.flatten().tolist()
    values = tensor.detach().double().flatten().tolist()
    return [float(f"{v:.12g}") if math.isfinite(v) else str(v) for v in values]


class Call:
    """One call, its arguments made from their specifications, in a floating type."""

    def __init__(self, arguments, floating):
        self.floating, self.offset, self.leaves = floating, 0, []
        self.arguments = [self.make(a) for a in arguments if not isinstance(a, K)]
        self.named = arguments[-1] if arguments and isinstance(arguments[-1], K) else {}

    def of(self, function):
        return function(*self.arguments, **self.named)

    def make(self, a):
        if isinstance(a, list):
            return [self.make(x) for x in a]
        if not isinstance(a, (T, I, B, V)):
            return a
        self.offset += 1
        if isinstance(a, T):
            tensor = torch.from_numpy(generator.real(SEED, self.offset, a.shape, a.lo, a.hi)).to(self.floating)
        elif isinstance(a, I):
            values = generator.integer(SEED, self.offset, a.shape, a.lo, a.hi)
            tensor = torch.from_numpy(values).to(getattr(torch, a.dtype))
        elif isinstance(a, B):
            tensor = torch.from_numpy(generator.boolean(SEED, self.offset, a.shape))
        else:
            tensor = torch.tensor(a.values, dtype=self.floating if a.dtype == "float" else getattr(torch, a.dtype))
        if getattr(a, "grad", False):
            tensor.requires_grad_()
            self.leaves.append(tensor)
        return tensor


def specification(a):
    """How an argument is written in the file."""
    if isinstance(a, list):
        return [specification(x) for x in a]
    if isinstance(a, T):
        return {"t": "float", "s": a.shape, "lo": a.lo, "hi": a.hi} | ({"g": 1} if a.grad else {})
    if isinstance(a, I):
        return {"t": a.dtype, "s": a.shape, "lo": a.lo, "hi": a.hi}
    if isinstance(a, B):
        return {"t": "bool", "s": a.shape}
    if isinstance(a, V):
        tensor = torch.tensor(a.values, dtype=torch.float64 if a.dtype == "float" else getattr(torch, a.dtype))
        spec = {"t": a.dtype, "s": list(tensor.shape), "v": numbers(tensor)}
        return spec | ({"g": 1} if a.grad else {})
    return str(a) if isinstance(a, float) and not math.isfinite(a) else a


def function_of(name):
    if name.startswith("linalg_"):
        return getattr(torch.linalg, name.removeprefix("linalg_"))
    for place in (torch, F, torch.Tensor):
        if hasattr(place, name):
            return getattr(place, name)
    raise KeyError(name)


def tensors_of(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result)


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def backward(results, offset):
    """The backward pass of sum(result * cotangent) over all floating results that depend on an input."""
    total = None
    for result in results:
        offset += 1
        if not result.requires_grad:
            continue
        cotangent = torch.from_numpy(generator.real(SEED, offset, list(result.shape))).to(result.dtype)
        part = (result * cotangent).sum()
        total = part if total is None else total + part
    if total is not None:
        total.backward()
    return total is not None


def record_of(name, arguments):
    named = {"k": dict(arguments[-1])} if arguments and isinstance(arguments[-1], K) else {}
    return {"f": name, "a": [specification(a) for a in arguments if not isinstance(a, K)]} | named


def run(name, arguments, call):
    """The record of one call: in float64, with the types that it has in float32 beside."""
    function = call or function_of(name)
    record = record_of(name, arguments)
    narrow = tensors_of(Call(arguments, torch.float32).of(function))
    made = Call(arguments, torch.float64)
    wide = tensors_of(made.of(function))
    record["r"] = []
    for single, double in zip(narrow, wide, strict=True):
        follows = single.dtype == torch.float32 and double.dtype == torch.float64
        dtype = "float" if follows else dtype_name(single.dtype)
        source = double if follows else single
        record["r"].append({"t": dtype, "s": list(source.shape), "v": numbers(source)})
    if made.leaves and backward(wide, made.offset):
        record["g"] = [None if leaf.grad is None else numbers(leaf.grad) for leaf in made.leaves]
    return record


def run_error(name, arguments, call):
    """The record of a call that must fail."""
    try:
        Call(arguments, torch.float64).of(call or function_of(name))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return record_of(name, arguments) | {"error": 1}
    raise AssertionError(f"PyTorch takes {name} {arguments}")


def records_of(family):
    module = importlib.import_module(f"cases.{family}")
    runner = run_error if family == "errors" else run
    records = []
    for name, *arguments in module.CASES:
        try:
            records.append(runner(name, arguments, getattr(module, "CALLS", {}).get(name)))
        except Exception as error:
            raise SystemExit(f"{family}: {name}{[specification(a) for a in arguments]}: {error}") from error
    return records


def write_lines(path, lines):
    """A gzip file without a time stamp, so that equal content gives equal files."""
    text = "".join(line + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    for family in sys.argv[2:] or FAMILIES:
        records = records_of(family)
        path = folder / f"composites_{family}.jsonl.gz"
        write_lines(path, [json.dumps(r, separators=(",", ":")) for r in records])
        print(f"{path.name}: {len(records)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    sys.modules["composites"] = sys.modules["__main__"]
    main()
