#include "device/gpu/templates/row_sums.h"

namespace russet::gpu {
namespace {

/// What members are told apart from a thread's own variables by.
constexpr std::string_view sums_suffix = "_of_column";

std::string of_column(std::string_view column) { return fmt::format("{}[{}]", sums_suffix, column); }

}  // namespace

template <class Visitor>
void RowSums::for_each_array(const Visitor& visit) const {
  for (const Reduction& reduction : sums_.reductions) {
    for (const Reduction::Part& part : reduction.parts()) {
      visit(part.type, reduction.variable(part, sums_suffix), part.identity);
    }
    if (!reduction.has_blocks()) continue;
    for (const std::string& name : reduction.block_variables(sums_suffix)) visit("float", name, "0.0f");
  }
}

void RowSums::add(KernelText& kernel, const Reduction& reduction, const std::string& value) const {
  const std::string own = of_column(width_ > 1 ? "k" : "0");
  if (reduction.has_blocks()) {
    reduction.add_to_block(kernel, value, "is_first && ahead == 0u", own);
  } else {
    reduction.add(kernel, value, "0u", own);
  }
}

std::string RowSums::members() const {
  std::string text = "  uint seen;\n";
  for_each_array([&](std::string_view type, const std::string& name, std::string_view) {
    text += fmt::format("  {} {}[{}];\n", type, name, width_);
  });
  return text;
}

std::string RowSums::start() const {
  std::string text = "    seen = 0u;\n";
  for_each_array([&](std::string_view, const std::string& name, std::string_view identity) {
    text += fmt::format("    for (uint k = 0u; k < {}u; ++k) {}[k] = {};\n", width_, name, identity);
  });
  return text;
}

std::string RowSums::parameters() const {
  std::string text = "bool is_first, ";
  for_each_array([&](std::string_view type, const std::string& name, std::string_view) {
    text += fmt::format("thread {}* {}, ", type, name);
  });
  return text;
}

std::string RowSums::arguments() const {
  std::string text = "seen == 0u, ";
  for_each_array([&](std::string_view, const std::string& name, std::string_view) { text += name + ", "; });
  return text;
}

std::string RowSums::methods(const Partials& partials) const {
  KernelText block("block", 32);
  for (const Reduction& reduction : sums_.reductions) {
    if (reduction.has_blocks()) reduction.end_block(block, "float(seen)", "share", of_column("k"));
  }
  KernelText store("store", 32);
  for (const Reduction& reduction : sums_.reductions) {
    for (const Reduction::Part& part : reduction.parts()) {
      store.line("{} {} = {};", part.type, reduction.variable(part), reduction.variable(part, of_column("k")));
    }
    reduction.across_lanes(store, 16, 32 / width_);
  }
  store.line("if (lane_id < {}u && own + k < end) {{", 32 / width_);
  store.line("const ulong index = ulong(part) * ulong(values->product.columns) + ulong(own + k);");
  partials.store(store, "index");
  store.line("}");
  return fmt::format(
      "  void end_block() {{\n    if (seen == 0u) return;\n    const float share = 1.0f / float(seen);\n"
      "    for (uint k = 0u; k < {0}u; ++k) {{\n{1}    }}\n  }}\n"
      "  void finish(uint part, uint column, uint end, uint lane_id) {{\n"
      "    const uint own = column + lane_id % {2}u * {0}u;\n    for (uint k = 0u; k < {0}u; ++k) {{\n{3}    }}\n  "
      "}}\n",
      width_, block.body(), 32 / width_, store.body());
}

}  // namespace russet::gpu
