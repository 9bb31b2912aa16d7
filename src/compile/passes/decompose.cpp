// Decomposition: attention becomes products, a softmax and elementwise operators where the device has no kernels for
// it, or none that it prefers.
//   y = attention(q, k, v)            ->   p = softmax(scale * q k^T); y = p v
//   attention_query_gradient(...)     ->   s = p * (g v^T - delta) * scale; y = s k
// Where the device's products want lines of whole vectors, keys and values get rows of zeros, which no query sees.
// Parts that several have in common are written for each: `share` computes them once.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/attention.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_attention(const Value& value) { return ops::row(value.op).family == ops::Family::attention; }

class Decomposer {
 public:
  Decomposer(Program& program, const Target& target) : program_(program), target_(target), rewriter_(program) {}

  void run() {
    rewriter_.run([this](Value value, ValueId old) {
      old_ = &value_at(program_, old);
      if (!is_attention(value) || target_.prefers_attention(primitive_of(program_, *old_))) {
        return rewriter_.add(std::move(value));
      }
      inputs_ = value.inputs;
      return decomposed();
    });
  }

 private:
  DType type(ValueId id) const { return rewriter_.at(id).dtype; }
  const Shape& shape(ValueId id) const { return rewriter_.at(id).shape; }

  // Values.

  ValueId make(Op op, std::initializer_list<ValueId> inputs, ops::Attributes attributes = {},
               const ops::Description& given = {DType::float32, {}}) {
    return rewriter_.make(*old_, op, inputs, std::move(attributes), given);
  }
  ValueId constant(double number, DType dtype) { return make(Op::constant, {}, ops::Number{number, 0}, {dtype, {}}); }
  ValueId integer(std::int64_t number) {
    return make(Op::constant, {}, ops::Number{static_cast<double>(number), number}, {DType::int64, {}});
  }
  ValueId cast(ValueId x, DType dtype) { return type(x) == dtype ? x : make(Op::cast, {x}, {}, {dtype, {}}); }
  ValueId wide(ValueId x) { return size_of(type(x)) < 4 ? cast(x, DType::float32) : x; }
  ValueId scaled(ValueId x, double factor) { return make(Op::mul, {x, constant(factor, type(x))}); }
  ValueId product(ValueId a, ValueId b) { return make(Op::matmul, {a, b}); }
  /// A product of 16-bit factors in the precision in which it is added up.
  ValueId wide_product(ValueId a, ValueId b) {
    return size_of(type(a)) < 4 ? rewriter_.product(*old_, a, b, DType::float32) : product(a, b);
  }
  ValueId by_row(Op op, ValueId x) { return make(op, {x}, ops::Axes{1U << (shape(x).rank() - 1)}); }
  ValueId where(ValueId condition, ValueId a, ValueId b) { return make(Op::where, {condition, a, b}); }

  ValueId transposed(ValueId x) { return rewriter_.transpose(*old_, x); }

  ValueId positions(int axis, ValueId scores) {
    Shape sizes = Shape::filled(shape(scores).rank(), 1);
    sizes[axis] = shape(scores)[axis];
    return make(Op::iota, {}, {}, {DType::int64, sizes});
  }

  // The operator that is being decomposed: its attributes and inputs.

