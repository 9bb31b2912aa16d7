"""Losses: reductions, weights, ignored classes, smoothing."""

import torch
import torch.nn.functional as F

from composites import B, I, K, T, V

_REDUCTIONS = ["mean", "sum", "none"]
CASES = [(name, T(3, 4), T(3, 4), *r) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
         for r in ([], *[[r] for r in _REDUCTIONS])]
CASES += [("smooth_l1_loss", T(3, 4), T(3, 4), "mean", 0.3), ("huber_loss", T(3, 4), T(3, 4), "mean", 0.3),
          ("l1_loss", V([1.0, 2.0]), V([1.0, 3.0]))]
# cross_entropy: input, target, class weights, ignored class, reduction, label smoothing
_C = I(5, hi=4)
CASES += [("cross_entropy", T(5, 4), _C)] + [("cross_entropy", T(5, 4), _C, None, -100, r) for r in _REDUCTIONS]
for _r in _REDUCTIONS:
    CASES += [("cross_entropy", T(5, 4), _C, T(4, lo=0.5, hi=2, grad=False), -100, _r),
              ("cross_entropy", T(5, 4), V([0, 3, 1, 3, 2], "int64"), None, 3, _r),
              ("cross_entropy", T(5, 4), V([0, 3, 1, 3, 2], "int64"), T(4, lo=0.5, hi=2, grad=False), 3, _r, 0.1),
              ("cross_entropy", T(5, 4), _C, None, -100, _r, 0.2),
              ("cross_entropy", T(5, 4), T(5, 4, lo=0), None, -100, _r),
              ("cross_entropy", T(5, 4), T(5, 4, lo=0), T(4, lo=0.5, hi=2, grad=False), -100, _r, 0.1)]
CASES += [("cross_entropy", T(2, 4, 3), I(2, 3, hi=4)), ("cross_entropy", T(2, 4, 2, 3), I(2, 2, 3, hi=4), None, -100,
                                                         "sum"),
          ("cross_entropy", T(4), V(2, "int64")), ("cross_entropy", T(3, 4, lo=-200, hi=200), I(3, hi=4)),
          ("cross_entropy", T(2, 4), V([-100, 1], "int64")),
          ("cross_entropy", T(2, 4, grad=False), V([-100, -100], "int64"), None, -100, "sum")]
CASES += [("nll_loss", T(5, 4), _C), ("nll_loss", T(5, 4), _C, T(4, lo=0.5, hi=2, grad=False)),
          ("nll_loss", T(5, 4), V([0, 3, 1, 3, 2], "int64"), None, 3), ("nll_loss", T(5, 4), _C, None, -100, "none"),
          ("nll_loss", T(5, 4), _C, None, -100, "sum"), ("nll_loss", T(2, 4, 3), I(2, 3, hi=4))]
_P = T(3, 4, lo=0.05, hi=0.95)
CASES += [("binary_cross_entropy", _P, T(3, 4, lo=0, grad=False), None, r) for r in _REDUCTIONS]
CASES += [("binary_cross_entropy", _P, T(3, 4, lo=0, grad=False)), ("binary_cross_entropy", V([0.0, 1.0, 0.5], grad=False),
                                                                   V([0.0, 1.0, 1.0], grad=False)),
          ("binary_cross_entropy", _P, T(3, 4, lo=0, grad=False), T(4, lo=0.5, hi=2, grad=False))]
# binary_cross_entropy_with_logits: input, target, weight, reduction, weight of positives
CASES += [("binary_cross_entropy_with_logits", T(3, 4, lo=-4, hi=4), T(3, 4, lo=0, grad=False), None, r)
          for r in _REDUCTIONS]
CASES += [("binary_cross_entropy_with_logits", T(3, 4), T(3, 4, lo=0, grad=False), T(4, lo=0.5, hi=2, grad=False)),
          ("binary_cross_entropy_with_logits", T(3, 4), T(3, 4, lo=0, grad=False), None, "mean",
           T(4, lo=0.5, hi=2, grad=False)),
          ("binary_cross_entropy_with_logits", V([-90.0, 90.0, 0.0]), V([1.0, 0.0, 1.0], grad=False))]
# kl_div: input, target, reduction, whether the target is in logarithms
CASES += [("kl_div", T(3, 4, hi=0), T(3, 4, lo=0.1, grad=False), r) for r in (*_REDUCTIONS, "batchmean")]
CASES += [("kl_div", T(3, 4, hi=0), T(3, 4, hi=0), "sum", True)]
_SIGNS = V([1.0, -1.0, 1.0], grad=False)
CASES += [("poisson_nll_loss", T(3, 4), T(3, 4, lo=1, hi=5, grad=False)), ("poisson_nll_loss", T(3, 4, lo=0.1),
                                                                        T(3, 4, lo=1.5, hi=5, grad=False), False, True),
          ("gaussian_nll_loss", T(3, 4), T(3, 4), T(3, 4, lo=0.2, hi=2)),
          ("gaussian_nll_loss", T(3, 4), T(3, 4), T(3, 4, lo=0.2, hi=2), True),
          ("cosine_embedding_loss", T(3, 4), T(3, 4), _SIGNS), ("cosine_embedding_loss", T(3, 4), T(3, 4), _SIGNS, -0.5),
          ("margin_ranking_loss", T(3), T(3), _SIGNS), ("margin_ranking_loss", T(3), T(3), _SIGNS, 0.7),
          ("hinge_embedding_loss", T(3, 3), _SIGNS), ("hinge_embedding_loss", T(3), _SIGNS, 0.3),
          ("soft_margin_loss", T(3), _SIGNS), ("multi_margin_loss", T(5, 4), _C), ("multi_margin_loss", T(5, 4), _C, 2, 0.7),
          ("multilabel_soft_margin_loss", T(3, 4), V([[1.0, 0.0, 1.0, 0.0]] * 3, grad=False)),
          ("triplet_margin_loss", T(3, 4), T(3, 4), T(3, 4)),
          ("triplet_margin_loss", T(3, 4), T(3, 4), T(3, 4), K(margin=0.5, p=1.0, swap=True)),
          ("pairwise_distance", T(3, 4), T(3, 4)), ("pairwise_distance", T(3, 4), T(3, 4), 1.0)]
