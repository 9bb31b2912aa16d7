#include "device/cpu/target.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <cstdlib>
#include <memory>

#include "base/parallel.h"
#include "device/cpu/blas.h"
#include "device/cpu/convolution/strategies.h"
#include "device/cpu/group/group_kernel.h"
#include "device/cpu/layout.h"
#include "device/cpu/linalg.h"
#include "device/cpu/onednn.h"
#include "device/cpu/onednn_contraction.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"

namespace russet::cpu {
namespace {

using compile::Group;
using compile::Primitive;
using ops::Family;
using ops::Op;

/// An exception that oneDNN throws while it is asked for an implementation becomes a refusal.
template <Verdict judge(const Primitive&)>
Verdict asked(const Primitive& primitive) {
  try {
    return judge(primitive);
  } catch (const dnnl::error& error) {
    onednn::require_memory(error);
    return decline(fmt::format("oneDNN: {}", error.what()));
  }
}

constexpr Implementation matmuls[] = {
    {"blas, preferred", judge_faster_blas},
    {"onednn", asked<judge_onednn_matmul>},
    {"onednn packed", asked<judge_onednn_packed>},
    {"blas", judge_blas},
    {"product", judge_product},
};
constexpr Implementation convolutions[] = {
    {"batch lanes, preferred", judge_faster_batch_lanes},
    {"depthwise", judge_depthwise_weight},
    {"im2col", asked<judge_faster_im2col>},
    {"onednn blocked, preferred", asked<judge_faster_blocked>},
    {"onednn", asked<judge_onednn_convolution>},
    {"onednn blocked", asked<judge_onednn_blocked>},
    {"batch lanes", judge_batch_lanes},
    {"product", judge_product},
};
constexpr Implementation windows[] = {{"pool", judge_pool}};
constexpr Implementation indexing[] = {{"rows", judge_indexing}};
constexpr Implementation orderings[] = {{"ordering", judge_ordering}};
constexpr Implementation linalgs[] = {{"lapack", judge_lapack}};
constexpr Implementation others[] = {
    {"group", judge_groups},
    {"plain", judge_movement},
};

/// Throws OutOfMemoryError unless some memory is left: libraries crash if it runs out while they prepare a kernel.
void require_spare_memory() {
  constexpr std::size_t spare = std::size_t{64} << 20;
  const std::unique_ptr<void, decltype(&std::free)> probe(std::malloc(spare), std::free);
  if (!probe) throw OutOfMemoryError("out of memory: none is left to prepare kernels. Use a smaller batch?");
}

/// oneDNN's exceptions do not leave this device.
KernelPtr made(const Verdict& verdict) {
  try {
    return verdict.make();
  } catch (const dnnl::error& error) {
    onednn::require_memory(error);
    throw InternalError(fmt::format("cpu: oneDNN: {}", error.what()));
  }
}

class CpuTarget final : public compile::Target {
 public:
  KernelPtr compile(const compile::Step& step) const override {
    if (const auto* group = std::get_if<Group>(&step)) return make_group_kernel(*group);
    if (const auto* bundle = std::get_if<compile::Bundle>(&step)) return make_bundle_kernel(*bundle);
    const auto& primitive = std::get<Primitive>(step);
    const Verdict verdict = choose(primitive, true);
    if (!verdict.accepted()) throw TypeError(fmt::format("cpu: {}: {}", compile::describe(primitive), verdict.reason));
    KernelPtr kernel = made(verdict);
    compile::log_choice(primitive, *kernel);
    return kernel;
  }

  compile::Sharing sharing(const compile::Step& step) const override {
    const auto* group = std::get_if<Group>(&step);
    if (group == nullptr || group->kind != Group::Kind::elementwise) return {};
    std::string code = compile::code_of(*group);
    return {code, code};
  }
  compile::BundleLimits bundle_limits() const override { return {.members = 256}; }

  /// Weight gradients take no epilogue: the fast implementations refuse one, and the result is small. Nor do products
  /// for which OpenBLAS, which takes none, is faster.
  /// Of two convolutions that are added up, one can then take the other's result. Evaluating resnet50 at batch 32 takes
  /// 345 ms instead of 382 in bfloat16, 659 instead of 694 in float32 (an AMD EPYC of two cores).
  bool prefers_folded_scales(const Primitive&, bool once) const override { return once; }

  bool accepts_epilogue(const Primitive& primitive) const override {
    if (primitive.op == Op::convolution_weight) return false;
    if (primitive.op == Op::matmul) {
      Primitive bare = primitive;
      bare.epilogue = {};
      if (judge_faster_blas(bare).accepted()) return false;
    }
    return choose(primitive, false).accepted();
  }

  Strides preferred_strides(const Primitive& contraction, int operand) const override {
    const Shape& sizes = compile::operand_of(contraction, operand).sizes;
    if (contraction.op == Op::matmul || compile::is_weight(contraction, operand)) return contiguous_strides(sizes);
    if (judge_faster_batch_lanes(contraction).accepted()) return batch_last(sizes);
    return channels_last(sizes);
  }

  std::uint64_t key() const override { return static_cast<std::uint64_t>(base::thread_count()); }
};

}  // namespace

std::span<const Implementation> implementations(Op op) {
  switch (ops::row(op).family) {
    case Family::contraction:
      if (op == Op::matmul) return matmuls;
      return convolutions;
    case Family::window: return windows;
    case Family::indexing: return indexing;
    case Family::ordering: return orderings;
    case Family::linalg: return linalgs;
    case Family::attention: return {};  // the compiler has it decomposed
    default: return others;
  }
}

Verdict choose(const Primitive& primitive, bool log) {
  require_spare_memory();
  return compile::choose(implementations(primitive.op), primitive, log);
}

const compile::Target& target() {
  static const auto* const target = new CpuTarget;  // for flushes while the process exits
  return *target;
}

}  // namespace russet::cpu
