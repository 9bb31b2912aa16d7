"""Activations, pooling, normalisation, attention, dropout."""

import torch
import torch.nn.functional as F

from composites import B, I, K, T, V

_KINKS = V([-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 7.0])
_PLAIN = ["relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign",
          "hardtanh", "hardswish", "hardsigmoid", "logsigmoid", "tanhshrink", "softshrink", "hardshrink"]
CASES = [(name, T(3, 5, lo=-5, hi=5)) for name in _PLAIN]
CASES += [(name, _KINKS) for name in ("relu", "relu6", "leaky_relu", "elu", "hardtanh", "hardswish", "hardsigmoid",
                                      "gelu", "silu", "softplus")]
CASES += [("leaky_relu", T(5), 0.2), ("elu", T(5), 0.5), ("celu", T(5), 2.0), ("gelu", T(3, 5, lo=-4, hi=4), "tanh"),
          ("gelu", T(5), "none"), ("softplus", T(5, lo=-5, hi=5), 2.0), ("softplus", T(5, lo=15, hi=25)),
          ("hardtanh", T(9), -0.5, 0.25), ("threshold", T(9), 0.1, 20.0), ("prelu", T(2, 3, 4), T(3)),
          ("prelu", T(2, 3), T(1)), ("glu", T(2, 6)), ("glu", T(4, 2), 0), ("silu", V([-90.0, 90.0, 0.0])),
          ("gelu", V([-20.0, 20.0, -5.0, 0.0])), ("relu", I(5, lo=-5, hi=5)), ("softmax", T(2, 3, 4), 1),
          ("softmin", T(2, 3), 1), ("logsigmoid", V([-90.0, 90.0, 0.0])), ("softshrink", T(9), 0.2)]
# pool: input, kernel, stride, padding, ...
CASES += [("max_pool2d", T(2, 3, 6, 6), 2), ("max_pool2d", T(2, 3, 7, 6), 3, 2, 1), ("max_pool2d", T(1, 2, 7, 7), [3, 2],
                                                                                   [2, 1], [1, 0]),
          ("max_pool2d", T(1, 2, 7, 7), 2, 2, 0, 2), ("max_pool2d", T(1, 2, 5, 5), 2, 2, 0, 1, True),
          ("max_pool2d", T(2, 5, 5), 2), ("max_pool2d", V([[[[1.0, 1.0], [1.0, 1.0]]]]), 2),
          ("max_pool1d", T(2, 3, 8), 2), ("max_pool1d", T(2, 3, 8), 3, 1, 1)]
CASES += [("max_pool2d_with_indices", T(1, 2, 6, 5), 2), ("max_pool2d_with_indices", T(1, 2, 6, 5), 3, 2, 1),
          ("avg_pool2d", T(1, 2, 6, 6), 2, 2, 0, False, True, 3)]
_PLACES = V([[[[0, 3], [12, 10]]], [[[5, 2], [9, 15]]]], "int64")
CASES += [("max_unpool2d", T(2, 1, 2, 2), _PLACES, 2), ("max_unpool2d", T(2, 1, 2, 2), _PLACES, 2, 2, 0, [5, 4]),
          ("max_unpool2d", T(2, 1, 2, 2), _PLACES, 3, 2, 0)]
CASES += [("avg_pool2d", T(2, 3, 6, 6), 2), ("avg_pool2d", T(2, 3, 7, 6), 3, 2, 1),
          ("avg_pool2d", T(1, 2, 7, 7), 3, 2, 1, False, False), ("avg_pool2d", T(1, 2, 7, 7), [3, 2], [2, 1], [1, 0]),
          ("avg_pool2d", T(1, 2, 5, 5), 2, 2, 0, True), ("avg_pool2d", T(2, 5, 5), 2), ("avg_pool1d", T(2, 3, 8), 2),
          ("avg_pool1d", T(2, 3, 8), 3, 1, 1)]
