// Pieces: a sum of arrays that hold something in a part of their own each and zeros elsewhere, as the gradients of
// slices do, is one array that is written piece by piece. (Only the sign of zeros may be another one.)
//   add(overwrite(0, a), overwrite(0, b))  ->  overwrite(overwrite(0, a), b)
//   where a and b fill all of it           ->  overwrite(overwrite(empty, a), b)
#include <map>

#include "compile/clusters.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "graph/strided.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// Of one sum: each is compared with all others.
constexpr std::size_t most_pieces = 64;

class Pieces {
 public:
  explicit Pieces(Program& program) : program_(program), uses_(count_uses(program)), rewriter_(program) {
    for (std::size_t id = 0; id < program.values.size(); ++id) find(static_cast<ValueId>(id));
    std::erase_if(sums_, [](const auto& sum) { return sum.second.size() < 2; });
  }

  bool empty() const { return sums_.empty(); }

  void write() {
    rewriter_.run([this](Value value, ValueId old) {
      const auto sum = sums_.find(old);
      return sum == sums_.end() ? rewriter_.add(std::move(value)) : written(sum->second);
    });
  }

 private:
  /// Overwrites of zeros that a value adds up.
  using Sum = std::vector<ValueId>;

  const Value& old(ValueId id) const { return value_at(program_, id); }
  const ops::View& view_of(ValueId overwrite) const { return std::get<ops::View>(old(overwrite).attributes); }
  const Shape& sizes_of(ValueId overwrite) const { return old(old(overwrite).inputs[1]).shape; }

  void find(ValueId id) {
    const Value& value = old(id);
    if (value.op == Op::overwrite && !view_of(id).dynamic && is_constant(old(value.inputs[0]), 0)) sums_[id] = {id};
    if (value.op != Op::add) return;
    const auto first = sums_.find(value.inputs[0]);
    const auto second = sums_.find(value.inputs[1]);
    if (first == sums_.end() || second == sums_.end() || !joins(value, first->second, second->second)) return;
    Sum sum = first->second;
    sum.insert(sum.end(), second->second.begin(), second->second.end());
    sums_.erase(first);
    sums_.erase(second);
    sums_[id] = std::move(sum);
  }

  bool joins(const Value& value, const Sum& first, const Sum& second) const {
    for (const ValueId input : {value.inputs[0], value.inputs[1]}) {
      const bool is_alike = old(input).shape == value.shape && old(input).dtype == value.dtype;
      if (!is_alike || uses_[static_cast<std::size_t>(input)] > 1) return false;
    }
    if (first.size() + second.size() > most_pieces) return false;
    return std::ranges::all_of(first, [&](ValueId a) {
      return std::ranges::all_of(
          second, [&](ValueId b) { return graph::are_disjoint(view_of(a), sizes_of(a), view_of(b), sizes_of(b)); });
    });
  }

  ValueId written(const Sum& sum) {
    ValueId whole = base(sum);
    for (const ValueId piece : sum) {
      Value overwrite = old(piece);
      overwrite.inputs = {whole, rewriter_.place(overwrite.inputs[1])};
      whole = rewriter_.add(std::move(overwrite));
    }
    return whole;
  }

  /// What the first piece is written to: disjoint pieces that are as many elements as the whole leave none.
  ValueId base(const Sum& sum) {
    const Value& piece = old(sum.front());
    std::int64_t elements = 0;
    for (const ValueId one : sum) elements += numel(sizes_of(one));
    Value base = old(piece.inputs[0]);
    if (elements == numel(piece.shape)) {
      base.op = Op::empty;
      base.attributes = {};
    }
    return rewriter_.add(std::move(base));
  }

  Program& program_;
  std::vector<std::int32_t> uses_;
  std::map<ValueId, Sum> sums_;
  Rewriter rewriter_;
};

}  // namespace

void pieces(Program& program, const Target& target) {
  Pieces pieces(program);
  if (pieces.empty()) return;
  pieces.write();
  prune(program, target);
}

}  // namespace russet::compile::passes
