"""Tensors from nothing: values and default types."""

import torch

from composites import I, T

CASES = [("arange", 5), ("arange", 2, 7), ("arange", 2, 9, 3), ("arange", 5, 0, -2), ("arange", 0, 1, 0.25),
         ("arange", 0.0, 3.0), ("arange", 0), ("arange", 1.5, 4.0, 0.7), ("linspace", 0.0, 1.0, 5), ("linspace", 3, -3, 4),
         ("linspace", 0.0, 1.0, 1), ("linspace", 0.0, 1.0, 0), ("eye", 3), ("eye", 2, 4), ("eye", 0),
         ("full", [2, 3], 1.5), ("full", [2], 7), ("full", [], 2.0), ("full", [2], True), ("zeros", [2, 3]),
         ("zeros", []), ("zeros", [0, 2]), ("ones", [3]), ("zeros_like", I(2, 2)), ("zeros_like", T(2, 2)),
         ("ones_like", T(2, 3)), ("full_like", I(3), 4), ("full_like", T(3), 0.25), ("logspace", 0.0, 2.0, 5)]

CALLS = {}
