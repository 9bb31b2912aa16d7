"""Elementwise functions: values, gradients, broadcasting, numbers in a tensor's place, corners."""

import torch

from composites import B, I, K, T, V

_ANY = ["neg", "abs", "sign", "floor", "ceil", "round", "trunc", "frac", "exp", "exp2", "expm1", "sin", "cos", "tan",
        "atan", "sinh", "cosh", "tanh", "asinh", "erf", "erfc", "sigmoid", "square", "isnan", "isinf", "isfinite",
        "logical_not"]
_POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"]
_UNIT = ["asin", "acos", "atanh"]

CASES = [(name, T(3, 5, lo=-2.5, hi=2.5)) for name in _ANY]
CASES += [(name, T(3, 5, lo=0.1, hi=4)) for name in _POSITIVE]
CASES += [(name, T(3, 5, lo=-0.9, hi=0.9)) for name in _UNIT]
CASES += [("acosh", T(3, 5, lo=1.1, hi=4)), ("logit", T(7, lo=0.1, hi=0.9))]
CASES += [(name, T()) for name in ("neg", "exp", "tanh", "abs", "sigmoid")]
CASES += [(name, T(0, 3)) for name in ("neg", "exp", "relu", "erf", "square")]
CASES += [(name, I(6, lo=-9, hi=9)) for name in ("neg", "abs", "sign", "square", "bitwise_not", "logical_not")]
CASES += [(name, I(6, lo=1, hi=9)) for name in ("exp", "log", "sqrt", "sin", "tanh", "reciprocal", "sigmoid", "erf")]
CASES += [(name, I(6, lo=-9, hi=9)) for name in ("floor", "ceil", "round", "trunc")]
CASES += [("bitwise_not", B(5)), ("logical_not", B(5)), ("abs", I(4, lo=-8, hi=8, dtype="int8"))]
CASES += [("neg", I(4, lo=-8, hi=8, dtype="int32")), ("exp", B(4)), ("sqrt", I(4, hi=9, dtype="uint8"))]

# Corners: kinks, ties, halves, special values.
_SPECIAL = V([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5])
CASES += [(name, _SPECIAL) for name in ("abs", "sign", "round", "floor", "ceil", "trunc", "frac", "relu", "erf",
                                        "sigmoid", "tanh", "logical_not")]
_NON_FINITE = V([float("inf"), float("-inf"), float("nan"), 0.0, 1.0], grad=False)
CASES += [(name, _NON_FINITE) for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "erf", "sign", "abs", "isnan",
                                           "isinf", "isfinite", "floor", "log1p", "expm1", "atan", "relu")]
CASES += [("exp", V([-800.0, -100.0, 0.0, 80.0, 88.0], grad=False)), ("log", V([1e-30, 1e-10, 1e10, 1e30])),
          ("log1p", V([1e-7, -1e-7, 1e-3])), ("expm1", V([1e-7, -1e-7, 1e-3])), ("tanh", V([1e-6, 20.0, -20.0])),
          ("sigmoid", V([-90.0, 40.0, 90.0])), ("sin", V([100.0, -1000.0, 3.0])), ("erf", V([5.0, -5.0, 1e-5]))]

_BINARY = ["add", "sub", "mul", "maximum", "minimum", "atan2", "eq", "ne", "lt", "le", "gt", "ge"]
CASES += [(name, T(2, 3, 4), T(2, 3, 4)) for name in _BINARY]
CASES += [(name, T(2, 1, 4), T(3, 1)) for name in _BINARY]
CASES += [(name, T(4, lo=-3, hi=3), T(2, 4, lo=0.5, hi=2)) for name in ("div", "remainder", "fmod", "logaddexp", "hypot",
                                                                        "xlogy")]
CASES += [("floor_divide", T(4, lo=-3, hi=3, grad=False), T(2, 4, lo=0.5, hi=2, grad=False)),
          ("floor_divide", T(3, 2, grad=False), -1.5)]
