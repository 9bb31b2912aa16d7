#include "ops/cost.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/table.h"

namespace russet::ops {
namespace {

double count(const Shape& shape) { return static_cast<double>(numel(shape)); }

/// Two for each multiplication of an image [batch, channels, ...] with the weights that each of its elements meets.
double of_convolution(const Shape& image, const Shape& weight) {
  return 2 * count(image) * count(weight) / static_cast<double>(std::max<std::int64_t>(1, weight[0]));
}

/// Two for each multiplication of its products: of scores, and of what is computed from them.
double of_attention(Op op, const Attention& attributes, std::span<const Shape> inputs, bool gradient,
                    std::span<const Op> companions) {
  const AttentionInputs at = attention_inputs(op, attributes);
  const auto input = [&](int i) -> const Shape& { return inputs[static_cast<std::size_t>(i)]; };
  const Shape& key = input(at.key);
  const double width = static_cast<double>(key.back());
  const double scores = count(input(at.query)) / std::max(width, 1.0) * static_cast<double>(key[key.rank() - 2]);
  const int valued = at.value >= 0 ? at.value : at.gradient;
  const double value_width = valued >= 0 ? static_cast<double>(input(valued).back()) : 0;
  double columns = (gradient ? 2 : 1) * width + value_width;
  for (const Op companion : companions) {
    if (companion == Op::attention_value_gradient) columns += value_width;
    if (companion == Op::attention_query_gradient) columns += width;
  }
  return 2 * scores * columns;
}

}  // namespace

double operations(Op op, const Attributes& attributes, std::span<const Shape> inputs, const Shape& output,
                  std::span<const Op> companions) {
  const Cost cost = row(op).cost;
  switch (cost) {
    case Cost::product: return 2 * count(output) * static_cast<double>(inputs[0].back());
    case Cost::convolution: return of_convolution(output, inputs[1]);
    case Cost::convolution_input: return of_convolution(inputs[0], inputs[1]);
    case Cost::convolution_weight: return of_convolution(inputs[1], output);
    case Cost::attention:
    case Cost::attention_gradient:
      return of_attention(op, std::get<Attention>(attributes), inputs, cost == Cost::attention_gradient, companions);
    case Cost::factorisation: {
      const auto rows = static_cast<double>(inputs[0][inputs[0].rank() - 2]);
      const auto columns = static_cast<double>(inputs[0].back());
      return 2 * count(inputs[0]) * std::min(rows, columns);
    }
    case Cost::substitution: return count(output) * static_cast<double>(inputs[0].back());
    default: return count(output);
  }
}

}  // namespace russet::ops
