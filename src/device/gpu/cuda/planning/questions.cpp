#include "device/gpu/cuda/planning/questions.h"

#include <fmt/format.h>

#include "compile/plan.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"
#include "ops/table.h"

namespace russet::cuda {
namespace {

using compile::Primitive;
using ops::Op;

}  // namespace

std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

bool is_asked_of(DType dtype) { return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16; }

std::string why_not_asked(const Primitive& primitive) {
  if (ops::row(primitive.op).family != ops::Family::contraction) return "it is no contraction";
  if (compile::has_prologue(primitive)) return "a prologue";
  if (!primitive.epilogue.code.empty()) return "an epilogue";
  const DType factors = primitive.inputs[0].access.dtype;
  if (!is_asked_of(factors) || primitive.inputs[1].access.dtype != factors) return "the factors' types";
  const DType result = primitive.output.access.dtype;
  if (result != factors && (result != DType::float32 || primitive.op != Op::matmul)) return "the result's type";
  if (compile::operations_of(compile::Step(primitive)) < fewest_operations) return "too little work";
  if (gpu::is_small_product(primitive)) return "our own kernel for little work is faster";
  return "";
}

compile::Primitive without_epilogue(const compile::Primitive& contraction) {
  compile::Primitive alone = contraction;
  alone.epilogue = {};
  return alone;
}

std::uint32_t alignment_of(std::span<const gpu::Region> regions) {
  std::uint64_t bits = 16;
  for (const gpu::Region& region : regions) {
    bits |= static_cast<std::uint64_t>(region.offset) | static_cast<std::uint64_t>(region.scale);
  }
  return static_cast<std::uint32_t>(bits & -bits);
}

std::vector<gpu::Region> regions_of(const Primitive& contraction) {
  std::vector<gpu::Region> regions;
  const auto add = [&](const compile::Operand& operand, bool writes) {
    const gpu::Placed placed = gpu::place(operand, writes);
    if (placed.first == 0) regions.push_back(placed.region);
  };
  add(contraction.inputs[0], false);
  add(contraction.inputs[1], false);
  add(contraction.output, true);
  return regions.size() == 3 ? regions : std::vector<gpu::Region>{};
}

}  // namespace russet::cuda
