#include "device/gpu/templates/templates.h"
#include "ops/table.h"

namespace russet::gpu {
namespace {

constexpr Implementation contractions[] = {{"depthwise", judge_depthwise},
                                           {"small product", judge_small_product},
                                           {"stem", judge_stem},
                                           {"stationary product", judge_stationary_product},
                                           {"warpgroup product", judge_warpgroup_product},
                                           {split_product_name, judge_split_product},
                                           {"tiles", judge_tiles},
                                           {"elements", judge_elements}};
constexpr Implementation windows[] = {{"windows", judge_windows}};
constexpr Implementation indexing[] = {{"pieces", judge_indexing}};
constexpr Implementation sorts[] = {{"sort", judge_sort}};
constexpr Implementation scans[] = {{"scan", judge_scan}};

constexpr Implementation linalgs[] = {{"lapack", [](const compile::Primitive&, const GpuContext&) {
                                         return compile::decline("factorisations are the CPU's LAPACK's");
                                       }}};

constexpr Implementation attentions[] = {{"fragments", judge_attention_fragments},
                                         {"blocks", judge_attention_blocks},
                                         {"elements", judge_attention_elements}};

}  // namespace

std::span<const Implementation> implementations(ops::Op op) {
  switch (ops::row(op).family) {
    case ops::Family::contraction: return contractions;
    case ops::Family::window: return windows;
    case ops::Family::indexing: return indexing;
    case ops::Family::ordering:
      if (op == ops::Op::argsort) return sorts;
      return scans;
    case ops::Family::attention: return attentions;
    case ops::Family::linalg: return linalgs;
    default: return {};
  }
}

}  // namespace russet::gpu
