#pragma once
// Dropout and lookups. `generator`: nullptr means the device's default one.
#include <russet/random.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// Zeros with probability p, the rest divided by 1 - p. x itself unless `training`. Throws ValueError unless p is in
/// [0, 1].
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
/// As dropout, for whole channels of [n, c, l] (or [c, l]).
Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);
/// As dropout, for whole channels of [n, c, h, w] (or [c, h, w]).
Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);

/// Rows of weight: [entries, width] at integer indices of any shape; [..., width]. The row `padding_idx` (negative:
/// from the end) gets no gradient. With max_norm, rows that are read and whose norm exceeds it are first scaled down to
/// it, in place and outside the tape.
Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_idx = {},
                 std::optional<double> max_norm = {}, double norm_type = 2);

}  // namespace russet