  const ops::Attention& attributes() const { return std::get<ops::Attention>(old_->attributes); }
  ops::AttentionInputs inputs() const { return ops::attention_inputs(old_->op, attributes()); }
  ValueId input(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  DType own_type() const { return type(inputs_[0]); }
  std::int64_t keys() const {
    const Shape& sizes = shape(input(inputs().key));
    return sizes[sizes.rank() - 2];
  }
  /// With zeros that fill the scores' lines, unless those would grow much, or masks and random numbers with them.
  std::int64_t lengthened_keys() const {
    constexpr std::int64_t most_growth = 16;  // a part in so many
    const std::int64_t multiple = target_.line_multiple(own_type());
    const std::int64_t more = (multiple - keys() % multiple) % multiple;
    const bool grows = attributes().masked || inputs().uniform >= 0 || more * most_growth > keys();
    return grows ? keys() : keys() + more;
  }
  bool hides_some() const { return attributes().masked || attributes().causal; }

  // What is computed.

  /// An input with rows of zeros behind its own, a row for each column of the scores: the same for all attentions and
  /// gradients that take it.
  ValueId lengthened(int i) {
    if (lengthened_keys() == keys()) return input(i);
    const ValueId old = operand(*old_, i);
    const auto known = std::ranges::find_if(
        lengthened_, [&](const Lengthened& one) { return one.again == old_->again && is_same(one.old, old); });
    if (known != lengthened_.end()) return known->value;
    lengthened_.push_back({old, with_zeros(input(i)), old_->again});
    return lengthened_.back().value;
  }
  ValueId with_zeros(ValueId x) {
    Shape behind = shape(x);
    const int rows = behind.rank() - 2;
    behind[rows] = lengthened_keys() - keys();
    const ValueId zeros = rewriter_.view(*old_, constant(0, type(x)), behind, Strides::filled(behind.rank(), 0));
    return rewriter_.cat(*old_, std::array{x, zeros}, rows);
  }
  /// A gradient without the rows of zeros.
  ValueId shortened(ValueId x) {
    Shape sizes = shape(x);
    if (lengthened_keys() == keys()) return x;
    sizes[sizes.rank() - 2] = keys();
    return rewriter_.view(*old_, x, sizes, contiguous_strides(shape(x)));
  }
  ValueId key() { return lengthened(inputs().key); }
  ValueId value() { return lengthened(inputs().value); }

  ValueId scores() {
    ValueId s = scaled(wide_product(input(inputs().query), transposed(key())), attributes().scale);
    const ValueId hidden = constant(-infinity, type(s));
    if (lengthened_keys() != keys()) {
      const ValueId column = positions(shape(s).rank() - 1, s);
      s = where(make(Op::lt, {column, integer(keys())}), s, hidden);
    }
    if (attributes().causal) {
      const int rank = shape(s).rank();
      s = where(make(Op::le, {positions(rank - 1, s), positions(rank - 2, s)}), s, hidden);
    }
    if (!attributes().masked) return s;
    const ValueId mask = input(inputs().mask);
    return type(mask) == DType::boolean ? where(mask, s, hidden) : make(Op::add, {s, mask});
  }

  /// The largest score of each row, and the sum of the exponentials of all less that one; 0 and 0 if it sees nothing.
  struct Softmax {
    ValueId exponentials;
    ValueId largest;
    ValueId total;
  };
  Softmax softmax() {
    const ValueId s = scores();
    ValueId largest = by_row(Op::amax, s);
    if (hides_some()) {
      const ValueId nothing = make(Op::eq, {largest, constant(-infinity, type(s))});
      largest = where(nothing, constant(0, type(s)), largest);
    }
    const ValueId e = make(Op::exp, {make(Op::sub, {s, largest})});
    return {e, largest, by_row(Op::sum, e)};
  }

  ValueId is_nothing(ValueId total) { return make(Op::eq, {total, constant(0, type(total))}); }

  ValueId own_probabilities() {
    const Softmax parts = softmax();
    ValueId total = parts.total;
    if (hides_some()) total = where(is_nothing(total), constant(1, type(total)), total);
    return cast(make(Op::div, {parts.exponentials, total}), own_type());
  }

  ValueId logsumexp() {
    const Softmax parts = softmax();
    const ValueId sum = make(Op::add, {make(Op::log, {parts.total}), parts.largest});
    return hides_some() ? where(is_nothing(parts.total), constant(infinity, type(sum)), sum) : sum;
  }

  /// Gradients take the logsumexp that they were given, unless this program computes it: then `share` finds that the
  /// attention's probabilities are these.
  ValueId probabilities() {
    if (old_->op == Op::attention || has_own_logsumexp()) return own_probabilities();
    return cast(make(Op::exp, {make(Op::sub, {scores(), input(inputs().logsumexp)})}), own_type());
  }

  /// Whether the logsumexp is of the very scores that are computed here.
  bool has_own_logsumexp() const {
    const Value& given = value_at(program_, operand(*old_, inputs().logsumexp));
    if (given.op != Op::attention_logsumexp) return false;
    const auto& of_given = std::get<ops::Attention>(given.attributes);
    const ops::AttentionInputs at = ops::attention_inputs(given.op, of_given);
    return of_given.scale == attributes().scale && of_given.causal == attributes().causal &&
           is_same(operand(given, at.query), operand(*old_, inputs().query)) &&
           is_same(operand(given, at.key), operand(*old_, inputs().key)) &&
           is_same(operand(given, at.mask), operand(*old_, inputs().mask));
  }

  static ValueId operand(const Value& value, int i) { return i < 0 ? -1 : value.inputs[static_cast<std::size_t>(i)]; }

  /// Whether a view on the way to the value's memory is elsewhere in each run.
  bool moves(ValueId id) const {
    for (; is_view(value_at(program_, id)); id = value_at(program_, id).inputs[0]) {
      if (std::get<ops::View>(value_at(program_, id).attributes).dynamic) return true;
    }
    return false;
  }

  /// Whether these are known to be the same elements of the same value, through whichever views.
  bool is_same(ValueId a, ValueId b) const {
    if (a == b || a < 0 || b < 0) return a == b;
    if (moves(a) || moves(b)) return false;
    const ValueId base = base_of(program_, a);
    if (base != base_of(program_, b) || value_at(program_, a).shape != value_at(program_, b).shape) return false;
    const auto place = resolve_on(program_, a, base);
    return place && place == resolve_on(program_, b, base);
  }

  ValueId kept() {
    const ValueId uniform = input(inputs().uniform);
    return make(Op::le, {constant(attributes().dropout, type(uniform)), uniform});
  }
  double kept_factor() const { return 1 / (1 - attributes().dropout); }

  ValueId dropped(ValueId p) {
    if (inputs().uniform < 0) return p;
    return where(kept(), scaled(p, kept_factor()), constant(0, type(p)));
  }

  /// The gradient for the scores before they were scaled.
  ValueId slope() {
    ValueId g = product(input(inputs().gradient), transposed(value()));
    if (inputs().uniform >= 0) g = scaled(where(kept(), g, constant(0, type(g))), kept_factor());
    g = wide(g);
    const ValueId p = wide(probabilities());
    const ValueId delta = input(inputs().delta);
    return cast(scaled(make(Op::mul, {p, make(Op::sub, {g, delta})}), attributes().scale), own_type());
  }

  ValueId decomposed() {
    switch (old_->op) {
      case Op::attention: return product(dropped(probabilities()), value());
      case Op::attention_logsumexp: return logsumexp();
      case Op::attention_query_gradient: return product(slope(), key());
      case Op::attention_key_gradient: return shortened(product(transposed(slope()), input(inputs().query)));
      default: return shortened(product(transposed(dropped(probabilities())), input(inputs().gradient)));
    }
  }

  struct Lengthened {
    ValueId old, value;
    bool again;  // is computed again
  };

  Program& program_;
  const Target& target_;
  Rewriter rewriter_;
  const Value* old_ = nullptr;  // what is being decomposed
  Inputs inputs_{};             // its new ones
  std::vector<Lengthened> lengthened_;
};

}  // namespace

void decompose(Program& program, const Target& target) {
  for (const Value& value : program.values) {
    if (!is_attention(value) || target.prefers_attention(primitive_of(program, value))) continue;
    Decomposer(program, target).run();
    // Before views are pushed into what several read, each in an order of its own.
    share(program, target);
    // What only the kernels would have read.
    return prune(program, target);
  }
}

}  // namespace russet::compile::passes
