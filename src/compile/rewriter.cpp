#include "compile/rewriter.h"

#include "compile/same_value.h"
#include "ops/table.h"

namespace russet::compile {

void Rewriter::run(base::FunctionRef<ValueId(Value, ValueId)> rewrite) {
  rewrite_ = &rewrite;
  place_.assign(program_.values.size(), -1);
  values_.reserve(program_.values.size());
  for (std::size_t id = 0; id < program_.values.size(); ++id) place(static_cast<ValueId>(id));
  finish();
}

ValueId Rewriter::place(ValueId old) {
  const auto at = static_cast<std::size_t>(old);
  if (place_[at] >= 0) return place_[at];
  Value value = program_.values[at];
  for (ValueId& input : value.inputs) {
    if (input >= 0) input = place(input);
  }
  return place_[at] = (*rewrite_)(std::move(value), old);
}

ValueId Rewriter::add(Value value) {
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Rewriter::make(const Value& reason, ops::Op op, std::initializer_list<ValueId> inputs,
                       ops::Attributes attributes, const ops::Description& given) {
  return share_or_add(described(reason, op, inputs, std::move(attributes), given));
}

ValueId Rewriter::product(const Value& reason, ValueId a, ValueId b, DType dtype) {
  Value value = described(reason, ops::Op::matmul, {a, b}, {}, {DType::float32, {}});
  value.dtype = dtype;
  return share_or_add(std::move(value));
}

Value Rewriter::described(const Value& reason, ops::Op op, std::initializer_list<ValueId> inputs,
                          ops::Attributes attributes, const ops::Description& given) const {
  Value value;
  value.op = op;
  value.origin = reason.origin;
  value.again = reason.again;
  value.inputs = Inputs(inputs);
  value.attributes = std::move(attributes);
  std::vector<ops::Description> descriptions;
  for (const ValueId input : inputs) descriptions.push_back({at(input).dtype, at(input).shape});
  std::vector<const ops::Description*> pointers;
  pointers.reserve(descriptions.size());
  for (const ops::Description& description : descriptions) pointers.push_back(&description);
  const ops::Description result = ops::infer(op, pointers, value.attributes, given);
  value.dtype = result.dtype;
  value.shape = result.shape;
  value.strides = contiguous_strides(value.shape);
  return value;
}

ValueId Rewriter::share_or_add(Value value) {
  const std::uint64_t hash = hash_of(value);
  const auto [first, last] = made_.equal_range(hash);
  const auto same =
      std::find_if(first, last, [&](const auto& made) { return compute_the_same(at(made.second), value); });
  if (same != last && is_shared(value)) return same->second;
  const ValueId id = add(std::move(value));
  made_.emplace(hash, id);
  return id;
}

ValueId Rewriter::view(const Value& reason, ValueId x, const Shape& sizes, const Strides& strides) {
  return make(reason, ops::Op::strided, {x}, ops::View{strides, 0, false}, {at(x).dtype, sizes});
}

ValueId Rewriter::cat(const Value& reason, std::span<const ValueId> pieces, int axis) {
  Shape sizes = at(pieces.front()).shape;
  sizes[axis] = 0;
  for (const ValueId piece : pieces) sizes[axis] += at(piece).shape[axis];
  const Strides strides = contiguous_strides(sizes);
  ValueId whole = make(reason, ops::Op::empty, {}, {}, {at(pieces.front()).dtype, sizes});
  std::int64_t start = 0;
  for (const ValueId piece : pieces) {
    whole = make(reason, ops::Op::overwrite, {whole, piece}, ops::View{strides, start * strides[axis], false});
    start += at(piece).shape[axis];
  }
  return whole;
}

ValueId Rewriter::reshape(const Value& reason, ValueId x, const Shape& sizes) {
  return view(reason, x, sizes, contiguous_strides(sizes));
}

ValueId Rewriter::permute(const Value& reason, ValueId x, const Shape& as, std::initializer_list<int> order) {
  const Strides dense = contiguous_strides(as);
  Shape sizes;
  Strides strides;
  for (const int axis : order) {
    sizes.push_back(as[axis]);
    strides.push_back(dense[axis]);
  }
  return view(reason, x, sizes, strides);
}

ValueId Rewriter::transpose(const Value& reason, ValueId x) {
  Shape sizes = at(x).shape;
  Strides strides = contiguous_strides(sizes);
  const int rank = sizes.rank();
  std::swap(sizes[rank - 1], sizes[rank - 2]);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return view(reason, x, sizes, strides);
}

void Rewriter::finish() {
  for (Leaf& leaf : program_.leaves) leaf.value = place(leaf.value);
  for (Output& output : program_.outputs) output.value = place(output.value);
  program_.values = std::move(values_);
}

}  // namespace russet::compile
