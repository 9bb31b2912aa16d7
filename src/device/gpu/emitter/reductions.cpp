#include "device/gpu/emitter/reductions.h"

#include <fmt/ranges.h>

#include "device/gpu/emitter/expressions.h"

namespace russet::gpu {
namespace {

using ops::Op;

std::string_view identity(Op op, std::string_view type) {
  const bool real = type == "float";
  const bool wide = type == "long";
  switch (op) {
    case Op::sum:
    case Op::squared_deviations: return real ? "0.0f" : "0";
    case Op::prod: return real ? "1.0f" : "1";
    case Op::amax:
    case Op::argmax: return real ? "-INFINITY" : wide ? "long(0x8000000000000000ul)" : "int(0x80000000u)";
    default: return real ? "INFINITY" : wide ? "long(0x7ffffffffffffffful)" : "0x7fffffff";
  }
}

}  // namespace

Reduction::Reduction(const compile::Group& group, int position) : position_(position) {
  const compile::Instruction& in = group.code[static_cast<std::size_t>(position)];
  op_ = in.op;
  input_ = group.code[static_cast<std::size_t>(in.inputs[0])].dtype;
  output_ = in.dtype;
  const bool widens = op_ == Op::sum || op_ == Op::prod;
  const std::string_view type = register_type(widens ? output_ : input_);
  parts_.push_back({"acc", type, identity(op_, type)});
  if (has_position()) parts_.push_back({"pos", "uint", "0xffffffffu"});
  if (op_ == Op::squared_deviations) {
    for (const std::string_view name : {"mean", "rest", "count"}) parts_.push_back({name, "float", "0.0f"});
  }
}

std::vector<std::string> Reduction::variables(std::string_view suffix) const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.push_back(variable(part, suffix));
  return names;
}

void Reduction::define(KernelText& kernel) const {
  for (const Part& part : parts_) kernel.line("{} {} = {};", part.type, variable(part), part.identity);
}

void Reduction::define_array(KernelText& kernel, int count) const {
  for (const Part& part : parts_) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + std::string(part.identity);
    kernel.line("{} {}[{}] = {{{}}};", part.type, variable(part), count, list);
  }
}

std::string Reduction::element(std::string_view value) const {
  return op_ == Op::sum || op_ == Op::prod ? cast(input_, output_, value) : std::string(value);
}

void Reduction::add(KernelText& kernel, std::string_view value, std::string_view place, std::string_view suffix) const {
  const std::string acc = variable(parts_[0], suffix);
  const bool real = parts_[0].type == "float";
  switch (op_) {
    case Op::sum:
      return real ? kernel.line("{} += {};", acc, value) : kernel.line("{0} = wrap_add({0}, {1});", acc, value);
    case Op::prod:
      return real ? kernel.line("{} *= {};", acc, value) : kernel.line("{0} = wrap_mul({0}, {1});", acc, value);
    case Op::amax: return kernel.line("{0} = larger({0}, {1});", acc, value);
    case Op::amin: return kernel.line("{0} = smaller({0}, {1});", acc, value);
    case Op::squared_deviations:
      kernel.use("reduce.metal");
      return kernel.line("add_deviation({}, {});", fmt::join(variables(suffix), ", "), value);
    default: break;
  }
  const std::string pos = variable(parts_[1], suffix);
  kernel.line("if ({}({}, {}, {}, {})) {{", op_ == Op::argmax ? "precedes_largest" : "precedes_smallest", value, place,
              acc, pos);
  kernel.line("{} = {};", acc, value);
  kernel.line("{} = {};", pos, place);
  kernel.line("}");
}

void Reduction::define_block(KernelText& kernel, int count) const {
  const std::string array = count > 1 ? fmt::format("[{}]", count) : "";
  kernel.line("float distance{0}{1} = {{0.0f}}, square{0}{1} = {{0.0f}};", position_, array);
}

std::vector<std::string> Reduction::block_variables(std::string_view suffix) const {
  return {fmt::format("distance{}{}", position_, suffix), fmt::format("square{}{}", position_, suffix)};
}

void Reduction::add_to_block(KernelText& kernel, std::string_view value, std::string_view is_first,
                             std::string_view suffix) const {
  kernel.use("reduce.metal");
  kernel.line("add_distance(distance{0}{1}, square{0}{1}, {2}, {3}, {4});", position_, suffix,
              variable(parts_[1], suffix), value, is_first);
}

void Reduction::end_block(KernelText& kernel, std::string_view counted, std::string_view share,
                          std::string_view suffix) const {
  kernel.line("add_distances({0}, distance{1}{2}, square{1}{2}, {3}, {4});", fmt::join(variables(suffix), ", "),
              position_, suffix, counted, share);
}

void Reduction::merge(KernelText& kernel, const std::vector<std::string>& others, std::string_view suffix) const {
  if (op_ != Op::squared_deviations) return add(kernel, others[0], has_position() ? others[1] : "", suffix);
  kernel.use("reduce.metal");
  kernel.line("merge_deviations({}, {});", fmt::join(variables(suffix), ", "), fmt::join(others, ", "));
}

