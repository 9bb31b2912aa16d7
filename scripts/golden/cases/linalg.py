"""Linear algebra: factorisations, solvers, determinants, norms. Matrices have large diagonals where their condition
matters; signs of vectors are chosen as russet chooses them."""

import numpy
import torch

import generator
from composites import K, T, V


def _matrix(offset, *shape, diagonal=3.0, grad=True):
    """Values whose diagonal has (1 + i / size) * diagonal added."""
    values = generator.real(77, offset, list(shape), -1, 1).astype(numpy.float64)
    for i in range(min(shape[-2:])):
        values[..., i, i] += diagonal * (1 + i / min(shape[-2:]))
    return V(values.tolist(), grad=grad)


def _symmetric(offset, *shape, diagonal=3.0):
    values = numpy.array(_matrix(offset, *shape, diagonal=diagonal).values)
    return V(((values + values.swapaxes(-1, -2)) / 2).tolist())


def _singular(size):
    values = numpy.arange(1.0, size * size + 1).reshape(size, size) ** 2
    values[-1] = values[0]
    return values.tolist()


_SQUARE = [_matrix(1, 3, 3), _matrix(2, 2, 4, 4), _matrix(3, 1, 1)]
_TALL_AND_WIDE = [*_SQUARE, _matrix(4, 5, 3), _matrix(5, 3, 5), _matrix(6, 2, 4, 2)]
_SYMMETRIC = [_symmetric(7, 3, 3), _symmetric(8, 2, 4, 4)]

CASES = [("linalg_cholesky", a, *upper) for a in _SYMMETRIC for upper in ([], [True])]
# PyTorch gives the triangle that it does not read a gradient; russet's is zero there.
CASES += [("cholesky_solve", T(3, 2), _matrix(9, 3, 3, grad=False), *upper) for upper in ([], [True])]
CASES += [("linalg_qr", a, *mode) for a in _TALL_AND_WIDE for mode in ([], ["reduced"])]
CASES += [("linalg_qr", a, "complete") for a in _SQUARE] + [("linalg_qr", _matrix(4, 5, 3, grad=False), "r")]
CASES += [("linalg_svd", a, False) for a in _TALL_AND_WIDE] + [("linalg_svd", a) for a in _SQUARE]
CASES += [("linalg_svdvals", a) for a in _TALL_AND_WIDE]
CASES += [(name, a, *uplo) for name in ("linalg_eigh", "linalg_eigvalsh") for a in _SYMMETRIC for uplo in ([], ["U"])]
CASES += [("linalg_solve", _SQUARE[0], T(3, 2)), ("linalg_solve", _SQUARE[0], T(3)),
          ("linalg_solve", _SQUARE[0], T(2, 3), False), ("linalg_solve", _SQUARE[1], T(2, 4)),
          ("linalg_solve", _SQUARE[1], T(4, 3)),
          ("linalg_solve", _matrix(10, 3, 3), T(2, 3, 2)), ("linalg_solve", _SQUARE[2], T(1)),
          ("linalg_solve", T(3, 3, lo=0.5, hi=2), T(3, 2))]
CASES += [("linalg_solve_triangular", a, T(*b), K(upper=upper)) for a, b in ((_SQUARE[0], (3, 2)), (_SQUARE[1], (4, 2)))
          for upper in (False, True)]
CASES += [("linalg_solve_triangular", _SQUARE[0], T(2, 3), K(upper=True, left=False)),
          ("linalg_solve_triangular", _matrix(11, 3, 3, diagonal=0), T(3, 2), K(upper=False, unitriangular=True))]
CASES += [("linalg_lstsq", _matrix(12, 5, 3, grad=False), T(5, 2, grad=False), None, K(driver=driver))
          for driver in ("gels", "gelsy", "gelsd", "gelss")]
CASES += [("linalg_lstsq", _matrix(13, 3, 5, grad=False), T(3, 2, grad=False)),
          ("linalg_lstsq", V(_singular(3), grad=False), T(3, 2, grad=False))]
CASES += [("inverse", a) for a in _SQUARE] + [("inverse", T(2, 2, lo=0.5, hi=2))]
CASES += [("linalg_pinv", a) for a in [*_TALL_AND_WIDE, T(3, 2), V(_singular(3), grad=False)]]
CASES += [("linalg_pinv", _SYMMETRIC[0], K(hermitian=True)), ("linalg_pinv", _matrix(4, 5, 3, grad=False), K(rtol=0.5))]
CASES += [(name, a) for name in ("det", "slogdet", "logdet") for a in _SQUARE]
CASES += [("det", T(3, 3)), ("slogdet", T(3, 3)), ("det", V([[1.0, 2.0], [2.0, 4.0]], grad=False)), ("det", T(2, 5, 5)),
          ("det", V([[0.0, 1.0], [1.0, 0.0]])),
          ("slogdet", V([[1.0, 2.0], [2.0, 4.0]], grad=False)), ("slogdet", V([[0.0, 2.0], [1.0, 0.0]]))]
