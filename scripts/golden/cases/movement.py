"""Views, joins, pads and other rearrangements."""

import torch
import torch.nn.functional as F

from composites import B, I, T, V

CASES = [("reshape", T(2, 6), [3, 4]), ("reshape", T(2, 6), [-1]), ("reshape", T(2, 6), [2, -1, 2]),
         ("reshape", T(), [1, 1]), ("reshape", T(1), []), ("reshape", T(0, 3), [3, 0]), ("view", T(2, 6), [4, 3]),
         ("flatten", T(2, 3, 4)), ("flatten", T(2, 3, 4), 1), ("flatten", T(2, 3, 4), 0, 1), ("flatten", T()),
         ("unflatten", T(2, 6), 1, [2, 3]), ("unflatten", T(6), 0, [-1, 2])]
CASES += [("permute", T(2, 3, 4), [2, 0, 1]), ("permute", T(2, 3, 4), [-1, 1, 0]), ("transpose", T(2, 3, 4), 0, -1),
          ("transpose", T(2, 3), 0, 1), ("t", T(2, 3)), ("t", T(3)), ("movedim", T(2, 3, 4), 0, 2),
          ("swapaxes", T(2, 3), 0, 1)]
CASES += [("expand", T(1, 3), [4, 3]), ("expand", T(3), [2, 3]), ("expand", T(1, 3), [4, -1]), ("expand", T(), [2, 2]),
          ("broadcast_to", T(3, 1), [2, 3, 4]), ("expand_as", T(1, 3), T(2, 3))]
CASES += [("squeeze", T(1, 3, 1)), ("squeeze", T(1, 3, 1), 0), ("squeeze", T(1, 3, 1), 1), ("squeeze", T(1, 3, 1), -1),
          ("unsqueeze", T(2, 3), 0), ("unsqueeze", T(2, 3), -1), ("unsqueeze", T(), 0)]
CASES += [("flip", T(2, 3, 4), [0]), ("flip", T(2, 3, 4), [0, -1]), ("flip", I(5), [0]), ("flip", T(0, 2), [0])]
CASES += [("roll", T(3, 4), 1, 0), ("roll", T(3, 4), -1, 1), ("roll", T(3, 4), [1, 2], [0, 1]), ("roll", T(3, 4), 5)]
CASES += [("cat", [T(2, 3), T(1, 3)]), ("cat", [T(2, 3), T(2, 1), T(2, 2)], 1), ("cat", [T(2, 3), T(2, 3)], -1),
          ("cat", [T(0, 3), T(2, 3)]), ("cat", [I(2), I(3)]), ("cat", [I(2), T(3)]), ("cat", [B(2), I(2)]),
          ("cat", [T(0), T(2, 3)])]
CASES += [("stack", [T(2, 3), T(2, 3)]), ("stack", [T(2, 3), T(2, 3), T(2, 3)], 1), ("stack", [T(2), T(2)], -1),
          ("stack", [T(), T()]), ("stack", [I(2), I(2)])]
CASES += [("split", T(5, 2), 2), ("split", T(2, 6), 4, 1), ("split", T(2, 6), [1, 3, 2], 1), ("chunk", T(5, 2), 3),
          ("chunk", T(2, 6), 3, 1), ("chunk", T(2), 4), ("unbind", T(3, 2)), ("unbind", T(3, 2), 1)]
CASES += [("narrow", T(5, 3), 0, 1, 3), ("narrow", T(5, 3), 1, -2, 2), ("select", T(4, 3), 0, 2),
          ("select", T(4, 3), -1, -1), ("slice", T(7, 3), 0, 1, 6, 2), ("slice", T(7), 0, None, None, 3),
          ("slice", T(7), 0, -3, None, 1), ("slice", T(7), 0, 5, 2, 1), ("slice", T(2, 7), 1, None, -2, 1),
          ("slice", T(7), 0, -100, 100, 1)]
CASES += [("diagonal", T(3, 4)), ("diagonal", T(3, 4), 1), ("diagonal", T(3, 4), -1), ("diagonal", T(2, 3, 4), 0, 1, 2),
          ("diagonal", T(2, 3, 4), 0, 0, -1), ("diag", T(3)), ("diag", T(3, 4)), ("diag", T(3), 1), ("diag", T(3, 3), -1)]
CASES += [(name, T(4, 5), *a) for name in ("tril", "triu") for a in ([], [1], [-2], [9])]
CASES += [("tril", T(2, 3, 3)), ("triu", I(3, 3)), ("tril", B(3, 3))]
CASES += [("tile", T(2, 3), [2]), ("tile", T(2, 3), [2, 1, 2]), ("repeat", T(2, 3), [2, 2]), ("repeat", T(3), [2, 3]),
          ("repeat_interleave", T(2, 3), 2, 1), ("repeat_interleave", T(2, 3), 3, 0), ("repeat_interleave", T(2, 2), 2)]
