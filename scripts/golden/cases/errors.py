"""Calls that PyTorch refuses, so russet must refuse them by an exception of its own."""

import torch

from composites import B, I, K, T, V
from cases import contraction, elementwise, indexing, linalg, losses, movement, nn, reduction, warp

CASES = [("add", T(2, 3), T(4)), ("mul", T(2, 3), T(2, 4)), ("where", B(2), T(3), T(3)), ("matmul", T(2, 3), T(4, 5)),
         ("matmul", T(2, 3, 4), T(3, 4, 5)), ("matmul", T(), T(3)), ("mm", T(2, 3, 4), T(4, 5)), ("mm", T(2, 3), T(2, 3)),
         ("bmm", T(2, 3), T(3, 2)), ("addmm", T(3, 3), T(2, 3), T(3, 2)), ("linear", T(2, 3), T(5, 4)),
         ("reshape", T(2, 3), [4]), ("reshape", T(2, 3), [-1, -1]), ("reshape", T(2, 3), [4, -1]),
         ("view", T(2, 3), [7]), ("permute", T(2, 3), [0]), ("permute", T(2, 3), [0, 0]), ("permute", T(2, 3), [0, 2]),
         ("transpose", T(2, 3), 0, 2), ("expand", T(2, 3), [3, 3]), ("expand", T(2, 3), [3]), ("select", T(2, 3), 0, 2),
         ("select", T(2, 3), 2, 0), ("narrow", T(4), 0, 2, 3), ("unsqueeze", T(2), 3), ("flip", T(2, 3), [2]),
         ("flip", T(2, 3), [0, 0]), ("cat", [T(2, 3), T(2, 4)]), ("cat", [T(2), T(2, 3)]), ("stack", [T(2), T(3)]),
         ("split", T(5), [2, 2]), ("pad", T(2), [1]), ("pad", T(2), [-2, -1]), ("sum", T(2, 3), 2), ("sum", T(2, 3), -3),
         ("sum", T(2, 3), [0, 0]), ("amax", T(0, 3)), ("amax", T(0, 3), 0), ("argmax", T(0)), ("max", T(0, 2), 0),
         ("softmax", T(2, 3), 2), ("mean", I(3)), ("gather", T(3, 4), 1, I(3, 2, lo=4, hi=9)),
         ("gather", T(3, 4), 2, I(3, 2)), ("index_select", T(3), 0, V([5], "int64")), ("index_select", T(3, 4), 0, I(2, 2)),
         ("embedding", V([7], "int64"), T(5, 4)), ("index", T(3), [V([5], "int64")]), ("index", T(3), ["i:5"]),
         ("index", T(3), ["i:0", "i:0"]), ("one_hot", V([5], "int64"), 4), ("masked_fill", T(2, 3), B(2), 1.0),
         ("masked_fill", T(2), V([1, 0], "int64"), 1.0), ("bitwise_and", T(2), T(2)), ("sub", B(2), B(2)),
         ("conv2d", T(1, 3, 5, 5), T(2, 4, 3, 3)), ("conv2d", T(1, 3, 2, 2), T(2, 3, 3, 3)),
         ("conv2d", T(1, 3, 5, 5), T(2, 3, 3, 3), T(3)), ("conv2d", T(1, 4, 5, 5), T(3, 2, 3, 3), None, 1, 0, 1, 2),
         ("conv1d", T(2, 3), T(4, 3, 3)), ("max_pool2d", T(1, 1, 4, 4), 2, 2, 2), ("max_pool2d", T(4, 4), 2),
         ("layer_norm", T(2, 3), [4]), ("layer_norm", T(2, 3), [3], T(4)),
         ("cross_entropy", T(3, 4), V([0, 1, 4], "int64")), ("cross_entropy", T(3, 4), I(2, hi=4)),
         ("mse_loss", T(2, 3), T(4)), ("dropout", T(3), 1.5, True), ("pow", I(2), -1),
         ("tril", T(3)), ("diagonal", T(3)), ("dot", T(3), T(4)), ("dot", T(2, 2), T(2, 2)), ("neg", B(3)),
         ("cumsum", T(2, 3), 2), ("repeat", T(2, 3), [2])]