# ctc_loss: log probabilities, targets, lengths of inputs and targets, blank, reduction, zero_infinity
_L = T(6, 3, 4, lo=-4, hi=-0.1)
_TARGETS = V([[1, 2, 2], [3, -1, -1], [2, 1, -1]], "int64")
_LENGTHS = [V([6, 4, 5], "int64"), V([3, 1, 2], "int64")]
CASES += [("ctc_loss", _L, _TARGETS, *_LENGTHS)] + [("ctc_loss", _L, _TARGETS, *_LENGTHS, 0, r) for r in _REDUCTIONS]
CASES += [("ctc_loss", _L, V([1, 2, 2, 3, 2, 1], "int64"), *_LENGTHS, 0, r) for r in _REDUCTIONS]
CASES += [("ctc_loss", _L, V([[1, 0, 0], [0, 1, 2], [2, 1, 2]], "int32"), *_LENGTHS, 3, "none"),
          # no target, no input, a target that does not fit, repeats that need blanks between them
          ("ctc_loss", _L, _TARGETS, V([6, 0, 0], "int64"), V([0, 0, 0], "int64"), 0, "none"),
          ("ctc_loss", _L, V([], "int64"), V([6, 1, 2], "int64"), V([0, 0, 0], "int64"), 0, "mean"),
          ("ctc_loss", T(6, 3, 4, lo=-4, hi=-0.1, grad=False), _TARGETS, V([2, 0, 5], "int64"), _LENGTHS[1], 0, "none"),
          ("ctc_loss", _L, _TARGETS, V([3, 0, 5], "int64"), _LENGTHS[1], 0, "none", True),
          ("ctc_loss", _L, _TARGETS, V([3, 0, 5], "int64"), _LENGTHS[1], 0, "mean", True),
          ("ctc_loss", T(5, 4, lo=-4, hi=-0.1), V([2, 1], "int64"), V(5, "int64"), V(2, "int64")),
          ("ctc_loss", T(5, 4, lo=-4, hi=-0.1), V([2, 1], "int64"), V([4], "int64"), V([2], "int64"), 0, "none"),
          ("ctc_loss", T(40, 2, 5, lo=-9, hi=-0.1), I(2, 9, lo=1, hi=5), V([40, 33], "int64"), V([9, 6], "int64"), 0,
           "sum")]

CALLS = {
    "ctc_loss": lambda x, y, inputs, targets, blank=0, r="mean", zero=False:
        F.ctc_loss(x, y, inputs, targets, blank, r, zero),
    "poisson_nll_loss": lambda x, y, log=True, full=False: F.poisson_nll_loss(x, y, log, full),
    "gaussian_nll_loss": lambda x, y, v, full=False: F.gaussian_nll_loss(x, y, v, full),
    "cosine_embedding_loss": lambda a, b, y, margin=0.0: F.cosine_embedding_loss(a, b, y, margin),
    "margin_ranking_loss": lambda a, b, y, margin=0.0: F.margin_ranking_loss(a, b, y, margin),
    "hinge_embedding_loss": lambda x, y, margin=1.0: F.hinge_embedding_loss(x, y, margin),
    "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, y),
    "multi_margin_loss": lambda x, y, p=1, margin=1.0: F.multi_margin_loss(x, y, p, margin),
    "triplet_margin_loss": F.triplet_margin_loss,
    "mse_loss": lambda x, y, r="mean": F.mse_loss(x, y, reduction=r),
    "l1_loss": lambda x, y, r="mean": F.l1_loss(x, y, reduction=r),
    "smooth_l1_loss": lambda x, y, r="mean", beta=1.0: F.smooth_l1_loss(x, y, reduction=r, beta=beta),
    "huber_loss": lambda x, y, r="mean", delta=1.0: F.huber_loss(x, y, reduction=r, delta=delta),
    "cross_entropy": lambda x, y, w=None, ignore=-100, r="mean", smoothing=0.0:
        F.cross_entropy(x, y, w, ignore_index=ignore, reduction=r, label_smoothing=smoothing),
    "nll_loss": lambda x, y, w=None, ignore=-100, r="mean": F.nll_loss(x, y, w, ignore_index=ignore, reduction=r),
    "binary_cross_entropy": lambda x, y, w=None, r="mean": F.binary_cross_entropy(x, y, w, reduction=r),
    "binary_cross_entropy_with_logits": lambda x, y, w=None, r="mean", p=None:
        F.binary_cross_entropy_with_logits(x, y, w, reduction=r, pos_weight=p),
    "kl_div": lambda x, y, r="mean", log=False: F.kl_div(x, y, reduction=r, log_target=log),
}
