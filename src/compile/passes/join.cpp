// Join: products of matrices that share a factor become one, whose other factor is put together; so do products that
// are added up. A device's library fills the machine with one large product where it does not with several small ones.
//   q = x a + b; k = x c + d           ->      y = x [a c] + [b d]; q, k = the columns of y
//   a = x^T g; c = x^T h               ->      w = x^T [g h]; a, c = the columns of w
//   x' = y + (g a^T + h c^T)           ->      x' = y + [g h] [a c]^T
// What is put together costs nothing where it is computed in its place (see place.cpp), as casts of weights and the
// gradients of an attention are.
#include <algorithm>
#include <map>
#include <set>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "graph/strided.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// Values between the first and the last of several products that become one.
constexpr ValueId farthest = 1024;
constexpr std::size_t most_joined = 64;

bool contains(const std::vector<ValueId>& values, ValueId id) {
  return std::find(values.begin(), values.end(), id) != values.end();
}

/// All elements of a value in row-major order, as a matrix or a vector: its first size tells the others.
struct Part {
  ValueId source = -1;
  Shape sizes;
  auto operator<=>(const Part& other) const {
    return std::tuple(source, sizes.rank(), sizes[0]) <=> std::tuple(other.source, other.sizes.rank(), other.sizes[0]);
  }
  bool operator==(const Part&) const = default;
};

/// A factor as it is stored: itself, or what it is the transpose of.
struct Factor {
  Part stored;
  bool is_transposed = false;
};

/// Products that share the factor `shared` (0 or 1), in the order in which their results lie side by side. `results`:
/// the products, or their sums with `biases`.
struct Siblings {
  std::size_t shared = 0;
  std::vector<ValueId> products, results, biases;
};

/// Products among the terms of a sum, in the order in which their factors lie side by side, and the other terms.
struct Terms {
  std::vector<ValueId> products, others;
  DType dtype = DType::float32;  // of the terms
};

class Joins {
 public:
  Joins(Program& program, const Target& target) : program_(program), readers_(program, Readers::Views::read) {
    for (std::size_t id = 0; id < program.values.size(); ++id) {
      const Value& value = program.values[id];
      joins_.push_back(value.op == Op::matmul && value.shape.rank() == 2 &&
                       target.joins_products(primitive_of(program, value)));
    }
  }

  /// Finds what becomes one product. Sums come first: they say in which order factors lie, for both of theirs.
  bool find() {
    if (std::ranges::none_of(joins_, [](bool joins) { return joins; })) return false;
    for (std::size_t id = 0; id < program_.values.size(); ++id) find_terms(static_cast<ValueId>(id));
    find_siblings();
    return !sums_.empty() || !siblings_.empty();
  }

  void write() {
    Rewriter rewriter(program_);
    rewriter_ = &rewriter;
    rewriter.run([this](Value value, ValueId id) {
      if (const auto sum = sums_.find(id); sum != sums_.end()) return sum_of(value, sum->second);
      if (const auto result = siblings_of_.find(id); result != siblings_of_.end()) {
        return result_of(value, id, siblings_[result->second]);
      }
      return rewriter_->add(std::move(value));
    });
  }

 private:
  const Value& old(ValueId id) const { return value_at(program_, id); }
  bool joins(ValueId id) const { return joins_[static_cast<std::size_t>(id)]; }

  Factor factor(ValueId product, std::size_t side) const {
    const ValueId id = old(product).inputs[side];
    const Value& value = old(id);
    const Factor itself{{id, value.shape}, false};
    if (!is_view(value) || numel(value.shape) != numel(old(value.inputs[0]).shape)) return itself;
    const auto& view = std::get<ops::View>(value.attributes);
    if (view.dynamic || view.offset != 0) return itself;
    const Shape swapped{value.shape[1], value.shape[0]};
    if (graph::is_row_major(value.shape, view.strides)) return {{value.inputs[0], value.shape}, false};
    if (graph::is_row_major(swapped, {view.strides[1], view.strides[0]})) return {{value.inputs[0], swapped}, true};
    return itself;
  }

  std::vector<Part> stored(const std::vector<ValueId>& products, std::size_t side) const {
    std::vector<Part> all;
    for (const ValueId product : products) all.push_back(factor(product, side).stored);
    return all;
  }

  // Sums

  void find_terms(ValueId root) {
    if (old(root).op != Op::add || old(root).shape.rank() != 2 || is_inner_sum(root)) return;
    std::map<std::tuple<DType, bool, bool, bool>, Terms> kinds;  // of products that may be one
    std::vector<ValueId> terms;
    collect_terms(root, root, terms);
    for (const ValueId term : terms) {
      if (const ValueId product = product_of(term, root); product >= 0) {
        const bool left = factor(product, 0).is_transposed;
        const bool right = factor(product, 1).is_transposed;
        kinds[{old(product).dtype, old(product).again, left, right}].products.push_back(product);
      }
    }
    for (auto& [kind, sum] : kinds) {
      if (sum.products.size() < 2 || sum.products.size() > most_joined) continue;
      std::ranges::sort(sum.products, {}, [&](ValueId product) { return factor(product, 1).stored; });
      for (const ValueId term : terms) {
        const ValueId product = product_of(term, root);
        if (!contains(sum.products, product)) sum.others.push_back(term);
      }
      sum.dtype = old(root).dtype;
      note_order(stored(sum.products, 0));
      sums_.emplace(root, std::move(sum));
      return;
    }
  }