CASES += [(name, T(3), T()) for name in ("add", "mul", "maximum", "div")]
CASES += [(name, T(0, 3), T(3)) for name in ("add", "mul", "eq", "div")]
CASES += [(name, T(3, 2), 2) for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")]
CASES += [(name, T(3, 2), -1.5) for name in ("add", "sub", "mul", "div", "remainder", "fmod")]
CASES += [("add", T(3), T(3), 2.5), ("sub", T(3), T(3), 2.5), ("add", T(3), 4, 0.5), ("sub", 2.0, T(3))]
CASES += [("pow", T(5, lo=0.2, hi=3), T(5, lo=-2, hi=2)), ("pow", T(5, lo=0.2, hi=3), -1.5)]
CASES += [("pow", T(5, lo=-3, hi=3), n) for n in (0, 1, 2, 3, -1, -2, 0.0, 2.0, 3.0)]
CASES += [("pow", T(5, lo=0.1, hi=3), 0.5), ("pow", 2.0, T(5)), ("pow", 2, T(5)), ("pow", I(5, lo=-4, hi=5), 3)]
CASES += [("pow", V([0.0, 0.0, 2.0]), V([0.0, 2.0, 0.0])), ("pow", I(5, lo=1, hi=4), I(5, hi=4))]
CASES += [(name, I(8, lo=-20, hi=20), V([3, -3, 7, -7, 1, 2, -2, 5], "int64"))
          for name in ("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "maximum", "minimum", "lt")]
CASES += [(name, V([7.5, -7.5, 7.5, -7.5, 6.0, -6.0], grad=False), V([2.0, 2.0, -2.0, -2.0, 3.0, 3.0], grad=False))
          for name in ("floor_divide", "remainder", "fmod", "div")]
CASES += [("div", T(5, lo=-5, hi=5), 0.7, K(rounding_mode="floor")),
          ("div", T(5, lo=-5, hi=5), 0.7, K(rounding_mode="trunc")),
          ("div", I(5, lo=-9, hi=9), 4, K(rounding_mode="floor")),
          ("div", I(5, lo=-9, hi=9), 4, K(rounding_mode="trunc"))]
CASES += [(name, V([1.0, 2.0, 3.0]), V([1.0, 3.0, 2.0])) for name in ("maximum", "minimum", "eq", "le")]
CASES += [(name, V([float("nan"), 1.0, float("inf")], grad=False), V([1.0, float("nan"), float("inf")], grad=False))
          for name in ("maximum", "minimum", "eq", "ne", "lt", "add")]
CASES += [(name, B(6), B(6)) for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
                                          "bitwise_xor", "add", "mul", "eq", "maximum")]
CASES += [(name, I(6, hi=64), I(6, hi=64)) for name in ("logical_and", "logical_or", "bitwise_and", "bitwise_or",
                                                        "bitwise_xor")]
CASES += [(name, I(6, lo=-64, hi=64), I(6, hi=6)) for name in ("bitwise_left_shift", "bitwise_right_shift")]
CASES += [("logical_and", T(4), B(4)), ("logical_xor", T(4), T(4)), ("logical_or", I(4, hi=2), T(4))]

CASES += [("where", B(2, 3), T(2, 3), T(2, 3)), ("where", B(3), T(2, 1), T(2, 3)), ("where", B(2, 3), T(2, 3), 0.5),
          ("where", B(4), 1.5, T(4)), ("where", B(4), T(4), 3), ("where", B(4), I(4), T(4)), ("where", B(), T(2), T(2)),
          ("where", B(0, 2), T(0, 2), T(2)), ("where", B(3), I(3), I(3)), ("where", B(3), B(3), I(3))]
CASES += [("clamp", T(9), -0.4, 0.3), ("clamp", T(9), None, 0.3), ("clamp", T(9), -0.4), ("clamp", T(9), 0.5, -0.5),
          ("clamp", V([-1.0, 0.0, 0.5, 1.0, 2.0]), 0.0, 1.0), ("clamp", I(9, lo=-9, hi=9), -3, 4),
          ("clamp", I(9, lo=-9, hi=9), -2.5, 4), ("clamp", T(3, 4), T(4, hi=0), T(3, 1, lo=0)),
          ("clamp_min", T(9), 0.1), ("clamp_max", T(9), 0.1)]
CASES += [("lerp", T(3, 4), T(3, 4), 0.3), ("lerp", T(3, 4), T(4), T(3, 1, lo=0)), ("lerp", T(4), T(4), 0.75)]
CASES += [("addcmul", T(3), T(3), T(3), 0.5), ("addcdiv", T(3), T(3), T(3, lo=0.5), 0.5),
          ("addcmul", T(2, 3), T(3), T(2, 1)), ("addcdiv", T(2, 3), T(3), T(2, 1, lo=0.5))]
CASES += [("nan_to_num", V([float("nan"), 1.0, float("inf"), float("-inf")], grad=False), 0.5, 9.0, -9.0)]

CASES += [(name, T(6, lo=-3, hi=3)) for name in ("sinc", "deg2rad", "rad2deg")] + [("sinc", V([0.0, 1.0]))]
CASES += [(name, T(2, 4), T(4)) for name in ("logaddexp2", "copysign", "fmax", "fmin")]
CASES += [(name, _NON_FINITE) for name in ("isposinf", "isneginf")] + [("round", T(6, lo=-9, hi=9), 1)]
CASES += [(name, V([float("nan"), 1.0, 2.0], grad=False), V([3.0, float("nan"), 1.0], grad=False))
          for name in ("fmax", "fmin")]
CASES += [("heaviside", V([-1.0, 0.0, 2.0], grad=False), V([0.5, 0.25, 0.75], grad=False)),
          ("isclose", V([1.0, 1.0001, 2.0], grad=False), V([1.0, 1.0, 2.1], grad=False)),
          ("isclose", V([1.0, float("nan")], grad=False), V([1.1, float("nan")], grad=False), 0.0, 0.2, True),
          ("logit", T(7, lo=-0.2, hi=1.2), 0.1)]

CALLS = {
    "round": lambda x, decimals=None: torch.round(x) if decimals is None else torch.round(x, decimals=decimals),
    "logit": lambda x, eps=None: torch.logit(x, eps),
    "sub": lambda a, b, alpha=1: a - alpha * b,
    "add": lambda a, b, alpha=1: torch.add(a, b, alpha=alpha),
    "addcmul": lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value),
    "addcdiv": lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
    "relu": lambda x: torch.relu(x),
    "clamp": lambda x, low=None, high=None: torch.clamp(x, low, high),
}
