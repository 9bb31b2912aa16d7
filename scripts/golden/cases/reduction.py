"""Reductions, scans and sorting: axes, kept axes, ties, empty tensors, integers."""

import torch

from composites import B, I, K, T, V

_ALONG = [[], [1], [1, True], [-1], [[0, 2]], [[0, 2], True], [[-1, 0]]]
CASES = [(name, T(2, 3, 4), *axes) for name in ("sum", "mean", "amax", "amin") for axes in _ALONG]
CASES += [("prod", T(2, 3, 4)), ("prod", T(2, 3, 4), 1), ("prod", T(2, 3, 4), -1, True),
          ("prod", V([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 3.0]]), 1), ("prod", V([2.0, 0.0, 3.0])),
          ("prod", T(0, 2), 0), ("prod", I(2, 3, lo=1, hi=4), 0), ("prod", B(4))]
CASES += [(name, T()) for name in ("sum", "mean", "amax", "prod", "argmax")]
CASES += [("logsumexp", T(), 0), ("var", T(), K(correction=0))]
CASES += [("sum", T(), 0), ("sum", T(0, 3)), ("sum", T(0, 3), 0), ("sum", T(0, 3), 1), ("sum", T(2, 0), [0, 1]),
          ("mean", T(3, 0), 0), ("amax", T(0, 3), 1), ("all", V([], "bool")), ("any", V([], "bool"))]
CASES += [("sum", I(3, 4)), ("sum", I(3, 4, dtype="int32"), 1), ("sum", I(3, 4, dtype="uint8")), ("sum", B(3, 4)),
          ("sum", B(3, 4), 0), ("amax", I(3, 4), 0), ("amin", I(3, 4, dtype="int8")), ("sum", I(3, 4), 1, True)]
