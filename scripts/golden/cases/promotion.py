"""Types of results: pairs of types, numbers, tensors without axes, integers in floating functions."""

import torch

from composites import B, I, T, V

_TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
_PAIRS = [(a, b) for a in _TYPES for b in _TYPES]


def _one(dtype, rank=1):
    values = {"bool": True}.get(dtype, 3)
    return V([values, 1] if rank else values, dtype, grad=False)


CASES = [(name, _one(a), _one(b)) for name in ("add", "div", "lt") for a, b in _PAIRS]
CASES += [(name, _one(a), _one(b)) for name in ("mul", "maximum") for a, b in _PAIRS if _TYPES.index(a) < _TYPES.index(b)]
CASES += [("add", _one(a), _one(b, 0)) for a, b in _PAIRS]
CASES += [("mul", _one(a, 0), _one(b, 0)) for a, b in _PAIRS if _TYPES.index(a) < _TYPES.index(b)]
CASES += [(name, _one(a), number) for name in ("add", "mul", "div", "eq") for a in _TYPES for number in (2, 2.0, True)]
CASES += [("add", _one(a, 0), number) for a in _TYPES for number in (2, 2.0)]
CASES += [("pow", _one(a), number) for a in _TYPES[1:] for number in (2, 0.5)]
CASES += [("pow", number, _one(a)) for a in _TYPES[1:] for number in (2, 0.5)]
CASES += [("where", V([True, False], "bool"), _one(a), _one(b)) for a, b in _PAIRS
          if _TYPES.index(a) < _TYPES.index(b) and a != "bool"]
CASES += [("where", V([True, False], "bool"), _one(a), number) for a in _TYPES for number in (1, 1.5)]
CASES += [("cat", [_one(a), _one(b)]) for a, b in _PAIRS if _TYPES.index(a) < _TYPES.index(b)]
CASES += [(name, _one(a)) for name in ("exp", "sqrt", "sigmoid", "neg_", "sum", "prod", "amax", "argmax", "any",
                                       "abs", "isnan", "logical_not", "square") for a in _TYPES
          if not (a == "bool" and name in ("neg_", "abs"))]
CASES += [("cumsum", _one(a), 0) for a in _TYPES]
CASES += [("mean", _one(a)) for a in _TYPES[6:]] + [("softmax", _one(a), 0) for a in _TYPES[6:]]
CASES += [("clamp", _one(a), number) for a in _TYPES[1:] for number in (2, 1.5)]
CASES += [(name, _one(a), _one(b)) for name in ("floor_divide", "remainder") for a, b in _PAIRS
          if a != "bool" and b != "bool" and _TYPES.index(a) <= _TYPES.index(b)]
CASES += [("bitwise_and", _one(a), _one(b)) for a in _TYPES[:6] for b in _TYPES[:6]]
CASES += [("promote_types", _one(a), _one(b)) for a, b in _PAIRS]

# Conversions, of what integers cannot hold too.
_CORNERS = [float("nan"), float("inf"), float("-inf"), 2.0**31, -(2.0**31), 2.0**66, -(2.0**66), 255.9, -0.9, -1.0, 300.0, 70000.0,
            3e9, -3e9]
CASES += [("to", V(_CORNERS, floating, grad=False), a) for floating in ("float", "float16", "bfloat16") for a in _TYPES]
CASES += [("to", V([-1, 0, 300, 70000, 2**40 + 3], "int64"), a) for a in _TYPES]

CALLS = {
    "neg_": torch.neg,
    "to": lambda x, dtype: x.to(getattr(torch, dtype)),
    "argmax": lambda x: torch.argmax(x.float() if x.dtype == torch.bool else x),
    "promote_types": lambda a, b: torch.zeros([], dtype=torch.promote_types(a.dtype, b.dtype)),
}
