// Reorder: where the best that a device has for a contraction takes operands in one memory order alone, those that lie
// otherwise are copied to it, and results from it. What passes before this one could give that order has it already.
//   convolution(x [NHWC], w [leaf])         ->  convolution(x, cast(w) [NHWC])
//   output = convolution_weight(x, g)       ->  output = cast(convolution_weight(x, g) [NHWC])
//   matmul(q [2, 8, n, w], ...)             ->  matmul(cast(q), ...)   where heads lie between rows
#include <map>
#include <tuple>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/layouts.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

bool is_contraction(const Value& value) { return ops::row(value.op).family == ops::Family::contraction; }

class Reorderer {
 public:
  Reorderer(Program& program, const Target& target) : program_(program), target_(target), rewriter_(program) {}

  void run() {
    rewriter_.run([this](Value value, ValueId old) {
      if (!is_contraction(value)) return rewriter_.add(std::move(value));
      return add_contraction(std::move(value), primitive_of(program_, value_at(program_, old)));
    });
  }

 private:
  ValueId add_contraction(Value value, const Primitive& primitive) {
    for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
      const auto required = target_.required_strides(primitive, static_cast<int>(i));
      if (required && !has_strides(primitive.inputs[i], *required)) {
        value.inputs[i] = in_order(value.inputs[i], *required, value);
      }
    }
    const auto required = target_.required_strides(primitive, -1);
    if (!required || same_strides(value.shape, value.strides, *required)) return rewriter_.add(std::move(value));
    const Strides wanted = value.strides;
    value.strides = *required;
    const Value contraction = value;
    return copy_of(rewriter_.add(std::move(value)), wanted, contraction);
  }

  /// A copy of the value, the same for all that want it so.
  ValueId in_order(ValueId id, const Strides& strides, const Value& reader) {
    const std::vector<std::int64_t> order(strides.begin(), strides.end());
    const auto [known, is_new] = copies_.try_emplace({id, order, reader.again}, -1);
    if (is_new) known->second = copy_of(id, strides, reader);
    return known->second;
  }

  ValueId copy_of(ValueId id, const Strides& strides, const Value& reader) {
    const Value& source = rewriter_.at(id);
    Value copy;
    copy.op = ops::Op::cast;
    copy.dtype = source.dtype;
    copy.shape = source.shape;
    copy.inputs = {id};
    copy.strides = strides;
    copy.again = reader.again;
    copy.origin = reader.origin;
    return rewriter_.add(std::move(copy));
  }

  Program& program_;
  const Target& target_;
  Rewriter rewriter_;
  /// By the value, their strides, and whether readers are computed again.
  std::map<std::tuple<ValueId, std::vector<std::int64_t>, bool>, ValueId> copies_;
};

/// Whether a contraction of the program has operands that may not lie anyhow.
bool has_required_orders(const Program& program, const Target& target) {
  return std::ranges::any_of(program.values, [&](const Value& value) {
    if (!is_contraction(value)) return false;
    const Primitive primitive = primitive_of(program, value);
    return std::ranges::any_of(std::array{-1, 0, 1},
                               [&](int operand) { return target.required_strides(primitive, operand).has_value(); });
  });
}

}  // namespace

void reorder(Program& program, const Target& target) {
  if (has_required_orders(program, target)) Reorderer(program, target).run();
}

}  // namespace russet::compile::passes