CASES += [("multinomial", V(weights), 1, replacement) for replacement in (False, True)
          for weights in ([0.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [1.0, float("inf")], [[1.0, 2.0], [0.0, 0.0]])]
CASES += [("bernoulli", V([0.5, p])) for p in (1.5, -0.5, float("nan"))]
_BYTES = I(3, dtype="uint8")
CASES += [("full_like", _BYTES, 300), ("full_like", I(3), float("nan")), ("full_like", I(3), float("inf")),
          ("full_like", _BYTES, 255.9), ("clamp", _BYTES, None, 300), ("where", B(3), _BYTES, 300),
          ("masked_fill", _BYTES, B(3), 300)]
CASES += [("grid_sample", T(2, 3, 4, 5), T(2, 4, 3, 3)), ("grid_sample", T(2, 3, 4, 5), T(1, 4, 3, 2)),
          ("grid_sample", T(1, 1, 2, 3, 4), T(1, 2, 2, 2, 3), "bicubic"), ("affine_grid", T(2, 2, 3), [1, 1, 3, 3]),
          ("local_response_norm", T(2, 3), 3), ("interpolate", T(1, 2, 5), [8], None, "linear", False, True),
          ("cdist", T(3, 4), T(5, 3)), ("cdist", T(3, 4), T(5, 4), -1.0), ("cummax", T(2, 3), 2), ("quantile", T(3), 1.5),
          ("quantile", I(3), 0.5), ("quantile", T(0), 0.5), ("histc", T(3), 0), ("histc", T(3), 3, 2.0, 1.0),
          ("unique", I(3, 2), 2), ("unique", I(3, 0), 0),
          ("masked_scatter", T(4), V([True, True, True, False], "bool"), T(2)), ("masked_scatter", T(4), B(4), I(4)),
          *[("scatter_reduce", T(3), 0, V([3], "int64"), T(1), how, own) for own in (True, False)
            for how in ("sum", "prod", "mean", "amax", "amin")], ("quantile", T(3), V([0.5, 1.5])),
          ("scatter_reduce", T(3), 0, I(3, hi=3), T(2), "sum"),
          ("index_reduce", T(3, 2), 0, V([0, 1], "int64"), T(3, 2), "prod"),
          *[("embedding_bag", I(4, hi=5), T(5, 3), V([1, 2], "int64"), K(mode=mode)) for mode in ("sum", "mean", "max")],
          ("embedding_bag", I(4, hi=5), T(5, 3)),
          ("embedding_bag", I(2, 2, hi=5), T(5, 3), V([0, 1], "int64"))]

CASES += [("conv3d", T(1, 3, 5, 5, 5), T(2, 4, 3, 3, 3)), ("conv3d", T(1, 3, 2, 5, 5), T(2, 3, 3, 3, 3)),
          ("conv3d", T(1, 3, 5, 5, 2), T(2, 3, 3, 3, 3)), ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3)),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), T(3)), ("conv3d", T(5, 5, 5), T(2, 3, 3, 3, 3)),
          ("conv3d", T(1, 4, 5, 5, 5), T(3, 2, 3, 3, 3), None, 1, 0, 1, 2),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), None, [0, 1, 1]),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), None, 1, [-1, 0, 0]),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), None, 1, 0, [0, 1, 1]),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), None, 1, 0, 1, 0),
          ("conv3d", T(1, 3, 5, 5, 5), T(2, 3, 3, 3, 3), None, [2, 1, 1], "same"),
          ("conv_transpose1d", T(1, 3, 5), T(3, 2, 3), None, 2, 0, 2),
          ("conv_transpose2d", T(1, 3, 5, 5), T(3, 2, 3, 3), None, [3, 2], 0, [2, 2]),
          ("conv_transpose2d", T(1, 3, 5, 5), T(2, 2, 3, 3)), ("conv_transpose2d", T(1, 3, 1, 1), T(3, 2, 1, 1), None, 1, 1),
          ("conv_transpose3d", T(1, 3, 5, 5, 5), T(3, 2, 3, 3, 3), None, [2, 3, 3], 0, [2, 0, 0]),
          ("conv_transpose3d", T(1, 3, 5, 5, 5), T(2, 2, 3, 3, 3)),
          ("conv_transpose3d", T(1, 3, 5, 5, 5), T(3, 2, 3, 3, 3), T(3)),
          ("conv_transpose3d", T(1, 3, 1, 5, 5), T(3, 2, 1, 3, 3), None, 1, [1, 0, 0]),
          ("max_pool3d", T(1, 1, 4, 4, 4), 2, 2, [2, 0, 0]), ("max_pool3d", T(4, 4, 4), 2),
          ("max_pool3d", T(1, 1, 1, 4, 4), 2), ("avg_pool3d", T(1, 1, 4, 4, 4), 2, 2, [2, 0, 0]),
          ("avg_pool3d", T(1, 1, 4, 4, 4), 2, 2, 0, False, True, 0), ("avg_pool3d", T(4, 4, 4), 2),
          ("adaptive_avg_pool3d", T(4, 4, 4), 2), ("adaptive_max_pool3d", T(4, 4, 4), 2),
          ("max_unpool3d", T(1, 1, 1, 2, 2), I(1, 1, 1, 2, 3, hi=4), 2),
          ("max_unpool3d", T(1, 1, 1, 2, 2), I(1, 1, 1, 2, 2, hi=4), 2, 2, 0, [4, 4, 4]),
          ("max_unpool1d", T(1, 1, 2), V([[[0, 4]]], "int64"), 2), ("max_unpool1d", T(1, 1, 2), I(1, 1, 2), 2, 2, 0, 6)]

