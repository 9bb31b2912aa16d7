"""Files of torch.save's, small ones of every kind, and the tensors that they hold or why they are refused.

Usage: weights.py OUTPUT_FOLDER     writes weights.json.gz; docs/golden.md describes it.
"""

import collections
import gzip
import io
import json
import os
import pathlib
import pickle
import sys

import torch

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64]


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def without_checksums(value):
    torch.serialization.set_crc32_options(False)
    file = saved(value)
    torch.serialization.set_crc32_options(True)
    return file


def before_1_6(value, protocol=2):
    """In the format before PyTorch 1.6. It calls storages by their addresses, which differ from run to run."""
    file = io.BytesIO()
    numbers = {}
    torch.serialization.str = lambda address: str(numbers.setdefault(address, len(numbers)))
    torch.serialization._legacy_save(value, file, pickle, protocol)
    del torch.serialization.str
    return file.getvalue()


def views():
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    return {"base": base, "transposed": base.transpose(0, 2), "row": base[1, 2], "steps": base[:, ::2, 1::2],
            "scalar": base[1, 1, 1], "expanded": torch.tensor([2.5]).expand(3, 4), "empty": torch.empty(0, 5),
            "parameter": torch.nn.Parameter(torch.ones(3)), "ünïcode": torch.tensor(7), "tied": base}


def types():
    return {str(dtype): torch.tensor([[0, 1, 1], [5, 0, 3]]).to(dtype) for dtype in DTYPES}


def checkpoint():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5])
    model(torch.ones(1, 1, 5, 5)).sum().backward()
    optimizer.step()
    others = {"epoch": 3, "best": 0.75, "seed": 2**64 - 1, "name": "x", "size": torch.Size([1, 2]), "none": None,
              "device": torch.device("cuda", 0), "dtype": torch.bfloat16, "set": {1}, "bytes": b"abc", "yes": True}
    return model.state_dict(), {**others, "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
                                "model": {"state_dict": model.state_dict()}}


class Call:
    def __reduce__(self):
        return os.system, ("exit",)


def script():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Identity()), file)
    return file.getvalue()


def described(tensor):
    data = tensor.detach().contiguous().view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0)
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), bytes(data.tolist()).hex()]


def good():
    state, whole = checkpoint()
    for protocol in (2, 3, 4, 5):
        yield f"views, protocol {protocol}", saved(views(), pickle_protocol=protocol), views()
        yield f"checkpoint, protocol {protocol}", saved(whole, pickle_protocol=protocol), state
        yield f"before 1.6, protocol {protocol}", before_1_6(whole, protocol), state
    yield "types", saved(types()), types()
    yield "ordered", saved(collections.OrderedDict(views())), views()
    yield "types, before 1.6", before_1_6(types()), types()
    yield "views, before 1.6", before_1_6(views()), views()
    yield "without checksums", without_checksums(views()), views()


def refused():
    one = torch.ones(1)
    yield "call", saved({"a": one, "b": Call()}), f"it names {os.system.__module__}.system"
    yield "module", saved(torch.nn.Linear(1, 1)), "it names torch.nn.modules.linear.Linear"
    yield "complex", saved({"a": one.to(torch.complex64)}), "torch.ComplexFloatStorage is a data type"
    yield "uint16", saved({"a": one.to(torch.uint16)}), "torch.uint16 is a data type"
    yield "float8", saved({"a": one.to(torch.float8_e4m3fn)}), "torch.float8_e4m3fn is a data type"
    yield "sparse", saved({"a": one.to_sparse()}), "it names torch._utils._rebuild_sparse_tensor"
    yield "negated", saved({"a": torch._neg_view(one)}), "a conjugated or negated view"
    yield "no state dict", saved({"epoch": 1}), "its keys are: epoch (an integer)"
    yield "tensor", saved(one), "it holds a tensor, not a state dict"
    yield "call, before 1.6", before_1_6({"a": one, "b": Call()}), f"it names {os.system.__module__}.system"
    yield "pickle", pickle.dumps({"a": 1}), "a pickle, but not one of torch.save's"
    yield "script", script(), "a TorchScript archive"


def main():
    found = [{"name": name, "file": file.hex(), "tensors": [[key, *described(value)] for key, value in state.items()]}
             for name, file, state in good()]
    found += [{"name": name, "file": file.hex(), "error": error} for name, file, error in refused()]
    path = pathlib.Path(sys.argv[1]) / "weights.json.gz"
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