  /// Whether a sum is a term of a larger one alone.
  bool is_inner_sum(ValueId id) const {
    const ValueId reader = readers_.only_reader(id);
    return reader >= 0 && is_term(id, reader);
  }

  bool is_term(ValueId id, ValueId sum) const {
    const auto is_alike = [&](ValueId input) {
      return old(input).shape == old(sum).shape && old(input).dtype == old(sum).dtype;
    };
    return old(sum).op == Op::add && is_alike(id) && is_alike(old(sum).inputs[0]) && is_alike(old(sum).inputs[1]) &&
           old(id).again == old(sum).again;
  }

  void collect_terms(ValueId sum, ValueId root, std::vector<ValueId>& terms) const {
    for (const ValueId input : {old(sum).inputs[0], old(sum).inputs[1]}) {
      const bool goes_on = old(input).op == Op::add && readers_.only_reader(input) == sum && is_term(input, sum) &&
                           old(input).shape == old(root).shape && terms.size() < most_joined;
      if (goes_on) {
        collect_terms(input, root, terms);
      } else {
        terms.push_back(input);
      }
    }
  }

  /// The product that a term is, or the cast of, or -1.
  ValueId product_of(ValueId term, ValueId root) const {
    if (old(term).shape != old(root).shape || old(term).dtype != old(root).dtype || readers_.only_reader(term) < 0)
      return -1;
    const ValueId id = old(term).op == Op::cast ? old(term).inputs[0] : term;
    return joins(id) && readers_.only_reader(id) >= 0 && old(id).again == old(root).again ? id : -1;
  }

  ValueId sum_of(const Value& reason, const Terms& sum) {
    const ValueId left = joined_factor(reason, sum.products, 0, 1);
    const ValueId right = joined_factor(reason, sum.products, 1, 0);
    ValueId whole = rewriter_->product(reason, left, right, old(sum.products.front()).dtype);
    if (rewriter_->at(whole).dtype != sum.dtype) {
      whole = rewriter_->make(reason, Op::cast, {whole}, {}, {sum.dtype, rewriter_->at(whole).shape});
    }
    for (std::size_t i = sum.others.size(); i-- > 0;) {
      whole = rewriter_->make(reason, Op::add, {rewriter_->place(sum.others[i]), whole});
    }
    return whole;
  }

  // Shared factors

  void find_siblings() {
    std::set<ValueId> taken;  // by sums
    for (const auto& [root, sum] : sums_) taken.insert(sum.products.begin(), sum.products.end());
    struct Key {
      std::size_t side;
      ValueId shared;
      std::int64_t depth;
      DType dtype;
      bool again, is_transposed;
      auto operator<=>(const Key&) const = default;
    };
    std::map<Key, std::vector<ValueId>> kinds;
    for (std::size_t id = 0; id < joins_.size(); ++id) {
      const auto product = static_cast<ValueId>(id);
      if (!joins(product) || taken.contains(product)) continue;
      for (const std::size_t side : {0U, 1U}) {
        const ValueId shared = old(product).inputs[side];
        kinds[{side, shared, old(shared).shape[side == 0 ? 1 : 0], old(product).dtype, old(product).again,
               factor(product, 1 - side).is_transposed}]
            .push_back(product);
      }
    }
    std::vector<std::pair<ValueId, ValueId>> spans;  // from the first product to the last
    for (auto& [key, products] : kinds) {
      if (products.size() < 2 || products.size() > most_joined) continue;
      Siblings siblings = siblings_of(key.side, products);
      const ValueId first = products.front();
      const ValueId last = std::max(products.back(), std::ranges::max(siblings.results));
      // Products that lie between the first and the last of others could wait for them while these wait for the others.
      const bool is_apart =
          std::ranges::all_of(spans, [&](const auto& span) { return last < span.first || first > span.second; });
      if (!is_apart || last - first > farthest || needs_own_results(siblings, first, last)) continue;
      spans.emplace_back(first, last);
      for (const ValueId result : siblings.results) siblings_of_.emplace(result, siblings_.size());
      siblings_.push_back(std::move(siblings));
    }
  }

