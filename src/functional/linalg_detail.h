#pragma once
// What functions of linear algebra share.
#include <utility>

#include "functional/build.h"

namespace russet::functional {

/// Throws ShapeError or TypeError that names `function`.
void require_matrices(const char* function, const Tensor& a);
void require_square(const char* function, const Tensor& a);

/// Both with the leading dimensions of their broadcast.
std::pair<Tensor, Tensor> with_one_batch(const Tensor& a, const Tensor& b);
/// The product of matrices with leading dimensions that broadcast; never in an autocast scope's precision.
Tensor product(const Tensor& a, const Tensor& b);
inline Tensor transposed(const Tensor& x) { return x.transpose(-1, -2); }
/// The identity, in the type and on the device of `like`.
Tensor identity(std::int64_t size, const Tensor& like);

/// A primitive of the family linalg.
Tensor factored(ops::Op op, const Tensor& a, const ops::Linalg& wanted = {});
/// X with A X = B for a triangular A; leading dimensions broadcast.
Tensor solved_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit = false);
/// Singular values [..., k]; of a symmetric matrix the absolute values of the eigenvalues, not in order.
Tensor singular_values(const Tensor& a, bool symmetric = false);

}  // namespace russet::functional
