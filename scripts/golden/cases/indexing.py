"""Indexing by tensors, masks and mixtures; gathers and scatters."""

import torch
import torch.nn.functional as F

from composites import B, I, T, V

_ROWS = V([2, 0, 2], "int64")
CASES = [("index_select", T(4, 3), 0, _ROWS), ("index_select", T(3, 4), 1, _ROWS), ("index_select", T(4), -1, _ROWS),
         ("index_select", T(4, 3), 0, V([], "int64")), ("index_select", I(4, 3), 0, _ROWS),
         ("index_select", T(4, 3), 0, V([1, 3], "int32"))]
CASES += [("gather", T(3, 4), 1, I(3, 2, hi=4)), ("gather", T(3, 4), 0, I(2, 4, hi=3)), ("gather", T(5), 0, I(7, hi=5)),
          ("gather", T(3, 4), -1, I(2, 3, hi=4)), ("gather", I(3, 4), 1, I(3, 2, hi=4)),
          ("take_along_dim", T(3, 4), I(3, 2, hi=4), 1)]
CASES += [("scatter_add", T(3, 4), 1, I(3, 2, hi=4), T(3, 2)), ("scatter_add", T(3), 0, V([1, 1, 1, 0], "int64"), T(4)),
          ("scatter_add", T(3, 4), 0, I(2, 4, hi=3), T(2, 4)), ("scatter_add", I(3), 0, V([2, 2], "int64"), I(2)),
          ("scatter", T(3, 4), 1, V([[0, 2], [1, 3], [3, 0]], "int64"), T(3, 2)),
          ("scatter", T(3, 4), 0, V([[0, 1, 2, 0]], "int64"), 2.5), ("index_add", T(4, 3), 0, _ROWS, T(3, 3))]
CASES += [("masked_fill", T(2, 3), B(2, 3), 7.5), ("masked_fill", T(2, 3), B(3), -1), ("masked_fill", I(4), B(4), 3),
          ("masked_fill", T(2, 3), B(2, 1), T()), ("masked_select", T(3, 4), B(3, 4)), ("masked_select", T(3, 4), B(4)),
          ("nonzero", I(3, 4, hi=2)), ("nonzero", B(6)), ("nonzero", V([0.0, 1.0, 2.0], grad=False)),
          ("nonzero", V([0, 0], "int64"))]
CASES += [("one_hot", V([0, 2, 1], "int64"), 4), ("one_hot", V([0, 2, 1], "int64")), ("one_hot", I(2, 3, hi=3), 3),
          ("take", T(3, 4), V([0, 11, 5], "int64"))]
CASES += [("index_copy", T(4, 3), 0, V([2, 0], "int64"), T(2, 3)), ("index_fill", T(4, 3), 1, V([2, 0], "int64"), 3.5),
          ("take_along_dim", T(3, 4), I(5, hi=12))]
# x[...]: an index is "i:3" for an integer, "s:start:stop:step" for a slice, ":" for all, "..." and "new".
CASES += [("index", T(4, 3), [_ROWS]), ("index", T(4, 3), [":", V([2, 0], "int64")]),
          ("index", T(4, 3), [V([0, 3], "int64"), V([1, 2], "int64")]),
          ("index", T(4, 3), [V([[0], [3]], "int64"), V([1, 2], "int64")]), ("index", T(4, 3), [B(4, 3)]),
          ("index", T(4, 3), [B(4)]), ("index", T(4, 3), ["i:-1"]), ("index", T(4, 3), ["s:1:3:1", "i:2"]),
          ("index", T(4, 3), ["new", "i:1"]), ("index", T(2, 3, 4), ["...", "i:0"]),
          ("index", T(2, 3, 4), ["i:1", ":", V([3, 0], "int64")]), ("index", T(4, 3), [V([-1, -2], "int64")]),
          ("index", T(2, 3, 4), [V([1, 0], "int64"), ":", V([3, 0], "int64")]),
          ("index", T(2, 3, 4), ["...", B(4)]), ("index", T(2, 3, 4), ["s:::2", V([2], "int64"), "s:0:3:2"]),
          ("index", I(4, 3), [_ROWS]), ("index", T(3), [V(2, "int64")]), ("index", T(2, 3), ["...", "new"])]
CASES += [("index_put_", T(4, 3), [_ROWS], 5.0), ("index_put_", T(4, 3), [B(4, 3)], -1.0),
          ("index_put_", T(4, 3), ["s:1:3:1", "i:2"], T(2)), ("index_put_", T(4, 3), [":", V([2, 0], "int64")], T(4, 2)),
          ("index_put_", T(4, 3), [B(4)], T(3)), ("index_put_", T(2, 3, 4), ["...", "i:1"], T(3)),
          ("index_put_", T(4, 3), ["i:0"], T(3)), ("index_put_", T(4, 3), ["s:::2"], T(1, 3))]