  Siblings siblings_of(std::size_t side, std::vector<ValueId> products) const {
    sort_as_noted(products, 1 - side);
    Siblings siblings{side, products, products, {}};
    std::vector<ValueId> sums, biases;
    for (const ValueId product : products) {
      const ValueId sum = readers_.only_reader(product);
      if (side != 0 || sum < 0 || old(sum).op != Op::add || old(sum).inputs[0] != product) return siblings;
      const Value& bias = old(old(sum).inputs[1]);
      const bool is_row = bias.shape == Shape{old(product).shape[1]} && bias.dtype == old(product).dtype;
      if (!is_row || old(sum).shape != old(product).shape) return siblings;
      sums.push_back(sum);
      biases.push_back(old(sum).inputs[1]);
    }
    siblings.results = std::move(sums);
    siblings.biases = std::move(biases);
    return siblings;
  }

  /// Whether what one of the products is computed from depends on another one's result.
  bool needs_own_results(const Siblings& siblings, ValueId first, ValueId last) const {
    std::vector<ValueId> waiting = siblings.biases;
    for (const ValueId product : siblings.products) {
      waiting.push_back(old(product).inputs[0]);
      waiting.push_back(old(product).inputs[1]);
    }
    std::vector<bool> seen(static_cast<std::size_t>(last - first) + 1, false);
    while (!waiting.empty()) {
      const ValueId id = waiting.back();
      waiting.pop_back();
      if (id < first) continue;
      if (contains(siblings.products, id)) return true;
      if (seen[static_cast<std::size_t>(id - first)]) continue;
      seen[static_cast<std::size_t>(id - first)] = true;
      for (const ValueId input : old(id).inputs) {
        if (input >= 0) waiting.push_back(input);
      }
    }
    return false;
  }

  /// The part of the joined product that is this one's result.
  ValueId result_of(const Value& reason, ValueId result, const Siblings& siblings) {
    const Value& first = old(siblings.products.front());
    const std::size_t other = 1 - siblings.shared;
    const int axis = static_cast<int>(other);
    const ValueId shared = rewriter_->place(first.inputs[siblings.shared]);
    const ValueId factor = joined_factor(reason, siblings.products, other, axis);
    ValueId whole = rewriter_->product(reason, other == 0 ? factor : shared, other == 0 ? shared : factor, first.dtype);
    if (!siblings.biases.empty()) {
      std::vector<Part> biases;
      for (const ValueId bias : siblings.biases) biases.push_back({bias, old(bias).shape});
      whole = rewriter_->make(reason, Op::add, {whole, joined(reason, biases, 0)});
    }
    std::int64_t start = 0;
    for (std::size_t i = 0; siblings.results[i] != result; ++i) start += old(siblings.results[i]).shape[axis];
    const Strides strides = contiguous_strides(rewriter_->at(whole).shape);
    return rewriter_->make(reason, Op::strided, {whole}, ops::View{strides, start * strides[axis], false},
                           {reason.dtype, reason.shape});
  }

  // Factors that are put together

  /// That these lie side by side in this order.
  void note_order(const std::vector<Part>& parts) {
    std::vector<Part> sorted = parts;
    std::ranges::sort(sorted);
    orders_.emplace(std::move(sorted), parts);
  }

  void sort_as_noted(std::vector<ValueId>& products, std::size_t side) const {
    const auto part = [&](ValueId product) { return factor(product, side).stored; };
    std::ranges::sort(products, {}, part);
    const auto noted = orders_.find(stored(products, side));
    if (noted == orders_.end()) return;
    std::ranges::sort(products, {}, [&](ValueId product) { return std::ranges::find(noted->second, part(product)); });
  }

  /// The factors of products side by side, along the axis of theirs.
  ValueId joined_factor(const Value& reason, const std::vector<ValueId>& products, std::size_t side, int axis) {
    const bool is_transposed = factor(products.front(), side).is_transposed;
    const ValueId whole = joined(reason, stored(products, side), is_transposed ? 1 - axis : axis);
    return is_transposed ? rewriter_->transpose(reason, whole) : whole;
  }

  /// What the program has, side by side along an axis.
  ValueId joined(const Value& reason, const std::vector<Part>& parts, int axis) {
    const auto [known, is_new] = joined_.try_emplace({parts, axis, reason.again}, -1);
    if (!is_new) return known->second;
    std::vector<ValueId> pieces;
    for (const Part& part : parts)
      pieces.push_back(rewriter_->reshape(reason, rewriter_->place(part.source), part.sizes));
    return known->second = rewriter_->cat(reason, pieces, axis);
  }

  Program& program_;
  Readers readers_;
  std::vector<bool> joins_;  // by value
  std::map<ValueId, Terms> sums_;
  std::vector<Siblings> siblings_;
  std::map<ValueId, std::size_t> siblings_of_;             // by result
  std::map<std::vector<Part>, std::vector<Part>> orders_;  // by the parts, sorted
  std::map<std::tuple<std::vector<Part>, int, bool>, ValueId> joined_;
  Rewriter* rewriter_ = nullptr;
};

}  // namespace

void join(Program& program, const Target& target) {
  Joins joins(program, target);
  if (!joins.find()) return;
  joins.write();
  simplify(program, target);
  share(program, target);
  prune(program, target);
}

}  // namespace russet::compile::passes