_SINGULAR = V([[1.0, 2.0], [2.0, 4.0]])
CASES += [("linalg_solve", _SINGULAR, T(2, 1)), ("inverse", _SINGULAR), ("matrix_power", _SINGULAR, -1),
          ("linalg_cholesky", V([[1.0, 2.0], [2.0, 1.0]])), ("linalg_svd", V([[1.0, float("nan")], [0.0, 1.0]])),
          ("inverse", T(2, 3)), ("inverse", I(2, 2)), ("det", T(2, 3)), ("det", T(3)), ("linalg_qr", T(2, 3), "raw"),
          ("linalg_eigh", T(3, 2)), ("linalg_solve", T(3, 3), T(2, 2)), ("linalg_multi_dot", [T(2, 3), T(2, 3)]),
          ("linalg_matrix_norm", T(3, 3), 3.0), ("linalg_matrix_norm", T(3)), ("linalg_norm", T(2, 3, 4), 2.0),
          ("linalg_lstsq", T(3, 2), T(4, 1)), ("linalg_solve_triangular", T(3, 3), T(2, 2), K(upper=True)),
          ("linalg_cond", T(2, 3), 1.0), ("matrix_exp", T(2, 3))]
_CTC = [T(5, 2, 4), V([[1, 2], [3, 1]], "int64"), V([5, 4], "int64"), V([2, 1], "int64")]
CASES += [("ctc_loss", *_CTC, 4), ("ctc_loss", *_CTC, -1), ("ctc_loss", *_CTC[:2], V([6, 4], "int64"), _CTC[3]),
          ("ctc_loss", *_CTC[:2], V([-1, 4], "int64"), _CTC[3]), ("ctc_loss", *_CTC[:2], V([5], "int64"), _CTC[3]),
          ("ctc_loss", *_CTC[:2], V([5.0, 4.0]), _CTC[3]), ("ctc_loss", *_CTC[:3], V([3, 1], "int64")),
          ("ctc_loss", *_CTC[:3], V([-1, 1], "int64")), ("ctc_loss", *_CTC[:3], V([2, 1, 1], "int64")),
          ("ctc_loss", _CTC[0], V([1, 2], "int64"), *_CTC[2:]), ("ctc_loss", _CTC[0], V([1, 2, 3, 1], "int64"), *_CTC[2:]),
          ("ctc_loss", _CTC[0], I(3, 2, hi=4), *_CTC[2:]), ("ctc_loss", T(4), *_CTC[1:])]
CASES += [("warp_affine", T(1, 2, 4, 5), T(1, 3, 3), [4, 5]), ("warp_affine", T(2, 4, 5), T(1, 2, 3), [4, 5]),
          ("warp_affine", T(2, 1, 4, 5), T(3, 2, 3), [4, 5]), ("warp_affine", T(1, 1, 4, 5), T(1, 2, 3), [-1, 5]),
          ("warp_affine", T(1, 3, 4, 5), T(1, 2, 3), [4, 5], "bilinear", "fill", True, T(2)),
          ("warp_perspective", T(1, 1, 4, 5), T(1, 2, 3), [4, 5]), ("rotate", T(4, 5), T(1)), ("rotate", T(1, 1, 4, 5), T(3, 2)),
          ("get_rotation_matrix2d", T(2, 2), T(1), T(2, 2)), ("affine", T(4, 5), T(1, 2, 3)),
          ("gaussian_blur2d", T(1, 1, 4, 5), 4, [1.0, 1.0]), ("gaussian_blur2d", T(1, 1, 4, 5), 3, [1.0, 0.0]),
          ("gaussian_blur2d", T(1, 4, 5), 3, [1.0, 1.0]), ("gaussian_blur2d", T(1, 1, 4, 5), 3, T(2)),
          ("gaussian_blur2d", T(3, 1, 4, 5), 3, T(2, 2, lo=0.5, hi=1)), ("gaussian_blur2d", T(1, 1, 4, 5), 9, [1.0, 1.0])]


CALLS = {}
for _module in (elementwise, reduction, movement, indexing, contraction, linalg, nn, warp, losses):
    CALLS |= _module.CALLS