CASES += [("pad", T(2, 3), [1, 2]), ("pad", T(2, 3), [1, 0, 2, 1], "constant", 3.5), ("pad", T(2, 3), [-1, 1]),
          ("pad", T(2, 3), [0, 0, 1, -1], "constant", -1.0), ("pad", I(3), [1, 1], "constant", 7)]
CASES += [("pad", T(1, 2, 4), [2, 1], mode) for mode in ("reflect", "replicate", "circular")]
CASES += [("pad", T(1, 1, 3, 4), [1, 2, 2, 1], mode) for mode in ("reflect", "replicate", "circular")]
CASES += [("meshgrid", [T(2), T(3)]), ("rot90", T(2, 3)), ("pixel_shuffle", T(1, 8, 2, 2), 2),
          ("unfold", T(1, 2, 4, 4), 2, 1, 0, 2), ("clone", T(2, 3)), ("contiguous", T(2, 3))]
CASES += [("pixel_unshuffle", T(1, 2, 4, 4), 2), ("channel_shuffle", T(1, 6, 2, 2), 3), ("diag_embed", T(2, 3)),
          ("diag_embed", T(3), 1), ("trace", T(3, 4)), ("fold", T(1, 8, 4), [4, 4], 2, 1, 0, 2),
          ("fold", T(1, 4, 9), [4, 4], 2, 1, 0, 1), ("unfold", T(1, 2, 5, 4), [2, 3], 1, 1, 2)]
# interpolate: size, factor, mode, align_corners
CASES += [("interpolate", T(1, 2, 3, 4), [6, 8]), ("interpolate", T(1, 2, 3, 4), [5, 3], None, "nearest"),
          ("interpolate", T(1, 2, 3, 4), None, 2.0, "nearest"), ("interpolate", T(1, 2, 3, 4), [5, 3], None, "bilinear"),
          ("interpolate", T(1, 2, 3, 4), [5, 7], None, "bilinear", True),
          ("interpolate", T(1, 2, 3, 4), None, 1.7, "bilinear"), ("interpolate", T(1, 2, 5), [8], None, "linear"),
          ("interpolate", T(1, 2, 3, 4), [5, 3], None, "nearest-exact"),
          ("interpolate", T(1, 2, 3, 4), [5, 7], None, "bicubic"), ("interpolate", T(1, 2, 5, 6), [3, 2], None, "bicubic"),
          ("interpolate", T(1, 2, 3, 4), [5, 7], None, "bicubic", True),
          ("interpolate", T(2, 1, 3, 4), None, 1.7, "bicubic")]
CASES += [("to_float64", I(3)), ("to_int64", V([1.7, -1.7, 0.0])), ("to_bool", V([0.0, 0.5, -2.0])),
          ("to_float16", T(4, grad=False)), ("to_bfloat16", T(6, grad=False)), ("to_uint8", I(4)),
          ("to_int8", V([200, 127, -129], "int64")), ("to_int32", V([2.9, -2.9, 0.5])), ("to_float32", B(3))]
# With antialias: images that shrink, stay, grow.
CASES += [("interpolate", T(1, 2, 9, 11), size, None, mode, align, True) for mode in ("bilinear", "bicubic")
          for size in ([4, 3], [9, 5], [12, 7]) for align in (False, True)]
CASES += [("interpolate", T(2, 1, 7, 8), None, 0.4, mode, False, True) for mode in ("bilinear", "bicubic")]


def _slice(x, dim, start, stop, step):
    return x[(slice(None),) * dim + (slice(start, stop, step),)]


CALLS = {
    "pad": lambda x, pad, mode="constant", value=None: F.pad(x, pad, mode, value),
    "slice": _slice,
    "split": lambda x, size, dim=0: torch.split(x, size, dim),
    "meshgrid": lambda tensors: torch.meshgrid(tensors, indexing="ij"),
    "rot90": lambda x: torch.rot90(x),
    "repeat_interleave": lambda x, n, dim=None: torch.repeat_interleave(x, n, dim),
    "unfold": lambda x, k, d, p, s: F.unfold(x, k, d, p, s),
    "fold": lambda x, o, k, d, p, s: F.fold(x, o, k, d, p, s),
    "interpolate": lambda x, size=None, factor=None, mode="nearest", align=None, antialias=False:
        F.interpolate(x, size, factor, mode, align, antialias=antialias),
    "t": lambda x: torch.t(x),
    "select": lambda x, dim, i: torch.select(x, dim, i),
} | {f"to_{name}": (lambda dtype: lambda x: x.to(dtype))(getattr(torch, name))
     for name in ("float64", "int64", "bool", "float16", "bfloat16", "uint8", "int8", "int32", "float32")}
