"""Images warped by maps of their pixels, and blurred: kornia's functions."""

from kornia.core.exceptions import BaseError
from kornia.filters import gaussian_blur2d
from kornia.geometry import transform

from composites import T, V

# Maps that keep most of the image in sight.
_AFFINE = V([[[0.93, -0.31, 0.62], [0.27, 1.08, -0.41]], [[-0.71, 0.55, 3.3], [0.62, 0.84, -1.27]]])
_PROJECTIVE = V([[[0.93, -0.31, 0.62], [0.27, 1.08, -0.41], [0.013, -0.021, 1.0]],
                 [[-1.42, 1.1, 6.6], [1.24, 1.68, -2.54], [0.04, 0.06, 2.0]]])
_MODES = [(mode, padding, align) for mode in ("bilinear", "nearest", "bicubic")
          for padding in ("zeros", "border", "reflection") for align in (False, True)]
CASES = [("warp_affine", T(2, 3, 5, 6), _AFFINE, [4, 7], *modes) for modes in _MODES]
CASES += [("warp_perspective", T(2, 3, 5, 6), _PROJECTIVE, [4, 7], *modes) for modes in _MODES]
CASES += [("warp_affine", T(2, 3, 5, 6), _AFFINE, [5, 6]), ("warp_affine", T(3, 2, 5, 6), T(1, 2, 3), [3, 3]),
          ("warp_affine", T(2, 1, 1, 4), _AFFINE, [2, 4]), ("warp_affine", T(2, 1, 4, 4), _AFFINE, [1, 1]),
          ("warp_perspective", T(2, 3, 5, 6), _PROJECTIVE, [5, 6])]
for _name, _map in (("warp_affine", _AFFINE), ("warp_perspective", _PROJECTIVE)):
    CASES += [(_name, T(2, 3, 5, 6), _map, [4, 5], mode, "fill", True, fill) for mode in ("bilinear", "nearest")
              for fill in (None, T(3), T(1), T(2, 3, 1, 1))]
# Multiples of one map, small and large.
CASES += [("warp_perspective", T(1, 1, 4, 5), V([[[s * v for v in row] for row in (
    (0.9, 0.2, 0.3), (-0.1, 1.1, 0.2), (0.02, 0.01, 1.0))]]), [4, 5]) for s in (1.0, -3.0, 1e-12, 1e12)]
CASES += [("get_rotation_matrix2d", T(3, 2, lo=0, hi=5), T(3, lo=-180, hi=180), T(3, 2, lo=0.5, hi=2))]
CASES += [("affine", T(2, 3, 5, 6), _AFFINE), ("affine", T(3, 5, 6), T(1, 2, 3)), ("affine", T(1, 3, 5, 6), _AFFINE),
          ("affine", T(2, 3, 5, 6), _AFFINE, "bilinear", "border", False),
          ("affine", T(2, 3, 5, 6), _AFFINE, "nearest", "reflection")]
CASES += [("rotate", T(2, 3, 5, 6), T(2, lo=-180, hi=180)), ("rotate", T(2, 3, 5, 6), T(1, lo=-180, hi=180)),
          ("rotate", T(3, 5, 6), V([31.0])), ("rotate", T(2, 3, 5, 6), V([31.0, -77.0]), T(2, 2, lo=0, hi=4)),
          ("rotate", T(2, 3, 5, 6), V([31.0, -77.0]), T(2, lo=0, hi=4)),
          ("rotate", T(2, 3, 5, 6), V([31.0, -77.0]), None, "bilinear", "reflection", False),
          ("rotate", T(2, 3, 5, 6), V([31.0, -77.0]), None, "nearest", "border")]
CASES += [("gaussian_blur2d", T(2, 3, 6, 7), 3, [1.5, 1.5]), ("gaussian_blur2d", T(2, 3, 6, 7), [5, 3], [0.7, 1.6]),
          ("gaussian_blur2d", T(2, 3, 6, 7), [1, 3], [0.7, 1.6]), ("gaussian_blur2d", T(1, 1, 3, 4), 5, [9.0, 0.3])]
CASES += [("gaussian_blur2d", T(2, 3, 6, 7), [5, 3], [0.7, 1.6], border, separable)
          for border in ("reflect", "replicate", "circular", "constant") for separable in (True, False)]
CASES += [("gaussian_blur2d", T(2, 3, 6, 7), [3, 5], T(n, 2, lo=0.4, hi=2), "reflect", separable) for n in (1, 2)
          for separable in (True, False)]


def _blur(x, size, sigma, border="reflect", separable=True):
    pair = tuple(sigma) if isinstance(sigma, list) else sigma
    try:
        return gaussian_blur2d(x, size if isinstance(size, int) else tuple(size), pair, border, separable)
    except BaseError as error:
        raise ValueError(str(error)) from error


CALLS = {
    "warp_affine": transform.warp_affine,
    "warp_perspective": transform.warp_perspective,
    "get_rotation_matrix2d": transform.get_rotation_matrix2d,
    "affine": transform.affine,
    "rotate": transform.rotate,
    "gaussian_blur2d": _blur,
}