void Reduction::across_lanes(KernelText& kernel, std::int64_t first, std::int64_t last) const {
  kernel.use("reduce.metal");
  kernel.line("for (uint step = {}u; step >= {}u; step >>= 1u) {{", first, last);
  if (op_ == Op::squared_deviations) {
    kernel.line("merge_lanes({}, lane_id, step);", fmt::join(variables(""), ", "));
    kernel.line("}");
    return;
  }
  std::vector<std::string> others;
  for (const Part& part : parts_) {
    others.push_back(fmt::format("other_{}", part.name));
    kernel.line("const {} {} = lane_xor({}, step);", part.type, others.back(), variable(part));
  }
  merge(kernel, others);
  kernel.line("}");
}

void Reduction::across_simdgroups(KernelText& kernel) const {
  const auto shared = [&](const Part& part, std::string_view index) {
    return fmt::format("shared_{}{}[{}]", part.name, position_, index);
  };
  for (const Part& part : parts_) {
    kernel.group_memory(part.type, fmt::format("shared_{}{}", part.name, position_), kernel.threads() / 32);
  }
  kernel.line("if (lane_id == 0u) {");
  for (const Part& part : parts_) kernel.line("{} = {};", shared(part, "simdgroup_id"), variable(part));
  kernel.line("}");
  kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
  for (const Part& part : parts_) kernel.line("{} = {};", variable(part), shared(part, "0"));
  kernel.line("for (uint other = 1u; other < {}u; ++other) {{", kernel.threads() / 32);
  std::vector<std::string> others;
  for (const Part& part : parts_) {
    others.push_back(fmt::format("other_{}", part.name));
    kernel.line("const {} {} = {};", part.type, others.back(), shared(part, "other"));
  }
  merge(kernel, others);
  kernel.line("}");
}

void Reduction::define_result(KernelText& kernel, std::string_view suffix) const {
  const std::string value = has_position()
                                ? cast(DType::int64, output_, fmt::format("long({})", variable(parts_[1], suffix)))
                                : rounded(output_, variable(parts_[0], suffix));
  kernel.line("const {} r{} = {};", register_type(output_), position_, value);
}

std::vector<Reduction> reductions_of(const compile::Group& group, const std::vector<int>& positions) {
  std::vector<Reduction> reductions;
  for (const int position : positions) reductions.emplace_back(group, position);
  return reductions;
}

Partials::Partials(const std::vector<Reduction>& reductions, std::size_t count) : reductions_(reductions) {
  for (const Reduction& reduction : reductions) {
    std::vector<Region>& regions = regions_.emplace_back();
    for (const Reduction::Part& part : reduction.parts()) {
      Region region;
      region.offset = static_cast<std::int64_t>(bytes_);
      region.bytes = count * (part.type == "long" ? 8 : 4);
      bytes_ += (region.bytes + 63) / 64 * 64;
      regions.push_back(region);
    }
  }
}

void Partials::bind(KernelText& kernel, bool writes) {
  names_.clear();
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    std::vector<std::string>& names = names_.emplace_back();
    for (std::size_t j = 0; j < regions_[i].size(); ++j) {
      Region region = regions_[i][j];
      region.writes = writes;
      names.push_back(kernel.bind(reductions_[i].parts()[j].type, region));
    }
  }
}

void Partials::store(KernelText& kernel, std::string_view index, std::string_view suffix) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    for (std::size_t j = 0; j < names_[i].size(); ++j) {
      kernel.line("{}[{}] = {};", names_[i][j], index, reductions_[i].variable(reductions_[i].parts()[j], suffix));
    }
  }
}

template <class Visitor>
void Partials::for_each_part(const Visitor& visit) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    for (std::size_t j = 0; j < names_[i].size(); ++j) {
      visit(reductions_[i].parts()[j], names_[i][j], fmt::format("ahead_{}", names_[i][j]));
    }
  }
}

void Partials::declare_ahead(KernelText& kernel, int count) const {
  for_each_part([&](const Reduction::Part& part, const std::string& /*array*/, const std::string& read) {
    kernel.line("{} {}[{}];", part.type, read, count);
  });
}

void Partials::read_ahead(KernelText& kernel, std::string_view index) const {
  for_each_part([&](const Reduction::Part& /*part*/, const std::string& array, const std::string& read) {
    kernel.line("{}[ahead] = {}[{}];", read, array, index);
  });
}

void Partials::add_ahead(KernelText& kernel) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    std::vector<std::string> others;
    for (const std::string& name : names_[i]) others.push_back(fmt::format("ahead_{}[ahead]", name));
    reductions_[i].merge(kernel, others);
  }
}

void Partials::add(KernelText& kernel, std::string_view index) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    std::vector<std::string> others;
    for (const std::string& name : names_[i]) others.push_back(fmt::format("{}[{}]", name, index));
    reductions_[i].merge(kernel, others);
  }
}

}  // namespace russet::gpu