CASES += [(name, V([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), 1) for name in ("amax", "amin")]
CASES += [("amax", V([1.0, 4.0, 4.0, 2.0])), ("amax", V([1.0, float("nan"), 3.0], grad=False))]
CASES += [(name, T(3, 5), 1) for name in ("max", "min")] + [(name, T(3, 5), 0, True) for name in ("max", "min")]
CASES += [(name, T(3, 5)) for name in ("max", "min", "argmax", "argmin")]
CASES += [(name, T(3, 5), *a) for name in ("argmax", "argmin") for a in ([0], [1], [-1, True])]
CASES += [("argmax", V([1.0, 5.0, 5.0, 2.0])), ("argmin", V([3.0, 1.0, 1.0])), ("argmax", I(3, 4), 1),
          ("max", I(3, 4, hi=1000), 1), ("min", I(3, 4, hi=1000)), ("argmax", V([1.0, float("nan"), 3.0], grad=False))]
CASES += [(name, B(3, 4), *a) for name in ("any", "all") for a in ([], [0], [1, True])]
CASES += [(name, I(3, 4, hi=2)) for name in ("any", "all")] + [("any", T(3)), ("all", V([1.0, 0.0], grad=False))]
for _name in ("var", "std"):
    CASES += [(_name, T(3, 4, 5)), (_name, T(3, 4, 5), 1), (_name, T(3, 4, 5), [0, 2]), (_name, T(3, 4, 5), -1, 0),
              (_name, T(3, 4, 5), 1, 1, True), (_name, T(3, 4, 5), [1, 2], 0, True)]
CASES += [("var_mean", T(3, 4), 1, 0), ("std_mean", T(3, 4), 1, 1), ("var", T(3, 4, lo=1e3, hi=1.001e3), 1, 0)]
CASES += [("norm", T(3, 4)), ("norm", T(3, 4), 2, 1), ("norm", T(3, 4), 1, 1), ("norm", T(3, 4), 3, 0, True),
          ("norm", T(3, 4), float("inf"), 1), ("norm", T(3, 4), float("-inf"), 1), ("norm", T(3, 4), 0, 1),
          ("norm", T(2, 3, 4), 2, [1, 2]), ("norm", V([0.0, 0.0]))]
CASES += [("logsumexp", T(3, 4), 1), ("logsumexp", T(3, 4), 0, True), ("logsumexp", T(2, 3, 4), [0, 2]),
          ("logsumexp", T(3, 4, lo=900, hi=910), 1),
          ("logsumexp", V([[float("-inf"), 0.0], [float("-inf"), float("-inf")]], grad=False), 1)]
CASES += [(name, T(2, 3, 4), d) for name in ("softmax", "log_softmax") for d in (0, 1, -1)]
CASES += [(name, T(2, 3, lo=900, hi=950), 1) for name in ("softmax", "log_softmax")]
CASES += [("softmax", V([[float("-inf"), 0.0, 1.0]], grad=False), 1), ("softmax", T(0, 3), 1), ("softmax", T(), 0)]
CASES += [("cumsum", T(3, 4), 0), ("cumsum", T(3, 4), -1), ("cumsum", I(3, 4), 1), ("cumsum", B(5), 0),
          ("cumsum", T(), 0), ("cumsum", T(0, 2), 0), ("cumprod", T(3, 4, lo=0.5), 1)]
CASES += [("sort", T(3, 5)), ("sort", T(3, 5), 0), ("sort", T(3, 5), 1, True), ("sort", I(6, hi=1000), 0)]
CASES += [("argsort", T(3, 5)), ("argsort", T(3, 5), 0, True), ("topk", T(3, 5), 2), ("topk", T(3, 5), 2, 0, False)]
CASES += [("count_nonzero", I(3, 4, hi=2)), ("count_nonzero", I(3, 4, hi=2), 1), ("nansum", T(3, 2))]
CASES += [("median", T(7)), ("median", T(6)), ("median", T(3, 5), 1), ("median", T(3, 5), 0, True),
          ("kthvalue", T(3, 5), 2), ("kthvalue", T(3, 5), 3, 0, True)]
_SORTED = V([1.0, 3.0, 5.0, 7.0], grad=False)
_SOUGHT = V([[0.0, 1.0, 3.5], [7.0, 9.0, 3.0]], grad=False)
CASES += [("searchsorted", _SORTED, _SOUGHT), ("searchsorted", _SORTED, _SOUGHT, True), ("bucketize", _SOUGHT, _SORTED),
          ("bucketize", _SOUGHT, _SORTED, True), ("unique_with_counts", I(12, hi=5)), ("bincount", I(12, hi=5)),
          ("bincount", I(12, hi=5), T(12, grad=False))]
CASES += [("unique", I(6, 3, hi=2), 0), ("unique", I(3, 4, 2, hi=2), -1), ("unique", I(3, 9, 1, hi=2), 1),
          ("unique", V([[1.5, -2.0], [0.5, 3.0], [1.5, -3.0], [0.5, 3.0]], grad=False), 0), ("unique", B(7, 2), 0),
          ("unique", I(5), 0), ("unique", I(0, 3), 0), ("unique_with_counts", I(7, 2, hi=2), 0),
          ("unique_with_counts", I(2, 9, hi=2), 1), ("unique_with_counts", I(2, 3, 5, hi=2), 2),
          ("unique_with_counts", I(9, hi=4), 0), ("unique_with_counts", I(4, 3, hi=2))]
CASES += [(name, T(3, 7), dim) for name in ("cummax", "cummin", "logcumsumexp") for dim in (0, 1, -1)]
CASES += [(name, V([1.0, 3.0, 3.0, 2.0, 3.0, 1.0, 1.0]), 0) for name in ("cummax", "cummin")]
CASES += [(name, I(3, 6), 1) for name in ("cummax", "cummin")] + [(name, T(), 0) for name in ("cummax", "cummin")]
CASES += [(name, V([1.0, float("nan"), 5.0, float("nan"), 0.0], grad=False), 0) for name in ("cummax", "cummin")]
CASES += [("logcumsumexp", T(5, lo=900, hi=950), 0), ("logcumsumexp", T(), 0), ("logcumsumexp", T(2, 0), 1),
          ("logcumsumexp", V([float("-inf"), 0.0, 1.0, float("-inf")], grad=False), 0),
          ("logcumsumexp", V([0.0, float("-inf"), 1.0]), 0)]
# quantile: input, q, dim, keepdim, interpolation
_SHARES = V([0.0, 0.3, 0.55, 1.0], grad=False)
_HOLED = V([[1.0, float("nan"), 3.0, 2.0], [4.0, 0.5, 7.0, 1.0]], grad=False)
for _name in ("quantile", "nanquantile"):
    CASES += [(_name, T(3, 5), 0.4), (_name, T(3, 5), 0.4, 1), (_name, T(3, 5), 0.25, 0, True), (_name, T(3, 5), _SHARES),
              (_name, T(3, 5), _SHARES, 1), (_name, T(2, 3, 4), _SHARES, 1, True), (_name, T(3, 5), 0.5, None, True),
              (_name, _HOLED, 0.4, 1), (_name, _HOLED, _SHARES, 0), (_name, _HOLED, 0.9), (_name, T(), 0.5)]
    CASES += [(_name, T(3, 6), _SHARES, 1, False, how) for how in ("linear", "lower", "higher", "midpoint", "nearest")]
CASES += [("nanquantile", V([[float("nan"), float("nan")], [1.0, 2.0]], grad=False), 0.5, 1)]
CASES += [("mode", I(3, 9, hi=4)), ("mode", I(5, 4, hi=3), 0), ("mode", I(5, 4, hi=3), 0, True), ("mode", T(3, 4)),
          ("mode", V([2.0, 1.0, 2.0, 1.0, 3.0])), ("mode", I(1, 1)), ("mode", T())]
CASES += [("histc", T(40, grad=False)), ("histc", T(40, grad=False), 5, -0.5, 0.75), ("histc", T(5, 8, grad=False), 7),
          ("histc", V([1.0, 1.0], grad=False), 4), ("histc", V([0.0, 0.5, 1.0, 2.0], grad=False), 2, 0.0, 1.0)]


def _sum(x, dim=None, keepdim=False):
    return torch.sum(x) if dim is None else torch.sum(x, dim, keepdim)


def _mean(x, dim=None, keepdim=False):
    return torch.mean(x) if dim is None else torch.mean(x, dim, keepdim)


def _spread(function):
    def call(x, dim=None, correction=1, keepdim=False):
        return function(x, dim, correction=correction, keepdim=keepdim)
    return call


CALLS = {
    "quantile": lambda x, q, dim=None, keepdim=False, how="linear": torch.quantile(x, q, dim, keepdim, interpolation=how),
    "nanquantile": lambda x, q, dim=None, keepdim=False, how="linear":
        torch.nanquantile(x, q, dim, keepdim, interpolation=how),
    "searchsorted": lambda s, v, right=False: torch.searchsorted(s, v, right=right),
    "bucketize": lambda v, s, right=False: torch.bucketize(v, s, right=right),
    "unique": lambda x, dim=None: torch.unique(x, dim=dim),
    "unique_with_counts": lambda x, dim=None: torch.unique(x, return_inverse=True, return_counts=True, dim=dim),
    "sum": _sum,
    "mean": _mean,
    "var": _spread(torch.var),
    "std": _spread(torch.std),
    "var_mean": _spread(torch.var_mean),
    "std_mean": _spread(torch.std_mean),
    "norm": lambda x, p=2, dim=None, keepdim=False: torch.linalg.vector_norm(x, p, dim, keepdim),
    "sort": lambda x, dim=-1, descending=False: torch.sort(x, dim, descending),
    "argsort": lambda x, dim=-1, descending=False: torch.argsort(x, dim, descending),
}
