// Primitives that are run as groups, and movement between layouts that no group describes.
#include "device/cpu/plain.h"

#include <fmt/format.h>

#include "compile/as_groups.h"
#include "device/cpu/gemm.h"
#include "device/cpu/group/group_kernel.h"
#include "device/cpu/operand.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;

class GroupsKernel final : public compile::Kernel {
 public:
  explicit GroupsKernel(const std::vector<compile::Group>& groups) {
    for (const compile::Group& group : groups) {
      kernels_.push_back(make_group_kernel(group));
      scratch_bytes_ = std::max(scratch_bytes_, kernels_.back()->scratch_bytes());
    }
  }
  void run(const Bindings& bindings) const override {
    for (const auto& kernel : kernels_) kernel->run(bindings);
  }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string name() const override { return kernels_.empty() ? "nothing" : kernels_.front()->name(); }

 private:
  std::vector<KernelPtr> kernels_;
  std::size_t scratch_bytes_ = 0;
};

class Movement final : public compile::Kernel {
 public:
  explicit Movement(Primitive primitive) : primitive_(std::move(primitive)) {}

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { move<Element>(bindings); });
  }
  std::string name() const override { return "plain"; }

 private:
  /// Where the element at a row-major position of an operand lies.
  static std::int64_t locate(const Operand& operand, std::int64_t position) {
    std::int64_t at = 0;
    for (int axis = operand.sizes.rank() - 1; axis >= 0; --axis) {
      at += position % operand.sizes[axis] * operand.access.strides[axis];
      position /= operand.sizes[axis];
    }
    return at;
  }

  template <class Element>
  void move(const Bindings& bindings) const {
    if (primitive_.op == Op::empty || primitive_.op == Op::leaf) return;
    const auto& view = attribute<ops::View>(primitive_);
    std::int64_t start = view.offset;
    if (view.dynamic) start += static_cast<std::int64_t>(bindings.arguments[primitive_.argument]);
    const Operand& first = primitive_.inputs[0];
    const Operand& output = primitive_.output;
    const auto* const from = address_as<const Element>(first.access, bindings);
    auto* const to = address_as<Element>(output.access, bindings);
    if (primitive_.op == Op::strided) {
      walk(
          output.sizes,
          [&](std::int64_t target, std::int64_t position) { to[target] = from[locate(first, start + position)]; },
          output.access.strides, view.strides);
      return;
    }
    if (from != to || first.access.strides != output.access.strides) {
      walk(
          output.sizes, [&](std::int64_t target, std::int64_t source) { to[target] = from[source]; },
          output.access.strides, first.access.strides);
    }
    const Operand& value = primitive_.inputs[1];
    const auto* const values = address_as<const Element>(value.access, bindings);
    walk(
        value.sizes,
        [&](std::int64_t source, std::int64_t position) { to[locate(output, start + position)] = values[source]; },
        value.access.strides, view.strides);
  }

  Primitive primitive_;
};

/// The name of an implementation that would take the contraction without its epilogue; nullptr if none would.
const char* faster_without_epilogue(const Primitive& primitive) {
  if (primitive.epilogue.code.empty()) return nullptr;
  Primitive bare = primitive;
  bare.epilogue = {};
  for (const Implementation& implementation : implementations(bare.op)) {
    if (implementation.judge != judge_product && implementation.judge(bare).accepted()) return implementation.name;
  }
  return nullptr;
}

}  // namespace

Verdict judge_product(const Primitive& primitive) {
  Epilogue epilogue = read_epilogue(primitive);
  std::string reason;
  if (!takes_epilogue(primitive, epilogue, reason)) return decline(reason);
  if (const char* const faster = faster_without_epilogue(primitive)) {
    return decline(fmt::format("{} and a group after it are faster", faster));
  }
  return accept([&primitive, epilogue = std::move(epilogue)] { return make_product_kernel(primitive, epilogue); });
}

Verdict judge_groups(const Primitive& primitive) {
  auto groups = compile::as_groups(primitive);
  if (!groups) return decline("operands whose layout no group describes");
  return accept([groups = std::move(*groups)] { return std::make_unique<GroupsKernel>(groups); });
}

Verdict judge_movement(const Primitive& primitive) {
  return accept([&primitive] { return std::make_unique<Movement>(primitive); });
}

}  // namespace russet::cpu
