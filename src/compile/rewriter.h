#pragma once
// Rewriter: what passes share that write a program anew, value by value.
#include <algorithm>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "compile/program.h"

namespace russet::compile {

class Rewriter {
 public:
  explicit Rewriter(Program& program) : program_(program) {}

  /// Replaces the program's values by what `rewrite` makes of each: it is called with the value, whose inputs are new
  /// values, and its old number, adds what it wants, and returns the new value that stands for the old one.
  void run(base::FunctionRef<ValueId(Value, ValueId)> rewrite);

  /// The new value in an old one's place; an old one whose turn has not come is rewritten at once, with what it reads.
  ValueId place(ValueId old);
  const Value& at(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  ValueId add(Value value);
  /// A value of an operator, computed for what `reason` was computed for. `given`: what its rules take from the caller.
  /// What was made like it before serves again.
  ValueId make(const Value& reason, ops::Op op, std::initializer_list<ValueId> inputs, ops::Attributes attributes = {},
               const ops::Description& given = {DType::float32, {}});
  /// The elements of `x`, counted in row-major order, at these places.
  ValueId view(const Value& reason, ValueId x, const Shape& sizes, const Strides& strides);
  /// A product whose result has this type, which may be another one than its factors'.
  ValueId product(const Value& reason, ValueId a, ValueId b, DType dtype);
  ValueId reshape(const Value& reason, ValueId x, const Shape& sizes);
  /// The elements of `x`, taken as an array of the sizes `as`, with that array's axes in another order.
  ValueId permute(const Value& reason, ValueId x, const Shape& as, std::initializer_list<int> order);
  /// Side by side along an axis.
  ValueId cat(const Value& reason, std::span<const ValueId> pieces, int axis);
  /// With the last two axes swapped.
  ValueId transpose(const Value& reason, ValueId x);

 private:
  /// A value of an operator, with the type and shape that its rules give.
  Value described(const Value& reason, ops::Op op, std::initializer_list<ValueId> inputs, ops::Attributes attributes,
                  const ops::Description& given) const;
  ValueId share_or_add(Value value);
  void finish();

  Program& program_;
  const base::FunctionRef<ValueId(Value, ValueId)>* rewrite_ = nullptr;
  std::vector<ValueId> place_;  // -1 before a value's turn
  std::vector<Value> values_;
  std::unordered_multimap<std::uint64_t, ValueId> made_;  // by hash
};

/// Rewrites each value that `find` says something of (an optional): `write` gets the rewriter, the value with new
/// inputs and what was said, and returns the new value.
template <class Find, class Write>
void rewrite_found(Program& program, const Find& find, const Write& write) {
  const auto is_found = [&](const Value& value) { return find(value).has_value(); };
  if (std::none_of(program.values.begin(), program.values.end(), is_found)) return;
  Rewriter rewriter(program);
  rewriter.run([&](Value value, ValueId old) {
    const auto found = find(value_at(program, old));
    return found ? write(rewriter, value, *found) : rewriter.add(std::move(value));
  });
}

}  // namespace russet::compile
