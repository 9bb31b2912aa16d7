// Attention and its gradients: all scores of a row at a time.
#include "ops/attention.h"
#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using ops::Op;
using Numbers = Array<double>;

class Attention {
 public:
  explicit Attention(const PrimitiveRun& primitive)
      : primitive_(primitive),
        attributes_(primitive.attribute<ops::Attention>()),
        at_(ops::attention_inputs(primitive.op(), attributes_)),
        query_(primitive.input<double>(at_.query)),
        key_(primitive.input<double>(at_.key)),
        value_(optional(at_.value)),
        gradient_(optional(at_.gradient)),
        logsumexp_(optional(at_.logsumexp)),
        delta_(optional(at_.delta)),
        mask_(optional(at_.mask)),
        uniform_(optional(at_.uniform)),
        result_(primitive.output_shape()) {
    const int rank = query_.shape.rank();
    batch_ = query_.shape;
    batch_.pop_back();
    batch_.pop_back();
    rows_ = query_.shape[rank - 2];
    columns_ = key_.shape[rank - 2];
    width_ = query_.shape[rank - 1];
    values_ = at_.value >= 0 ? value_.shape.back() : at_.gradient >= 0 ? gradient_.shape.back() : 0;
    if (at_.mask >= 0) place_mask();
  }

  void run() {
    for (std::int64_t batch = 0; batch < numel(batch_); ++batch) {
      for (std::int64_t row = 0; row < rows_; ++row) run_row(batch, row);
    }
    primitive_.output(result_);
  }

 private:
  Numbers optional(int input) const { return input < 0 ? Numbers({0}) : primitive_.input<double>(input); }

  /// Where the mask of each score lies.
  void place_mask() {
    Shape scores = batch_;
    scores.push_back(rows_);
    scores.push_back(columns_);
    Strides strides = contiguous_strides(mask_.shape);
    for (int axis = 0; axis < scores.rank(); ++axis) {
      if (mask_.shape[axis] == 1) strides[axis] = 0;
    }
    mask_places_.resize(static_cast<std::size_t>(numel(scores)));
    walk(scores, strides,
         [&](std::int64_t position, std::int64_t at) { mask_places_[static_cast<std::size_t>(position)] = at; });
  }

  std::int64_t score_position(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return (batch * rows_ + row) * columns_ + column;
  }

  double score(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    if (attributes_.causal && column > row) return -infinity;
    double sum = 0;
    for (std::int64_t i = 0; i < width_; ++i) {
      sum += query_[(batch * rows_ + row) * width_ + i] * key_[(batch * columns_ + column) * width_ + i];
    }
    sum *= attributes_.scale;
    if (at_.mask < 0) return sum;
    const double mask = mask_[mask_places_[static_cast<std::size_t>(score_position(batch, row, column))]];
    if (primitive_.input_type(at_.mask) == DType::boolean) return mask != 0 ? sum : -infinity;
    return sum + mask;
  }

  /// What dropout multiplies a probability by.
  double kept(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    if (at_.uniform < 0) return 1;
    // Random numbers are compared in the type that they have.
    const double drawn = uniform_[score_position(batch, row, column)];
    const bool single = primitive_.input_type(at_.uniform) == DType::float32;
    const double share = single ? static_cast<float>(attributes_.dropout) : attributes_.dropout;
    return drawn >= share ? 1 / (1 - attributes_.dropout) : 0;
  }

  void run_row(std::int64_t batch, std::int64_t row) {
    std::vector<double> scores;
    for (std::int64_t column = 0; column < columns_; ++column) scores.push_back(score(batch, row, column));
    const double sum = at_.logsumexp >= 0 ? logsumexp_[batch * rows_ + row] : logsumexp(scores);
    if (primitive_.op() == Op::attention_logsumexp) {
      result_[batch * rows_ + row] = sum;
      return;
    }
    for (std::int64_t column = 0; column < columns_; ++column) {
      const double p = std::exp(scores[static_cast<std::size_t>(column)] - sum);
      add_pair(batch, row, column, p);
    }
  }

  /// The logsumexp of a row; infinity if every key is masked, which makes all its probabilities 0.
  static double logsumexp(const std::vector<double>& scores) {
    double largest = -infinity;
    for (const double s : scores) largest = greater(s, largest) ? s : largest;
    if (largest == -infinity) return infinity;
    double sum = 0;
    for (const double s : scores) sum += std::exp(s - largest);
    return largest + std::log(sum);
  }

  /// Adds the contribution of query `row` and key `column`, with probability p, to the result.
  void add_pair(std::int64_t batch, std::int64_t row, std::int64_t column, double p) {
    const std::int64_t query_row = batch * rows_ + row;
    const std::int64_t key_row = batch * columns_ + column;
    const double factor = kept(batch, row, column);
    if (primitive_.op() == Op::attention) return add(query_row, values_, p * factor, value_, key_row);
    if (primitive_.op() == Op::attention_value_gradient) return add(key_row, values_, p * factor, gradient_, query_row);
    double slope = 0;
    for (std::int64_t i = 0; i < values_; ++i)
      slope += gradient_[query_row * values_ + i] * value_[key_row * values_ + i];
    const double of_score = p * (slope * factor - delta_[query_row]) * attributes_.scale;
    if (primitive_.op() == Op::attention_query_gradient) return add(query_row, width_, of_score, key_, key_row);
    add(key_row, width_, of_score, query_, query_row);
  }

  void add(std::int64_t row, std::int64_t width, double factor, const Numbers& source, std::int64_t source_row) {
    for (std::int64_t i = 0; i < width; ++i) result_[row * width + i] += factor * source[source_row * width + i];
  }

  static constexpr double infinity = std::numeric_limits<double>::infinity();

  const PrimitiveRun& primitive_;
  const ops::Attention& attributes_;
  ops::AttentionInputs at_;
  Numbers query_, key_, value_, gradient_, logsumexp_, delta_, mask_, uniform_, result_;
  Shape batch_;
  std::int64_t rows_, columns_, width_, values_;
  std::vector<std::int64_t> mask_places_;
};

}  // namespace

void run_attention(const PrimitiveRun& primitive) { Attention(primitive).run(); }

}  // namespace russet::reference