CASES += [("adaptive_avg_pool2d", T(2, 3, 6, 6), 1), ("adaptive_avg_pool2d", T(2, 3, 7, 5), [3, 2]),
          ("adaptive_avg_pool2d", T(1, 2, 4, 4), 6), ("adaptive_avg_pool2d", T(1, 2, 5, 4), [5, 2]),
          ("adaptive_max_pool2d", T(2, 3, 6, 6), 1), ("adaptive_max_pool2d", T(2, 3, 7, 5), [3, 2]),
          ("adaptive_avg_pool1d", T(2, 3, 7), 3), ("adaptive_max_pool1d", T(2, 3, 7), 3)]
# Three axes. The maxima of equal elements: whose gradient is the first's in row-major order.
_EQUAL = V([[[[[1.0, 2.0], [2.0, 0.0]], [[2.0, 2.0], [1.0, 2.0]]]]])
CASES += [("max_pool3d", T(2, 3, 4, 4, 6), 2), ("max_pool3d", T(1, 2, 5, 7, 6), 3, 2, 1), ("max_pool3d", _EQUAL, 2),
          ("max_pool3d", T(1, 2, 5, 6, 7), [3, 2, 2], [1, 2, 1], [1, 0, 1], [1, 3, 2]),
          ("max_pool3d", T(1, 2, 5, 5, 4), 2, 2, 0, 1, True), ("max_pool3d", T(2, 3, 4, 5), [1, 2, 3]),
          ("max_pool3d_with_indices", T(2, 2, 4, 5, 4), 2), ("max_pool3d_with_indices", _EQUAL, 2),
          ("max_pool3d_with_indices", T(1, 2, 5, 6, 7), [3, 2, 2], [1, 2, 1], [1, 0, 1], [1, 3, 2]),
          ("max_pool3d_with_indices", T(2, 5, 5, 4), 3, 2, 1, 1, True)]
CASES += [("max_unpool1d", T(2, 1, 3), V([[[0, 3, 5]], [[1, 2, 4]]], "int64"), 2),
          ("max_unpool1d", T(1, 3), V([[1, 2, 6]], "int64"), 2, 2, 0, 7), ("max_unpool2d", T(1, 2, 2), V(
              [[[1, 2], [8, 15]]], "int64"), 3, 2, 1, [4, 4]),
          ("max_unpool3d", T(1, 2, 1, 2, 2), V([[[[[0, 3], [12, 31]]], [[[17, 2], [9, 26]]]]], "int64"), 2),
          ("max_unpool3d", T(2, 1, 1, 2), V([[[[0, 11]]], [[[7, 5]]]], "int64"), [2, 2, 1], 2, 0, [3, 2, 3])]
CASES += [("avg_pool3d", T(2, 3, 4, 4, 6), 2), ("avg_pool3d", T(1, 2, 5, 7, 6), 3, 2, 1),
          ("avg_pool3d", T(1, 2, 5, 7, 6), 3, 2, 1, False, False), ("avg_pool3d", T(1, 2, 5, 5, 4), 2, 2, 0, True),
          ("avg_pool3d", T(1, 2, 5, 6, 6), [2, 3, 4], [2, 1, 3], [1, 1, 2], True),
          ("avg_pool3d", T(1, 2, 5, 6, 6), [2, 3, 4], [2, 1, 3], [1, 1, 2], True, False),
          ("avg_pool3d", T(2, 4, 4, 4), 2, 2, 1, False, True, 3)]
CASES += [("adaptive_avg_pool3d", T(2, 3, 4, 6, 6), 1), ("adaptive_avg_pool3d", T(1, 2, 5, 7, 4), [3, 2, 6]),
          ("adaptive_avg_pool3d", T(2, 4, 6, 3), [2, 3, 3]), ("adaptive_max_pool3d", T(2, 3, 4, 6, 6), 1),
          ("adaptive_max_pool3d", T(1, 2, 5, 7, 4), [3, 2, 6]), ("adaptive_max_pool3d", T(2, 4, 6, 3), [4, 6, 3])]
