"""Matrix products in all their forms, and convolutions."""

import torch
import torch.nn.functional as F

from composites import I, T

CASES = [("matmul", T(3, 4), T(4, 5)), ("matmul", T(4), T(4)), ("matmul", T(4), T(4, 5)), ("matmul", T(3, 4), T(4)),
         ("matmul", T(2, 3, 4), T(2, 4, 5)), ("matmul", T(2, 3, 4), T(4, 5)), ("matmul", T(3, 4), T(2, 4, 5)),
         ("matmul", T(2, 1, 3, 4), T(5, 4, 2)), ("matmul", T(2, 3, 4), T(4)), ("matmul", T(4), T(2, 4, 3)),
         ("matmul", T(3, 0), T(0, 2)), ("matmul", T(0, 3), T(3, 2)), ("matmul", T(2, 0, 3), T(3, 2)),
         ("matmul", T(1, 1), T(1, 1)), ("matmul", I(2, 3), I(3, 2)), ("matmul", T(17, 33), T(33, 9))]
CASES += [("mm", T(3, 4), T(4, 2)), ("bmm", T(2, 3, 4), T(2, 4, 2)), ("mv", T(3, 4), T(4)), ("dot", T(5), T(5)),
          ("outer", T(3), T(4)), ("addmm", T(3, 5), T(3, 4), T(4, 5)), ("addmm", T(5), T(3, 4), T(4, 5)),
          ("addmm", T(3, 5), T(3, 4), T(4, 5), 0.5, 2.0), ("addmm", T(3, 1), T(3, 4), T(4, 5), 0.0),
          ("baddbmm", T(2, 3, 5), T(2, 3, 4), T(2, 4, 5)), ("einsum", "bij,bjk->bik", [T(2, 3, 4), T(2, 4, 2)]),
          ("einsum", "ij->ji", [T(2, 3)]), ("einsum", "i,j->ij", [T(2), T(3)]), ("einsum", "bhqd,bhkd->bhqk",
                                                                               [T(1, 2, 3, 4), T(1, 2, 5, 4)])]
CASES += [("linear", T(3, 4), T(5, 4)), ("linear", T(3, 4), T(5, 4), T(5)), ("linear", T(2, 3, 4), T(5, 4), T(5)),
          ("linear", T(4), T(5, 4), T(5)), ("linear", T(0, 4), T(5, 4), T(5))]
# conv: input, weight, bias, stride, padding, dilation, groups
CASES += [("conv1d", T(2, 3, 8), T(4, 3, 3)), ("conv1d", T(2, 3, 8), T(4, 3, 3), T(4), 2, 1),
          ("conv1d", T(2, 4, 9), T(6, 2, 3), T(6), 1, 2, 2, 2), ("conv1d", T(3, 8), T(4, 3, 3), T(4)),
          ("conv1d", T(1, 1, 5), T(1, 1, 5), None, 1, 0, 1, 1)]
CASES += [("conv2d", T(2, 3, 5, 6), T(4, 3, 3, 3)), ("conv2d", T(2, 3, 5, 6), T(4, 3, 3, 3), T(4)),
          ("conv2d", T(2, 3, 7, 7), T(4, 3, 3, 3), T(4), 2, 1), ("conv2d", T(1, 3, 7, 8), T(2, 3, 3, 2), None, [2, 1],
                                                                [1, 0], [1, 2]),
          ("conv2d", T(2, 4, 5, 5), T(6, 2, 3, 3), T(6), 1, 1, 1, 2),
          ("conv2d", T(2, 4, 5, 5), T(4, 1, 3, 3), None, 1, 1, 1, 4),
          ("conv2d", T(2, 4, 6, 6), T(8, 1, 5, 5), T(8), 2, 2, 1, 4), ("conv2d", T(1, 2, 4, 4), T(3, 2, 1, 1), T(3)),
          ("conv2d", T(3, 5, 6), T(4, 3, 3, 3), T(4)), ("conv2d", T(0, 3, 5, 5), T(4, 3, 3, 3), T(4)),
          ("conv2d", T(1, 3, 9, 9), T(2, 3, 3, 3), T(2), 3, 4, 2), ("conv2d", T(2, 3, 6, 6), T(4, 3, 3, 3), T(4), 1,
                                                                 "same"),
          ("conv2d", T(2, 3, 6, 6), T(4, 3, 2, 4), T(4), 1, "same"),
          ("conv2d", T(2, 3, 6, 6), T(4, 3, 3, 3), None, 1, "valid")]
