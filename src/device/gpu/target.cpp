#include "device/gpu/target.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <functional>

#include "base/log.h"
#include "compile/as_groups.h"
#include "compile/emit.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/expressions.h"
#include "device/gpu/fallback.h"
#include "device/gpu/gpu_kernel.h"
#include "ops/table.h"

namespace russet::gpu {

namespace {

/// The group as the emitter takes it.
compile::Group prepared(const compile::Group& group) {
  compile::Group merged = group;
  compile::merge_axes(merged);
  for (const compile::Instruction& in : merged.code) {
    // A position is no memory, whatever its access says.
    if (in.kind == compile::Instruction::Kind::index) merged.accesses[static_cast<std::size_t>(in.access)].slot = -1;
  }
  const bool column = merged.kind == compile::Group::Kind::column;
  const bool row = merged.kind == compile::Group::Kind::row;
  if ((column && merged.split != 0) || (row && merged.split != merged.space.rank())) return merged;
  // Reductions of single elements are the elements.
  merged.kind = compile::Group::Kind::elementwise;
  for (compile::Instruction& in : merged.code) {
    if (in.kind != compile::Instruction::Kind::reduce) continue;
    const bool position = in.op == ops::Op::argmax || in.op == ops::Op::argmin;
    in.kind = position ? compile::Instruction::Kind::constant : compile::Instruction::Kind::compute;
    in.op = position ? ops::Op::leaf : ops::Op::cast;
    if (position) in.inputs = {-1, -1, -1};
  }
  return merged;
}

}  // namespace

KernelPtr make_group_kernel(const compile::Group& group, const Context& context) {
  const compile::Group merged = prepared(group);
  constexpr const char* names[] = {"elementwise", "row", "column"};
  const char* const name = names[static_cast<int>(merged.kind)];
  std::int64_t kept = 1;  // no element of these, no result
  for (int axis = 0; axis < merged.space.rank(); ++axis) {
    const bool leading = axis < merged.split;
    if (merged.kind == compile::Group::Kind::elementwise || leading == (merged.kind == compile::Group::Kind::row)) {
      kept *= merged.space[axis];
    }
  }
  if (kept == 0) return std::make_unique<GpuKernel>(context, name, std::vector<Call>{});
  EmittedCalls emitted = emit(merged, context);
  return std::make_unique<GpuKernel>(context, name, std::move(emitted.calls), emitted.scratch_bytes);
}

namespace {

using compile::Group;
using compile::Primitive;
using compile::Step;

/// Several kernels that are one step.
class Sequence final : public compile::Kernel {
 public:
  explicit Sequence(std::vector<KernelPtr> kernels) : kernels_(std::move(kernels)) {}
  void run(const compile::Bindings& bindings) const override {
    for (const KernelPtr& kernel : kernels_) kernel->run(bindings);
  }
  std::size_t scratch_bytes() const override {
    std::size_t bytes = 0;
    for (const KernelPtr& kernel : kernels_) bytes = std::max(bytes, kernel->scratch_bytes());
    return bytes;
  }
  std::string name() const override { return kernels_.empty() ? "nothing" : kernels_.front()->name(); }
  int launches() const override {
    int count = 0;
    for (const KernelPtr& kernel : kernels_) count += kernel->launches();
    return count;
  }
  const std::vector<KernelPtr>& kernels() const { return kernels_; }

 private:
  std::vector<KernelPtr> kernels_;
};

class Target final : public compile::Target {
 public:
  Target(Driver& driver, DeviceType type)
      : library_(driver), stream_(driver), context_{library_, stream_, {}}, driver_(driver), type_(type) {}

  KernelPtr compile(const Step& step) const override {
    if (const auto* group = std::get_if<Group>(&step)) {
      const std::string reason = why_not_emitted(*group);
      if (!reason.empty()) return make_fallback(step, reason, stream_, type_);
      return make_group_kernel(*group, context());
    }
    if (const auto* bundle = std::get_if<compile::Bundle>(&step)) return compile_bundle(*bundle);
    const auto& primitive = std::get<Primitive>(step);
    Verdict verdict = judge(primitive, true);
    if (!verdict.accepted()) return make_fallback(step, verdict.reason, stream_, type_);
    KernelPtr kernel = verdict.make();
    compile::log_choice(primitive, *kernel);
    return kernel;
  }

  void prepare(std::span<const KernelPtr> kernels) const override {
    std::vector<FunctionPtr> functions;
    for (const KernelPtr& kernel : kernels) collect(*kernel, functions);
    library_.build(functions);
  }

  bool computes(DType dtype) const override { return has_type(dtype); }

  int max_accesses() const override { return max_buffers - 4; }

  bool accepts_epilogue(const Primitive& contraction) const override { return judge(contraction, false).accepted(); }

  Strides preferred_strides(const Primitive& contraction, int operand) const override {
    const Shape& sizes =
        operand < 0 ? contraction.output.sizes : contraction.inputs[static_cast<std::size_t>(operand)].sizes;
    const bool weight = (contraction.op == ops::Op::convolution_weight && operand == -1) ||
                        (contraction.op != ops::Op::convolution_weight && operand == 1);
    if (contraction.op == ops::Op::matmul || weight) return contiguous_strides(sizes);
    return {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};  // channels last
  }

  std::size_t largest_bundle() const override { return 64; }

  std::uint64_t key() const override { return std::hash<std::string>()(context().properties.family); }

 private:
  /// The driver is complete when the first question comes, not when its target is made.
  const Context& context() const {
    if (context_.properties.family.empty()) context_.properties = driver_.gpu_properties();
    return context_;
  }

  KernelPtr compile_bundle(const compile::Bundle& bundle) const {
    const std::string reason = why_not_emitted(bundle.groups.front());
    if (!reason.empty()) return make_fallback(bundle, reason, stream_, type_);
    std::vector<Group> groups;
    for (const Group& group : bundle.groups) groups.push_back(prepared(group));
    return std::make_unique<GpuKernel>(context(), "bundle", emit_bundle(groups, context()).calls);
  }

  Verdict judge(const Primitive& primitive, bool log) const {
    if (auto groups = compile::as_groups(primitive)) {
      for (const Group& group : *groups) {
        std::string reason = why_not_emitted(group);
        if (!reason.empty()) return decline(std::move(reason));
      }
      return accept([this, groups = std::move(*groups)]() -> KernelPtr {
        std::vector<KernelPtr> kernels;
        for (const Group& group : groups) kernels.push_back(make_group_kernel(group, context()));
        if (kernels.size() == 1) return std::move(kernels.front());
        return std::make_unique<Sequence>(std::move(kernels));
      });
    }
    return compile::choose<const Context&>(implementations(primitive.op), primitive, log, context());
  }

  static void collect(const compile::Kernel& kernel, std::vector<FunctionPtr>& functions) {
    if (const auto* gpu = dynamic_cast<const GpuKernel*>(&kernel)) {
      for (const Call& call : gpu->calls()) functions.push_back(call.function);
    } else if (const auto* sequence = dynamic_cast<const Sequence*>(&kernel)) {
      for (const KernelPtr& part : sequence->kernels()) collect(*part, functions);
    }
  }

  mutable Library library_;
  mutable Stream stream_;
  mutable Context context_;
  Driver& driver_;
  DeviceType type_;
};

}  // namespace

std::unique_ptr<compile::Target> make_target(Driver& driver, DeviceType type) {
  return std::make_unique<Target>(driver, type);
}

}  // namespace russet::gpu