# batch_norm: input, running mean, running variance, weight, bias, training, momentum, eps; results: the output and the
# running statistics after the call.
_MEAN, _VAR = T(3, grad=False), T(3, lo=0.5, hi=2, grad=False)
CASES += [("batch_norm", T(4, 3, 2, 2), _MEAN, _VAR, T(3), T(3), True),
          ("batch_norm", T(4, 3, 2, 2), _MEAN, _VAR, T(3), T(3), False),
          ("batch_norm", T(4, 3, 2, 2), _MEAN, _VAR, None, None, True, 0.3, 1e-3),
          ("batch_norm", T(5, 3), _MEAN, _VAR, T(3), T(3), True), ("batch_norm", T(5, 3), _MEAN, _VAR),
          ("batch_norm", T(4, 3, 7), _MEAN, _VAR, T(3), T(3), True, 0.5)]
CASES += [("layer_norm", T(2, 3, 4), [4]), ("layer_norm", T(2, 3, 4), [4], T(4), T(4)),
          ("layer_norm", T(2, 3, 4), [3, 4], T(3, 4), T(3, 4)), ("layer_norm", T(2, 5), [5], T(5), None, 1e-3),
          ("layer_norm", T(3, 64, lo=99, hi=101), [64], T(64), T(64)), ("layer_norm", T(0, 4), [4], T(4), T(4))]
CASES += [("group_norm", T(2, 6, 3), 3, T(6), T(6)), ("group_norm", T(2, 6, 2, 2), 2), ("instance_norm", T(2, 3, 5)),
          ("rms_norm", T(2, 5), [5], T(5), 1e-6), ("normalize", T(3, 4)), ("normalize", T(3, 4), 2.0, 0),
          ("normalize", T(3, 4), 1.0, 1), ("cosine_similarity", T(3, 4), T(3, 4)), ("cosine_similarity", T(3, 4), T(4), 1)]
# scaled_dot_product_attention: query, key, value, mask, dropout, causal, scale
_Q, _K = T(2, 2, 3, 4), T(2, 2, 5, 4)
CASES += [("scaled_dot_product_attention", _Q, _K, T(2, 2, 5, 6)), ("scaled_dot_product_attention", _Q, _Q, _Q, None, 0.0,
                                                                  True),
          ("scaled_dot_product_attention", _Q, _K, _K, B(3, 5)),
          ("scaled_dot_product_attention", _Q, _K, _K, T(2, 1, 3, 5)),
          ("scaled_dot_product_attention", _Q, _K, _K, None, 0.0, False, 0.25),
          ("scaled_dot_product_attention", T(3, 4), T(5, 4), T(5, 4)),
          ("scaled_dot_product_attention", T(2, 3, 4), T(2, 5, 4), T(2, 5, 4), None, 0.0, True)]
CASES += [("dropout", T(3, 4), 0.5, False), ("dropout", T(3, 4), 0.0, True), ("dropout", T(3, 4), 1.0, True)]
CASES += [("local_response_norm", T(2, 5, 3, 2), 3), ("local_response_norm", T(2, 4, 3), 2, 0.5, 0.6, 2.0),
          ("local_response_norm", T(1, 3, 2, 2, 2), 5, 1.0), ("local_response_norm", T(2, 3, 4), 1, 0.7)]
# grid_sample: input, grid, mode, padding_mode, align_corners
_GRID, _VOLUME_GRID = T(2, 4, 3, 2, lo=-1.6, hi=1.6), T(2, 2, 3, 2, 3, lo=-1.5, hi=1.5)
CASES += [("grid_sample", T(2, 3, 4, 5), _GRID, mode, padding, align) for mode in ("bilinear", "nearest", "bicubic")
          for padding in ("zeros", "border", "reflection") for align in (False, True)]
CASES += [("grid_sample", T(2, 2, 3, 4, 5), _VOLUME_GRID, mode, padding, align) for mode in ("bilinear", "nearest")
          for padding in ("zeros", "border", "reflection") for align in (False, True)]