CASES += [("matrix_exp", T(3, 3)), ("matrix_exp", T(2, 4, 4, lo=-3, hi=3)), ("matrix_exp", _SQUARE[0]),
          ("matrix_exp", V([[0.0, 1.0], [0.0, 0.0]])), ("matrix_exp", V([[-30.0, 10.0], [5.0, -40.0]]))]
CASES += [("matrix_power", _SQUARE[0], n) for n in (1, 2, 5, -1, -3)] + [
    ("matrix_power", _matrix(1, 3, 3, grad=False), 0), ("matrix_power", T(2, 3, 3), 3)]
CASES += [("linalg_multi_dot", [T(2, 5), T(5, 3), T(3, 4)]), ("linalg_multi_dot", [T(5), T(5, 3), T(3, 4), T(4)]),
          ("linalg_multi_dot", [T(3, 2), T(2, 4)])]
_INF = float("inf")
CASES += [("linalg_vector_norm", T(3, 4), *a)
          for a in ([], [2.0, 1], [1.0, 0, True], [3.0], [0.0, 1], [_INF], [-_INF, [0, 1]])]
CASES += [("linalg_matrix_norm", a, *order) for a in (_matrix(14, 4, 3), _matrix(15, 2, 3, 3))
          for order in ([], ["fro"], ["nuc"], [1.0], [-1.0], [2.0], [-2.0], [_INF], [-_INF])]
CASES += [("linalg_matrix_norm", T(2, 3, 4), order, [0, 2], True) for order in ("fro", "nuc", 1.0, 2.0, _INF)]
CASES += [("linalg_norm", T(3, 4)), ("linalg_norm", T(2, 3, 4)), ("linalg_norm", T(4), 1.0),
          ("linalg_norm", T(3, 4), 1.0), ("linalg_norm", T(3, 4), "nuc"), ("linalg_norm", T(2, 3, 4), 2.0, [1, 2]),
          ("linalg_norm", T(2, 3, 4), 3.0, 1),
          ("linalg_norm", T(3, 4), None, 1, True)]
CASES += [("linalg_cond", _SQUARE[1], *p)
          for p in ([], [2.0], [-2.0], ["fro"], ["nuc"], [1.0], [-1.0], [_INF], [-_INF])]
CASES += [("linalg_cond", _TALL_AND_WIDE[3]), ("linalg_cond", V([[1.0, 2.0], [2.0, 4.0]], grad=False), 1.0)]
CASES += [("linalg_matrix_rank", a) for a in (_matrix(4, 5, 3, grad=False), V(_singular(3), grad=False))]
CASES += [("linalg_matrix_rank", _matrix(4, 5, 3, grad=False), K(rtol=0.6)),
          ("linalg_matrix_rank", _symmetric(7, 3, 3), K(hermitian=True, atol=2.5))]


def _signs(vectors):
    """1 or -1 for each column: the first element of at least 0.3 of the largest becomes positive."""
    size = vectors.detach().abs()
    first = (size >= 0.3 * size.amax(-2, keepdim=True)).to(torch.int8).argmax(-2, keepdim=True)
    return vectors.detach().gather(-2, first).sign()


def _svd(a, full_matrices=True):
    u, s, vh = torch.linalg.svd(a, full_matrices)
    signs = _signs(u)
    return u * signs, s, vh * signs.mT


def _eigh(a, UPLO="L"):
    values, vectors = torch.linalg.eigh((a + a.mT) / 2, UPLO)
    return values, vectors * _signs(vectors)


def _lstsq(a, b, rcond=None, driver="gelsy"):
    return torch.linalg.lstsq(a, b, rcond, driver=driver)


def _cond(a, p=None):
    """PyTorch's own, but for gradients that it fails to compute (it writes in place into the inverse)."""
    if not a.requires_grad or p in (None, 2.0, -2.0):
        return torch.linalg.cond(a, p)
    return torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(torch.linalg.inv(a), p)


CALLS = {
    "linalg_cond": _cond,
    "linalg_svd": _svd,
    "linalg_eigh": _eigh,
    "linalg_eigvalsh": lambda a, UPLO="L": torch.linalg.eigvalsh((a + a.mT) / 2, UPLO),
    "linalg_cholesky": lambda a, upper=False: torch.linalg.cholesky((a + a.mT) / 2, upper=upper),
    "linalg_lstsq": _lstsq,
    "linalg_solve": lambda a, b, left=True: torch.linalg.solve(a, b, left=left),
}
