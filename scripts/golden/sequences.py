"""Golden values of recurrent layers, their cells, packed sequences and transformers: results and all gradients.

Usage: sequences.py OUTPUT_FOLDER     writes sequences.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn.utils import rnn

import generator

SEED = 23
INPUTS, COTANGENTS, MASKS = 1000, 2000, 3000
INPUT_SIZE, HIDDEN_SIZE, WIDTH, HEADS = 3, 4, 8, 2

# module, options, sizes of x but the last, lengths (packed), states given
RECURRENT = [
    ("RNN", {}, [5, 2], None, False),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}, [5, 2], None, True),
    ("RNN", {"bias": False}, [4], None, True),
    ("RNN", {"bidirectional": True}, [5, 3], [5, 3, 1], True),
    ("LSTM", {}, [5, 2], None, False),
    ("LSTM", {"bias": False}, [1, 2], None, True),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}, [2, 5], None, True),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 2}, [5, 2], None, True),
    ("LSTM", {"num_layers": 3}, [4], None, True),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, [5, 4], [2, 5, 1, 3], True),
    ("LSTM", {"proj_size": 3, "batch_first": True}, [3, 5], [4, 4, 2], False),
    ("GRU", {}, [5, 2], None, False),
    ("GRU", {"num_layers": 2, "bidirectional": True}, [5, 2], None, True),
    ("GRU", {"bias": False, "batch_first": True}, [2, 4], None, True),
    ("GRU", {"bidirectional": True}, [4], None, True),
    ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}, [3, 5], [1, 5, 3], True),
    ("GRU", {}, [4, 2], [4, 4], False),
]

# module, options, sizes of x but the last, states given
CELLS = [("RNNCell", {}, [2], True), ("RNNCell", {"nonlinearity": "relu", "bias": False}, [2], False),
         ("RNNCell", {}, [], True), ("LSTMCell", {}, [2], True), ("LSTMCell", {"bias": False}, [], False),
         ("GRUCell", {}, [2], True), ("GRUCell", {"bias": False}, [], True)]

# A mask: lengths of the samples (padding), what is added or hidden (attention).
_PADDING = {"padding": [3, 5]}
_CAUSAL = {"attention": "causal"}
# module, options, source's and target's sizes but the last, masks of source, target and memory
TRANSFORMERS = [
    ("TransformerEncoder", {}, [5, 2], None, _PADDING, {}, {}),
    ("TransformerEncoder", {"norm_first": True, "activation": "gelu", "batch_first": True}, [2, 5], None, _CAUSAL, {}, {}),
    ("TransformerEncoder", {"bias": False}, [5, 2], None, {"attention": "number"}, {}, {}),
    ("TransformerEncoder", {}, [5], None, {"attention": "boolean"}, {}, {}),
    ("TransformerDecoder", {}, [5, 2], [4, 2], {}, _CAUSAL, {}),
    ("TransformerDecoder", {"norm_first": True, "activation": "gelu", "batch_first": True}, [2, 5], [2, 4], {},
     _CAUSAL | {"padding": [4, 2]}, _PADDING),
    ("TransformerDecoder", {"bias": False}, [5, 2], [4, 2], {}, {"attention": "number"}, {"attention": "boolean"}),
    ("TransformerDecoder", {}, [5], [4], {}, {"attention": "boolean"}, {"attention": "number"}),
    ("Transformer", {}, [5, 2], [4, 2], {}, _CAUSAL, {}),
    ("Transformer", {"norm_first": True, "activation": "gelu", "batch_first": True, "bias": False}, [2, 5], [2, 4],
     _PADDING, _CAUSAL, _PADDING),
]


class Inputs:
    """Tensors from the generator, in the order in which they are asked for."""

    def __init__(self):
        self.tensors = []

    def make(self, shape):
        values = torch.from_numpy(generator.real(SEED, INPUTS + len(self.tensors), shape)).double()
        self.tensors.append(values.requires_grad_())
        return values


def filled(module):
    module.double().train()
    state = {name: torch.from_numpy(generator.real(SEED, index, list(t.shape))).double()
             for index, (name, t) in enumerate(module.state_dict().items())}
    module.load_state_dict(state)
    return module


def state_of(module, inputs, batch):
    layers = module.num_layers * (2 if module.bidirectional else 1)
    h = inputs.make([layers, *batch, module.proj_size or module.hidden_size])
    return (h, inputs.make([layers, *batch, module.hidden_size])) if isinstance(module, nn.LSTM) else h


def flat(results):
    """Tensors in nested tuples."""
    return [results] if isinstance(results, torch.Tensor) else [t for r in results for t in flat(r)]


def recurrent(kind, options, sizes, lengths, with_state):
    module = filled(getattr(nn, kind)(INPUT_SIZE, HIDDEN_SIZE, **options))
    inputs = Inputs()
    x = inputs.make([*sizes, INPUT_SIZE])
    batch_first = options.get("batch_first", False)
    batch = sizes[:1] if batch_first else sizes[1:]
    state = state_of(module, inputs, batch) if with_state else None
    if not lengths:
        return module, inputs, flat(module(x, state))
    is_sorted = lengths == sorted(lengths, reverse=True)
    packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first, enforce_sorted=is_sorted)
    output, last = module(packed, state)
    padded, found = rnn.pad_packed_sequence(output, batch_first, padding_value=0.5)
    assert found.tolist() == lengths
    return module, inputs, [output.data, padded, *flat(last)]


def cell(kind, options, sizes, with_state):
    module = filled(getattr(nn, kind)(INPUT_SIZE, HIDDEN_SIZE, **options))
    inputs = Inputs()
    x = inputs.make([*sizes, INPUT_SIZE])
    state = None
    if with_state:
        state = inputs.make([*sizes, HIDDEN_SIZE])
        state = (state, inputs.make([*sizes, HIDDEN_SIZE])) if kind == "LSTMCell" else state
    return module, inputs, flat(module(x, state))


def masks_of(spec, offset, length, keys):
    """key_padding_mask, attn_mask, is_causal. Of a mask from the generator the first column is free."""
    padding = attention = None
    if "padding" in spec:
        padding = torch.arange(keys)[None] >= torch.tensor(spec["padding"])[:, None]
    kind = spec.get("attention")
    if kind == "causal":
        attention = torch.ones(length, keys, dtype=torch.bool).triu(1)
    elif kind == "boolean":
        attention = torch.from_numpy(generator.boolean(SEED, offset, [length, keys]))
        attention[:, 0] = False
    elif kind == "number":
        attention = torch.from_numpy(generator.real(SEED, offset, [length, keys])).double()
    if padding is not None and attention is not None:  # of one type, as PyTorch asks for
        padding, attention = (torch.zeros_like(m, dtype=torch.double).masked_fill(m, float("-inf")) if m.dtype == torch.bool
                              else m for m in (padding, attention))
    return padding, attention, kind == "causal"


def transformer(kind, options, source_sizes, target_sizes, *specs):
    layer = {"dim_feedforward": 10, "dropout": 0.0} | options
    norm = nn.LayerNorm(WIDTH, bias=options.get("bias", True))
    if kind == "Transformer":
        module = nn.Transformer(WIDTH, HEADS, 1, 2, **layer)
    elif kind == "TransformerEncoder":
        module = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, **layer), 2, norm,
                                       enable_nested_tensor=False)
    else:
        module = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, HEADS, **layer), 2, norm)
    filled(module)
    axis = 1 if options.get("batch_first") else 0
    source_length = source_sizes[axis if len(source_sizes) > 1 else 0]
    target_length = target_sizes[axis if len(target_sizes) > 1 else 0] if target_sizes else None
    sides = [(source_length, source_length), (target_length, target_length), (target_length, source_length)]
    source, target, memory = (masks_of(spec, MASKS + i, *sides[i]) for i, spec in enumerate(specs))
    inputs = Inputs()
    x = inputs.make([*source_sizes, WIDTH])
    if kind == "TransformerEncoder":
        return module, inputs, [module(x, source[1], source[0], source[2])]
    y = inputs.make([*target_sizes, WIDTH])
    if kind == "TransformerDecoder":
        return module, inputs, [module(y, x, target[1], memory[1], target[0], memory[0], target[2], memory[2])]
    return module, inputs, [module(x, y, source[1], target[1], memory[1], source[0], target[0], memory[0], source[2],
                                   target[2], memory[2])]


def numbers(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().flatten().tolist()]


def answers(module, inputs, results):
    total = sum((r * torch.from_numpy(generator.real(SEED, COTANGENTS + i, list(r.shape))).double()).sum()
                for i, r in enumerate(results))
    total.backward()
    return {"state": [[name, list(t.shape)] for name, t in module.state_dict().items()],
            "inputs": [list(t.shape) for t in inputs.tensors],
            "results": [[list(r.shape), numbers(r)] for r in results],
            "gradients": [[name, numbers(p.grad)] for name, p in module.named_parameters()],
            "input_gradients": [numbers(t.grad) for t in inputs.tensors]}


def main():
    records = []
    for kind, options, sizes, lengths, with_state in RECURRENT:
        records.append({"module": kind, "options": options, "lengths": lengths, "with_state": with_state}
                       | answers(*recurrent(kind, options, sizes, lengths, with_state)))
    for kind, options, sizes, with_state in CELLS:
        records.append({"module": kind, "options": options, "with_state": with_state}
                       | answers(*cell(kind, options, sizes, with_state)))
    for kind, options, source, target, *specs in TRANSFORMERS:
        records.append({"module": kind, "options": options, "masks": specs}
                       | answers(*transformer(kind, options, source, target, *specs)))
    path = pathlib.Path(sys.argv[1]) / "sequences.json.gz"
    text = json.dumps({"seed": SEED, "records": records}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path.name}: {len(records)} records, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
