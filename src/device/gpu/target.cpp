#include "device/gpu/target.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "base/disk_cache.h"
#include "compile/as_groups.h"
#include "compile/emit.h"
#include "compile/layouts.h"
#include "compile/plan.h"
#include "device/gpu/emitter/bits.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/expressions.h"
#include "device/gpu/fallback.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/samples.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/tuner.h"
#include "device/gpu/vendor_library.h"
#include "ops/table.h"
#include "runtime/engine.h"

namespace russet::gpu {

namespace {

/// The group as the emitter takes it.
compile::Group prepared(const compile::Group& group) {
  compile::Group merged = group;
  compile::merge_axes(merged);
  for (const compile::Instruction& in : merged.code) {
    // An index instruction's access has no buffer.
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
    const bool deviation = in.op == ops::Op::squared_deviations;
    in.kind = position ? compile::Instruction::Kind::constant : compile::Instruction::Kind::compute;
    in.op = position ? ops::Op::leaf : deviation ? ops::Op::sub : ops::Op::cast;
    if (position) in.inputs = {-1, -1, -1};
    if (deviation) in.inputs[1] = in.inputs[0];
  }
  return merged;
}

}  // namespace

KernelPtr make_group_kernel(const compile::Group& group, const GpuContext& context) {
  compile::Group merged = prepared(group);
  move_bits(merged);
  constexpr const char* names[] = {"elementwise", "row", "column"};
  const char* const name = names[static_cast<int>(merged.kind)];
  std::int64_t kept = 1;  // product of the sizes that are not reduced; 0 if the result is empty
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
  bool only_launches() const override {
    return std::ranges::all_of(kernels_, [](const KernelPtr& kernel) { return kernel->only_launches(); });
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

/// The launches of members.
void collect_shared_calls(compile::Kernel& kernel, std::vector<Call*>& calls) {
  if (auto* gpu = dynamic_cast<GpuKernel*>(&kernel)) {
    for (Call& call : gpu->calls()) {
      if (!call.members.empty()) calls.push_back(&call);
    }
  } else if (const auto* sequence = dynamic_cast<const Sequence*>(&kernel)) {
    for (const KernelPtr& part : sequence->kernels()) collect_shared_calls(*part, calls);
  }
}

/// Bytes that a step moves; of a stage of a pool, that all of it does.
std::size_t moved_bytes(const Step& step) {
  const auto* stage = std::get_if<compile::Stage>(&step);
  const auto* whole = stage == nullptr ? nullptr : std::get_if<Primitive>(&stage->whole);
  return compile::bytes_of(whole == nullptr ? step : Step(*whole));
}

/// The contraction or pool alone: its inputs lie in memory, and its result has its inputs' type.
Primitive bare(const Primitive& primitive) {
  Primitive alone = primitive;
  alone.epilogue = {};
  alone.prologues = {};
  if (!primitive.epilogue.code.empty()) alone.output.access.dtype = primitive.inputs[0].access.dtype;
  return alone;
}

class Target final : public compile::Target {
 public:
  Target(Driver& driver, DeviceType type)
      : library_(driver), stream_(driver), context_{library_, stream_, {}, nullptr}, driver_(driver), type_(type) {}

  KernelPtr compile(const Step& step) const override {
    if (const auto* group = std::get_if<Group>(&step)) {
      const std::string reason = why_not_emitted(*group);
      if (!reason.empty()) return make_fallback(step, reason, stream_, type_);
      return modelled(make_group_kernel(*group, context()), step);
    }
    if (const auto* stage = std::get_if<compile::Stage>(&step)) return modelled(compile_stage(*stage), step);
    if (std::holds_alternative<compile::Bundle>(step)) return compile_bundle(step);
    const auto& primitive = std::get<Primitive>(step);
    Verdict verdict = judge(primitive, true);
    if (!verdict.accepted()) return make_fallback(step, verdict.reason, stream_, type_);
    KernelPtr kernel = verdict.make();
    compile::log_choice(primitive, *kernel);
    return modelled(std::move(kernel), step);
  }

  void share_code(std::span<const KernelPtr> kernels) const override {
    std::vector<Call*> calls;
    for (const KernelPtr& kernel : kernels) collect_shared_calls(*kernel, calls);
    share_tables(calls, context());
  }

  void prepare(std::span<const KernelPtr> kernels) const override {
    std::vector<FunctionPtr> functions;
    for (const KernelPtr& kernel : kernels) collect_functions(*kernel, functions);
    library_.build(functions);
  }

  bool computes(DType dtype) const override { return has_type(dtype); }

  bool has_attention(DType dtype) const override { return has_type(dtype); }

  /// A library's products make up for scores that go through memory, unless these are too many to be kept, or are
  /// multiplied in registers.
  bool prefers_attention(const Primitive& attention) const override {
    if (judge_attention_fragments(attention, context()).accepted()) return true;
    constexpr std::int64_t longest = 1024;
    const compile::Operand& key = attention.inputs[1];
    if (key.sizes[key.sizes.rank() - 2] > longest) return true;
    const Shape& query = attention.inputs[0].sizes;
    const auto product = 2 * static_cast<double>(numel(query)) * static_cast<double>(key.sizes[key.sizes.rank() - 2]);
    return !has_products(key.access.dtype, product);
  }

  std::int64_t line_multiple(DType dtype) const override {
    return dtype == DType::float32 && context().properties.has_warpgroups ? 4 : 1;
  }

  /// Libraries want whole vectors: patches of 147 elements cost ConvMixer's training 3 ms of 73 on an H100.
  bool prefers_products(const Primitive& convolution) const override {
    constexpr std::int64_t vector = 8;
    const auto operands = {-1, 0, 1};
    const auto weight =
        std::ranges::find_if(operands, [&](int operand) { return compile::is_weight(convolution, operand); });
    const Shape& sizes = compile::operand_of(convolution, *weight).sizes;
    return sizes[1] * sizes[2] * sizes[3] % vector == 0 &&
           has_products(convolution.inputs[0].access.dtype, compile::operations_of(convolution));
  }

  bool prefers_folded_scales(const Primitive& convolution, bool once) const override {
    const bool is_worth = once || numel(convolution.inputs[1].sizes) <= numel(convolution.output.sizes);
    return is_worth && std::ranges::any_of(driver_.vendor_libraries(),
                                           [&](const auto& library) { return library->adds_biases(convolution); });
  }

  /// Where a product alone does not fill the machine: a library's tiles of 128 x 256 are few for each of its cores,
  /// some of which wait for the last ones. Smaller products are short beside the launches that put factors together.
  bool joins_products(const Primitive& product) const override {
    constexpr std::int64_t most_elements = 3 * 132 * 128 * 256;
    constexpr double fewest_operations = 1e9;
    const double operations = compile::operations_of(product);
    return numel(product.output.sizes) <= most_elements && operations >= fewest_operations &&
           has_products(product.inputs[0].access.dtype, operations);
  }

  bool prefers_subsampling(const Primitive& convolution) const override {
    return std::ranges::any_of(driver_.vendor_libraries(),
                               [&](const auto& library) { return library->prefers_subsampling(convolution); });
  }

  bool prefers_space_to_depth(const Primitive& convolution) const override {
    return wants_channels_in_vectors(convolution, context().properties) ||
           std::ranges::any_of(driver_.vendor_libraries(),
                               [&](const auto& library) { return library->prefers_space_to_depth(convolution); });
  }

  bool adds_up_columns(const Group& group) const override {
    return why_not_emitted(group).empty() && should_add_up_columns(prepared(group), context());
  }

  /// By a threadgroup for each matrix of a batch, of which there must be enough.
  bool computes_gradients_at_once(const Primitive& key_gradient) const override {
    constexpr std::int64_t fewest = 128;
    Shape batch = key_gradient.output.sizes;
    batch.pop_back();
    batch.pop_back();
    return numel(batch) >= fewest && judge(key_gradient, false).accepted();
  }

  bool has_kernel(const Primitive& primitive) const override {
    const bool may = primitive.op != ops::Op::max_pool || context().properties.keeps_positions;
    return may && judge(primitive, false).accepted();
  }

  bool packs_masks(const Group& group) const override {
    return context().properties.packs_masks && why_not_emitted(group).empty() && stores_whole_bytes(prepared(group));
  }

  bool integers_divide_by_zero() const override { return true; }

  int max_accesses() const override { return max_buffers - 8; }

  /// What runs the bare contraction best must take the rest too, or a library, to which that costs nothing.
  bool accepts_epilogue(const Primitive& contraction) const override {
    const Verdict whole = judge(contraction, false);
    if (!whole.accepted()) return false;
    const Verdict plain = judge(bare(contraction), false);
    return whole.by == plain.by || is_library(whole.by);
  }

  bool epilogues_update_in_place() const override { return true; }

  bool stores_into_arrays(const Primitive& primitive) const override {
    // Libraries are asked last: that takes them a while.
    const bool is_attention = ops::row(primitive.op).family == ops::Family::attention;
    if (!is_attention && !judge_split_product(primitive, context()).accepted()) return false;
    const Verdict verdict = judge(primitive, false);
    return verdict.accepted() && (is_attention || verdict.by == split_product_name);
  }

  double cost_of_operations() const override { return context().properties.cost_of_operations; }
  bool takes_prologues() const override { return context().properties.takes_prologues; }
  bool computes_image(const Primitive& convolution) const override {
    return context().properties.has_fragments && convolution.op == ops::Op::convolution && is_stem(convolution);
  }

  Strides preferred_strides(const Primitive& contraction, int operand) const override {
    if (auto strides = required_strides(contraction, operand)) return *strides;
    const Shape& sizes = compile::operand_of(contraction, operand).sizes;
    if (contraction.op == ops::Op::matmul || compile::is_weight(contraction, operand)) return contiguous_strides(sizes);
    return compile::channels_last(sizes);
  }

  std::optional<Strides> required_strides(const Primitive& contraction, int operand) const override {
    for (const auto& library : driver_.vendor_libraries()) {
      if (auto strides = library->required_strides(contraction, operand, context().properties)) return strides;
    }
    const bool by_channels = is_depthwise(contraction) || (context().properties.has_fragments && is_stem(contraction));
    if (by_channels && !compile::is_weight(contraction, operand)) {
      return compile::channels_last(compile::operand_of(contraction, operand).sizes);
    }
    return std::nullopt;
  }

  /// Steps share a launch if they use as many threads in a threadgroup, or one simdgroup. Tiled contractions share only
  /// with tiles of the same size, since the joint kernel would need the threadgroup memory of both.
  compile::Sharing sharing(const Step& step) const override {
    if (moved_bytes(step) > context().properties.most_shared_bytes) return {};
    const KernelPtr kernel = launchable(step);
    const auto* gpu = dynamic_cast<const GpuKernel*>(kernel.get());
    if (gpu == nullptr || gpu->calls().size() != 1 || !can_share(gpu->calls()[0])) return {};
    const Call& call = gpu->calls()[0];
    std::string kind = std::to_string(is_simdgroup(*call.piece) ? 256 : call.piece->threads);
    for (const Piece::Array& array : call.piece->arrays) {
      if (array.name == "memory") kind += array.count;
    }
    return {std::move(kind), call.function->name()};
  }

  compile::BundleLimits bundle_limits() const override {
    compile::BundleLimits limits;
    limits.members = 1024;
    limits.codes = most_pieces;
    limits.waiting = 24;
    limits.window = 1024;
    // Measured on an H200: resnet18_cifar trains 1 % faster in bfloat16 with 8 than with 1024, mlp as fast (with 0
    // slower). With 8 bert_base at batch 8 has 540 launches, with 16 520, with 1024 476.
    limits.window_apart = 16;
    limits.held_bytes = std::size_t{64} << 20;
    return limits;
  }

  std::size_t bytes_apart() const override { return context().properties.bytes_apart; }

  std::optional<compile::SampleTimes> sample_times(const Step& step, std::int64_t samples) const override {
    if (!context().properties.runs_samples || samples < fewest_samples) return std::nullopt;
    const compile::SampleTimes times = modelled_sample_times(step, samples, context().properties);
    constexpr double most = 3;  // times what it takes alone
    if (times.together > most * times.alone || !call_by_samples(step, samples)) return std::nullopt;
    return times;
  }

  std::optional<compile::Stages> stages(const Step& step) const override {
    const KernelPtr kernel = launchable(step);
    const auto* gpu = dynamic_cast<const GpuKernel*>(kernel.get());
    if (gpu == nullptr || gpu->calls().size() != 2 || gpu->scratch_bytes() == 0) return std::nullopt;
    compile::Stages stages;
    stages.parts_bytes = gpu->scratch_bytes();
    for (std::size_t number = 0; number < 2; ++number) {
      const Call& call = gpu->calls()[number];
      if (!can_share(call)) return std::nullopt;
      for (const Region& region : call.regions) {
        if (region.slot < 0) continue;
        (region.writes ? stages.writes : stages.reads)[number].push_back(region.slot);
      }
    }
    return stages;
  }

  std::uint64_t key() const override { return std::hash<std::string>()(context().properties.family); }

 private:
  bool is_library(std::string_view implementation) const {
    return std::ranges::any_of(driver_.vendor_libraries(),
                               [&](const auto& library) { return library->name() == implementation; });
  }

  /// The driver's properties are read at the first use, since the driver is still being constructed when its target is
  /// made. Several threads may be first.
  const GpuContext& context() const {
    std::call_once(asked_, [this] {
      context_.properties = driver_.gpu_properties();
      const std::filesystem::path caches = base::cache_folder();
      tuner_ = std::make_unique<Tuner>(
          context_, driver_, wanted_tuning(), caches.empty() ? caches : caches / "finds", [this] {
            return Tuner::MeasuringMemory{runtime::engine_of(Device(type_)).memory(), Device(type_)};
          });
      context_.tiles = tuner_.get();
    });
    return context_;
  }

  /// Whether a library takes products of the type that have so many operations.
  bool has_products(DType dtype, double operations) const {
    return std::ranges::any_of(driver_.vendor_libraries(),
                               [&](const auto& library) { return library->multiplies(dtype, operations); });
  }

  double modelled_seconds(const Step& step) const {
    const auto bytes = static_cast<double>(compile::bytes_of(step));
    return russet::modelled_seconds(bytes, compile::operations_of(step), context().properties.chip,
                                    compile::factors_of(step));
  }

  /// The step's kernel with its launches cut where they are too long.
  KernelPtr modelled(KernelPtr kernel, const Step& step) const {
    if (auto* gpu = dynamic_cast<GpuKernel*>(kernel.get())) gpu->model(modelled_seconds(step), context());
    return kernel;
  }

  /// The step's kernel, if it is one of ours.
  KernelPtr launchable(const Step& step, bool log = false) const {
    if (const auto* group = std::get_if<Group>(&step)) {
      return why_not_emitted(*group).empty() ? make_group_kernel(*group, context()) : nullptr;
    }
    if (const auto* stage = std::get_if<compile::Stage>(&step)) return compile_stage(*stage);
    const auto* primitive = std::get_if<Primitive>(&step);
    if (primitive == nullptr) return nullptr;
    const Verdict verdict = judge(*primitive, log);
    if (!verdict.accepted()) return nullptr;
    KernelPtr kernel = verdict.make();
    if (log) compile::log_choice(*primitive, *kernel);
    return kernel;
  }

  /// One of the two launches of a kernel, its parts in a slot.
  KernelPtr compile_stage(const compile::Stage& stage) const {
    const Step step = std::visit([](const auto& whole) -> Step { return whole; }, stage.whole);
    const KernelPtr whole = launchable(step);
    const auto* gpu = dynamic_cast<const GpuKernel*>(whole.get());
    if (gpu == nullptr || gpu->calls().size() != 2) throw InternalError("a stage of a step that has none");
    Call call = gpu->calls()[static_cast<std::size_t>(stage.number)];
    for (Region& region : call.regions) {
      if (region.slot == Region::scratch) region.slot = stage.parts;
    }
    return std::make_unique<GpuKernel>(context(), gpu->name() + (stage.number == 0 ? ", parts" : ", results"),
                                       std::vector<Call>{std::move(call)});
  }

  /// The step as a launch that samples may divide; nullopt if it is none.
  std::optional<Call> call_by_samples(const Step& step, std::int64_t samples) const {
    const auto* primitive = std::get_if<Primitive>(&step);
    KernelPtr kernel;
    if (primitive != nullptr && ops::row(primitive->op).family == ops::Family::contraction) {
      const Verdict verdict = judge_sample_product(*primitive, context());
      if (verdict.accepted()) kernel = verdict.make();
    } else {
      kernel = launchable(step);
    }
    const auto* gpu = dynamic_cast<const GpuKernel*>(kernel.get());
    if (gpu == nullptr || gpu->calls().size() != 1 || gpu->scratch_bytes() != 0) return std::nullopt;
    if (!divides_by_samples(gpu->calls()[0], samples)) return std::nullopt;
    return gpu->calls()[0];
  }

  /// One launch or, if that cannot be, one for each member.
  KernelPtr compile_samples(const compile::Bundle& bundle) const {
    std::vector<Call> calls;
    for (const Step& member : bundle.members) {
      std::optional<Call> call = call_by_samples(member, bundle.samples);
      if (!call) throw InternalError("a bundle by samples holds a step that these do not divide");
      call->seconds = modelled_seconds(member);
      calls.push_back(std::move(*call));
    }
    if (std::optional<Call> all = sample_call(calls, bundle, context())) calls = {std::move(*all)};
    return std::make_unique<GpuKernel>(context(), "samples", std::move(calls));
  }

  KernelPtr compile_bundle(const Step& bundle) const {
    if (std::get<compile::Bundle>(bundle).samples > 0) return compile_samples(std::get<compile::Bundle>(bundle));
    std::vector<Call> calls;
    compile::for_each_member(bundle, [&](const Step& member) {
      const KernelPtr kernel = launchable(member, true);
      const auto* gpu = dynamic_cast<const GpuKernel*>(kernel.get());
      if (gpu == nullptr) throw InternalError("a bundle holds a step that shares no launch");
      for (const Call& call : gpu->calls()) {
        calls.push_back(call);
        calls.back().seconds = modelled_seconds(member);
      }
    });
    return std::make_unique<GpuKernel>(context(), "bundle",
                                       sliced(share_launch(std::move(calls), context()), context()));
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
        for (std::size_t i = 0; i < groups.size(); ++i) kernels[i] = modelled(std::move(kernels[i]), groups[i]);
        return std::make_unique<Sequence>(std::move(kernels));
      });
    }
    for (const auto& library : driver_.vendor_libraries()) {
      Verdict verdict = library->judge(primitive, context());
      verdict.by = library->name();
      if (verdict.accepted()) return verdict;
      if (log) compile::log_refusal(primitive, library->name(), verdict.reason);
    }
    return compile::choose<const GpuContext&>(implementations(primitive.op), primitive, log, context());
  }

  mutable Library library_;
  mutable Stream stream_;
  mutable GpuContext context_;
  mutable std::unique_ptr<Tuner> tuner_;
  mutable std::once_flag asked_;
  Driver& driver_;
  DeviceType type_;
};

}  // namespace

std::unique_ptr<compile::Target> make_target(Driver& driver, DeviceType type) {
  return std::make_unique<Target>(driver, type);
}

void collect_functions(const compile::Kernel& kernel, std::vector<FunctionPtr>& functions) {
  if (const auto* gpu = dynamic_cast<const GpuKernel*>(&kernel)) {
    for (const Call& call : gpu->calls()) functions.push_back(call.function);
  } else if (const auto* sequence = dynamic_cast<const Sequence*>(&kernel)) {
    for (const KernelPtr& part : sequence->kernels()) collect_functions(*part, functions);
  }
}

}  // namespace russet::gpu