CASES += [("conv_transpose2d", T(1, 3, 4, 4), T(3, 2, 3, 3), T(2), 2, 1),
          ("conv_transpose2d", T(1, 4, 3, 3), T(4, 2, 3, 3), T(4), 2, 1, 1, 2)]
CASES += [("conv_transpose1d", T(2, 3, 5), T(3, 4, 3), T(4), 2, 1, 1), ("kron", T(2, 3), T(2, 2)),
          ("conv_transpose2d", T(1, 2, 3, 4), T(2, 3, 2, 3), None, [2, 1], [1, 0], 0, 1, [2, 1]),
          ("tensordot", T(2, 3, 4), T(3, 4, 2)), ("tensordot", T(2, 3), T(3, 4), 1)]
# Three axes: with stride, padding, dilation, groups; output padding, also as large as the stride.
CASES += [("conv3d", T(2, 3, 4, 5, 6), T(4, 3, 3, 2, 3), T(4)), ("conv3d", T(1, 2, 3, 4, 4), T(3, 2, 1, 1, 1)),
          ("conv3d", T(1, 2, 7, 5, 6), T(3, 2, 3, 3, 2), T(3), [2, 1, 2], [1, 0, 1]),
          ("conv3d", T(1, 4, 6, 5, 5), T(6, 2, 2, 3, 3), T(6), 1, [2, 1, 1], [3, 1, 2], 2),
          ("conv3d", T(2, 3, 4, 4, 4), T(3, 1, 3, 3, 3), None, 1, 1, 1, 3),
          ("conv3d", T(1, 2, 6, 4, 4), T(3, 2, 2, 2, 2), T(3), [2, 2, 2]),
          ("conv3d", T(1, 2, 3, 4, 5), T(2, 2, 2, 3, 4), T(2), 1, "same", [2, 1, 1]),
          ("conv3d", T(2, 3, 4, 4), T(2, 2, 2, 3, 3), T(2), 1, "valid"),
          ("conv3d", T(0, 2, 3, 4, 4), T(3, 2, 2, 3, 3), T(3))]
CASES += [("conv_transpose1d", T(3, 4), T(3, 2, 3), T(2)),
          ("conv_transpose1d", T(1, 4, 5), T(4, 3, 3), T(6), 3, 1, 2, 2, 2),
          ("conv_transpose1d", T(1, 2, 4), T(2, 2, 3), None, 1, 1, 3, 1, 4),
          ("conv_transpose2d", T(1, 2, 3, 3), T(2, 2, 2, 3), T(2), [1, 2], [0, 1], [1, 2], 1, [2, 3]),
          ("conv_transpose2d", T(2, 3, 4), T(2, 3, 2, 2), T(3), 2), ("conv_transpose2d", T(0, 2, 3, 3), T(2, 3, 2, 2))]
CASES += [("conv_transpose3d", T(2, 3, 2, 3, 4), T(3, 2, 3, 2, 3), T(2)),
          ("conv_transpose3d", T(1, 2, 3, 3, 2), T(2, 3, 3, 3, 2), T(3), [2, 1, 2], [1, 0, 1], [1, 0, 0]),
          ("conv_transpose3d", T(1, 4, 3, 2, 3), T(4, 2, 2, 3, 2), T(4), 2, 1, 1, 2),
          ("conv_transpose3d", T(1, 2, 3, 2, 2), T(2, 2, 2, 2, 3), None, 1, [1, 0, 2], [1, 1, 2], 1, [2, 2, 3]),
          ("conv_transpose3d", T(1, 3, 2, 3, 3), T(3, 1, 2, 2, 2), None, 2, 0, 0, 3),
          ("conv_transpose3d", T(2, 2, 3, 3), T(2, 2, 1, 2, 2), T(2)),
          ("conv_transpose3d", T(0, 2, 2, 3, 3), T(2, 3, 2, 2, 2), T(3))]
CASES += [("cdist", T(3, 4), T(5, 4), p) for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))]
CASES += [("cdist", T(2, 3, 4), T(2, 5, 4)), ("cdist", T(2, 1, 3, 4), T(3, 5, 4), 1.0), ("cdist", T(3, 0), T(2, 0))]


CALLS = {
    "addmm": lambda c, a, b, beta=1, alpha=1: torch.addmm(c, a, b, beta=beta, alpha=alpha),
    "einsum": lambda text, tensors: torch.einsum(text, *tensors),
    "linear": lambda x, w, b=None: F.linear(x, w, b),
}