CASES += [("embedding", I(2, 3, hi=5), T(5, 4)), ("embedding", V([1, 1, 3], "int64"), T(5, 4)),
          ("embedding", V(2, "int64"), T(5, 4)), ("embedding", V([0, 1, 3, 1], "int64"), T(5, 4), 1),
          ("embedding", V([], "int64"), T(5, 4)), ("embedding", I(3, hi=5, dtype="int32"), T(5, 4))]
# indices, weight, padding, largest norm, kind of norm; results: the rows, and the weight after the call
CASES += [("embedding_max_norm", V([0, 3, 3, 1], "int64"), T(5, 4), None, 1.0, 2.0),
          ("embedding_max_norm", V([[0, 2], [4, 2]], "int64"), T(5, 4), None, 0.5, 1.0)]
CASES += [("index", T(4, 3), [V(2, "int64")]), ("index", T(4, 3, 2), [":", V(-1, "int32")]),
          ("index", T(4, 3, 2), [V([0, 2], "int64"), V(1, "int64")]), ("index_put_", T(4, 3), [V(1, "int64")], T(3)),
          ("index", T(4, 3, 2), [V(3, "int64"), ":", V([0, 1, 1], "int64")])]
CASES += [("isin", I(3, 4), I(5)), ("isin", I(3, 4), I(2, 3), False, True), ("isin", I(3, 4), 4), ("isin", 4, I(3)),
          ("isin", I(20, hi=300), I(200, hi=300)), ("isin", V([1.0, 2.0, float("nan")], grad=False), V([2, 3], "int64")),
          ("isin", I(3), V([], "int64"))]
CASES += [("unique_consecutive", I(12, hi=3)), ("unique_consecutive", I(4, 3, hi=2), 0),
          ("unique_consecutive_with_counts", I(12, hi=2)), ("unique_consecutive_with_counts", I(3, 4, hi=2)),
          ("unique_consecutive_with_counts", I(6, 2, hi=2), 0), ("unique_consecutive_with_counts", I(2, 9, hi=2), -1)]
CASES += [("masked_scatter", T(3, 4), B(3, 4), T(12)), ("masked_scatter", T(3, 4), B(4), T(3, 4)),
          ("masked_scatter", I(5), B(5), I(7)), ("masked_scatter", T(2), V([False, False], "bool"), T(0))]
for _how in ("sum", "prod", "mean", "amax", "amin"):
    for _own in (True, False):
        CASES += [("scatter_reduce", T(3, 4), 1, I(3, 6, hi=4), T(3, 6), _how, _own),
                  ("scatter_reduce", T(4, 3), 0, I(5, 2, hi=4), T(5, 2), _how, _own),
                  ("scatter_reduce", V([1.0, 0.0, 2.0]), 0, V([0, 0, 1, 0], "int64"), V([0.0, 2.0, 0.5, 2.0]), _how, _own),
                  ("scatter_reduce", I(5, lo=1), 0, I(9, hi=5), I(9, lo=-4), _how, _own)]
        if _how != "sum":
            CASES += [("index_reduce", T(4, 3), 0, V([2, 0, 2], "int64"), T(3, 3), _how, _own),
                      ("index_reduce", T(2, 4), 1, V([3, 1, 3, 3], "int64"), T(2, 4), _how, _own)]


def _entry(text):
    """An index as written above."""
    if not isinstance(text, str):
        return text
    if text == "...":
        return Ellipsis
    if text == "new":
        return None
    if text == ":":
        return slice(None)
    kind, *parts = text.split(":")
    numbers = [int(p) if p else None for p in parts]
    return numbers[0] if kind == "i" else slice(*numbers)


def _index(x, entries):
    return x[tuple(_entry(e) for e in entries)]


def _index_put(x, entries, value):
    y = x.clone()
    y[tuple(_entry(e) for e in entries)] = value
    return y


CALLS = {
    "isin": lambda x, among, unique=False, invert=False: torch.isin(x, among, assume_unique=unique, invert=invert),
    "unique_consecutive": lambda x, dim=None: torch.unique_consecutive(x, dim=dim),
    "unique_consecutive_with_counts": lambda x, dim=None:
        torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim),
    "scatter_reduce": lambda x, dim, index, source, how, own=True:
        torch.scatter_reduce(x, dim, index, source, how, include_self=own),
    "index_reduce": lambda x, dim, index, source, how, own=True:
        torch.index_reduce(x, dim, index, source, how, include_self=own),
    "index": _index,
    "index_put_": _index_put,
    "one_hot": lambda x, n=-1: F.one_hot(x, n),
    "embedding_max_norm": lambda i, w, padding, norm, kind: (F.embedding(i, w, padding, norm, kind), w.detach()),
    "embedding": lambda i, w, padding=None: F.embedding(i, w, padding),
}