CASES += [("grid_sample", T(1, 1, 3, 1), T(1, 2, 2, 2, lo=-4, hi=4), "bilinear", "reflection", True),
          ("grid_sample", T(2, 1, 3, 3), _GRID),
          ("grid_sample", T(1, 1, 3, 3), V([[[[float("nan"), 0.0], [float("inf"), 0.0]]]], grad=False))]
CASES += [("affine_grid", T(2, 2, 3), [2, 3, 4, 5], align) for align in (False, True)]
CASES += [("affine_grid", T(2, 3, 4), [2, 1, 2, 3, 4], align) for align in (False, True)]
CASES += [("affine_grid", T(1, 2, 3), [1, 1, 1, 4], True), ("affine_grid", T(1, 2, 3), [1, 1, 3, 3])]
# embedding_bag: input, weight, offsets, and options by name
_BAGS = I(7, hi=5)
for _mode in ("sum", "mean", "max"):
    CASES += [("embedding_bag", _BAGS, T(5, 3), V([0, 2, 2, 5], "int64"), K(mode=_mode)),
              ("embedding_bag", I(3, 4, hi=5), T(5, 3), K(mode=_mode)),
              ("embedding_bag", I(3, 4, hi=5), T(5, 3), K(mode=_mode, padding_idx=1)),
              ("embedding_bag", V([1, 1, 2, 1], "int64"), T(5, 3), V([0, 2], "int64"), K(mode=_mode, padding_idx=-4))]
CASES += [("embedding_bag", _BAGS, T(5, 3), V([0, 3], "int64")),
          ("embedding_bag", _BAGS, T(5, 3), V([0, 3, 7], "int64"), K(include_last_offset=True)),
          ("embedding_bag", I(3, 4, hi=5, dtype="int32"), T(5, 3)),
          ("embedding_bag", _BAGS, T(5, 3), V([0, 3], "int64"), None, 2.0, "sum", T(7)),
          ("embedding_bag", I(2, 4, hi=5), T(5, 3), None, None, 2.0, "sum", T(2, 4))]


def _embedding_bag(x, weight, offsets=None, max_norm=None, norm_type=2.0, mode="mean", per_sample_weights=None, **others):
    return F.embedding_bag(x, weight, offsets, max_norm, norm_type, mode=mode, per_sample_weights=per_sample_weights,
                           **others)


def _batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    y = F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    return y, mean, var


CALLS = {
    # Its definition: PyTorch's own gradient holds 1 / 6 in float32.
    "hardsigmoid": lambda x: F.relu6(x + 3) / 6,
    "batch_norm": _batch_norm,
    "embedding_bag": _embedding_bag,
    "grid_sample": lambda x, grid, mode="bilinear", padding="zeros", align=False:
        F.grid_sample(x, grid, mode, padding, align),
    "affine_grid": lambda theta, size, align=False: F.affine_grid(theta, size, align),
    "gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "relu": lambda x: F.relu(x),
    "softmax": lambda x, dim: F.softmax(x, dim),
    "max_pool2d_with_indices": F.max_pool2d_with_indices,
    "max_pool3d_with_indices": F.max_pool3d_with_indices,
    "max_unpool1d": lambda x, i, kernel, stride=None, padding=0, size=None:
        F.max_unpool1d(x, i, kernel, stride, padding, None if size is None else [size]),
    "max_unpool2d": lambda x, i, kernel, stride=None, padding=0, size=None:
        F.max_unpool2d(x, i, kernel, stride, padding, size),
    "max_unpool3d": lambda x, i, kernel, stride=None, padding=0, size=None:
        F.max_unpool3d(x, i, kernel, stride, padding, size),
    "avg_pool2d": F.avg_pool2d,
    "avg_pool3d": F.avg_pool3d,
    "logsigmoid": F.logsigmoid,
    "instance_norm": F.instance_norm,
    "adaptive_max_pool1d": F.adaptive_max_pool1d,
    "scaled_dot_product_attention": lambda q, k, v, mask=None, dropout=0.0, causal=False, scale=None:
        F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale),
}
