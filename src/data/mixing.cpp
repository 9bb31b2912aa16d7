#include "data/mixing.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace russet::data {
namespace {

/// In (0, 1].
double positive_uniform(Random& random) { return 1 - random.uniform(); }

/// By Box and Muller.
double draw_normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// The logarithm of a number of the gamma distribution of shape `alpha` and scale 1. Marsaglia and Tsang, "A Simple
/// Method for Generating Gamma Variables" (2000); small shapes by their remark, as logarithms, which do not underflow.
double draw_log_gamma(double alpha, Random& random) {
  if (alpha < 1) return draw_log_gamma(alpha + 1, random) + std::log(positive_uniform(random)) / alpha;
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(positive_uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

/// Calls `mix(row, other)` with each row and the one before it as it was.
template <class Mix>
void for_each_pair(std::span<float> values, std::size_t width, const Mix& mix) {
  const std::size_t rows = width == 0 ? 0 : values.size() / width;
  if (rows == 0) return;
  const auto row = [&](std::size_t i) { return values.subspan(i * width, width); };
  thread_local std::vector<float> last;
  last.assign(row(rows - 1).begin(), row(rows - 1).end());
  for (std::size_t i = rows; i-- > 1;) mix(row(i), std::span<const float>(row(i - 1)));
  mix(row(0), std::span<const float>(last));
}

void replace_box(std::span<float> row, std::span<const float> other, const Shape& sample, const Mixture::Box& box) {
  const std::int64_t height = sample[sample.rank() - 2];
  const std::int64_t width = sample[sample.rank() - 1];
  const std::int64_t planes = static_cast<std::int64_t>(row.size()) / std::max<std::int64_t>(height * width, 1);
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t y = box.top; y < box.bottom; ++y) {
      const std::int64_t at = (plane * height + y) * width + box.left;
      std::copy_n(other.data() + at, box.right - box.left, row.data() + at);
    }
  }
}

}  // namespace

double draw_beta(double alpha, Random& random) {
  const double first = draw_log_gamma(alpha, random);
  const double second = draw_log_gamma(alpha, random);
  return 1 / (1 + std::exp(second - first));
}

Mixture cut_mixture(double lambda, std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width) {
  const double half = 0.5 * std::sqrt(1 - lambda);
  const auto rows = static_cast<std::int64_t>(half * static_cast<double>(height));
  const auto columns = static_cast<std::int64_t>(half * static_cast<double>(width));
  const Mixture::Box box{std::max<std::int64_t>(y - rows, 0), std::max<std::int64_t>(x - columns, 0),
                         std::min(y + rows, height), std::min(x + columns, width)};
  const std::int64_t area = (box.bottom - box.top) * (box.right - box.left);
  return {1 - static_cast<double>(area) / static_cast<double>(height * width), box};
}

Mixture draw_mixture(const Mixing& mixing, const Shape& sample, Random& random) {
  const bool both = mixing.mixup_alpha > 0 && mixing.cutmix_alpha > 0;
  const bool cuts = both ? random.chance(0.5) : mixing.cutmix_alpha > 0;
  const double lambda = draw_beta(cuts ? mixing.cutmix_alpha : mixing.mixup_alpha, random);
  if (!cuts) return {.own = lambda};
  const std::int64_t height = sample[sample.rank() - 2];
  const std::int64_t width = sample[sample.rank() - 1];
  const auto x = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width)));
  const auto y = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height)));
  return cut_mixture(lambda, y, x, height, width);
}

void mix_inputs(std::span<float> values, const Shape& sample, const Mixture& mixture) {
  const auto own = static_cast<float>(mixture.own);
  const auto rest = static_cast<float>(1 - mixture.own);
  for_each_pair(values, static_cast<std::size_t>(numel(sample)),
                [&](std::span<float> row, std::span<const float> other) {
                  if (mixture.box) return replace_box(row, other, sample, *mixture.box);
                  for (std::size_t i = 0; i < row.size(); ++i) row[i] = other[i] * rest + row[i] * own;
                });
}

void mix_targets(std::span<const std::int64_t> labels, std::int64_t classes, const Mixture& mixture,
                 std::span<float> shares) {
  std::fill(shares.begin(), shares.end(), 0.0F);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < 0 || labels[row] >= classes) {
      throw ValueError(fmt::format("mixing: label {} is outside 0 to {}", labels[row], classes - 1));
    }
    const std::int64_t other = labels[row == 0 ? labels.size() - 1 : row - 1];
    const auto share = [&](std::int64_t label) -> float& {
      return shares[row * static_cast<std::size_t>(classes) + static_cast<std::size_t>(label)];
    };
    if (other >= 0 && other < classes) share(other) += static_cast<float>(1 - mixture.own);
    share(labels[row]) += static_cast<float>(mixture.own);
  }
}

}  // namespace russet::data
