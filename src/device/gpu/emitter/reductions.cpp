#include "device/gpu/emitter/reductions.h"

#include "device/gpu/emitter/expressions.h"

namespace russet::gpu {
namespace {

using ops::Op;

std::string_view identity(Op op, std::string_view type) {
  const bool real = type == "float";
  const bool wide = type == "long";
  switch (op) {
    case Op::sum: return real ? "0.0f" : "0";
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
  has_position_ = op_ == Op::argmax || op_ == Op::argmin;
  type_ = register_type(op_ == Op::sum || op_ == Op::prod ? output_ : input_);
}

void Reduction::define(KernelText& kernel, std::string_view suffix) const {
  kernel.line("{} {} = {};", type_, accumulator(suffix), identity(op_, type_));
  if (has_position_) kernel.line("uint {} = 0xffffffffu;", place(suffix));
}

void Reduction::define_array(KernelText& kernel, int count) const {
  const auto list = [&](std::string_view value) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::string(value);
    return text;
  };
  kernel.line("{} {}[{}] = {{{}}};", type_, accumulator(), count, list(identity(op_, type_)));
  if (has_position_) kernel.line("uint {}[{}] = {{{}}};", place(), count, list("0xffffffffu"));
}

std::string Reduction::element(std::string_view value) const {
  return op_ == Op::sum || op_ == Op::prod ? cast(input_, output_, value) : std::string(value);
}

void Reduction::add(KernelText& kernel, std::string_view value, std::string_view at, std::string_view suffix) const {
  const std::string acc = accumulator(suffix);
  const bool real = type_ == "float";
  switch (op_) {
    case Op::sum:
      return real ? kernel.line("{} += {};", acc, value) : kernel.line("{0} = wrap_add({0}, {1});", acc, value);
    case Op::prod:
      return real ? kernel.line("{} *= {};", acc, value) : kernel.line("{0} = wrap_mul({0}, {1});", acc, value);
    case Op::amax: return kernel.line("{0} = larger({0}, {1});", acc, value);
    case Op::amin: return kernel.line("{0} = smaller({0}, {1});", acc, value);
    default: break;
  }
  kernel.line("if ({}({}, {}, {}, {})) {{", op_ == Op::argmax ? "precedes_largest" : "precedes_smallest", value, at,
              acc, place(suffix));
  kernel.line("{} = {};", acc, value);
  kernel.line("{} = {};", place(suffix), at);
  kernel.line("}");
}

void Reduction::across_lanes(KernelText& kernel) const {
  kernel.use("reduce.metal");
  kernel.line("for (uint step = 16u; step > 0u; step >>= 1u) {");
  kernel.line("const {} other = lane_xor({}, step);", type_, accumulator());
  if (has_position_) kernel.line("const uint other_place = lane_xor({}, step);", place());
  add(kernel, "other", "other_place");
  kernel.line("}");
}

void Reduction::across_simdgroups(KernelText& kernel) const {
  kernel.group_memory(type_, shared(), kernel.threads() / 32);
  if (has_position_) kernel.group_memory("uint", places(), kernel.threads() / 32);
  kernel.line("if (lane_id == 0u) {");
  kernel.line("{}[simdgroup_id] = {};", shared(), accumulator());
  if (has_position_) kernel.line("{}[simdgroup_id] = {};", places(), place());
  kernel.line("}");
  kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
  kernel.line("{} = {}[0];", accumulator(), shared());
  if (has_position_) kernel.line("{} = {}[0];", place(), places());
  kernel.line("for (uint other = 1u; other < {}u; ++other) {{", kernel.threads() / 32);
  kernel.line("const {} value = {}[other];", type_, shared());
  if (has_position_) kernel.line("const uint value_place = {}[other];", places());
  add(kernel, "value", "value_place");
  kernel.line("}");
}

void Reduction::define_result(KernelText& kernel) const {
  const std::string value =
      has_position_ ? cast(DType::int64, output_, fmt::format("long({})", place())) : rounded(output_, accumulator());
  kernel.line("const {} r{} = {};", register_type(output_), position_, value);
}

std::vector<Reduction> reductions_of(const compile::Group& group, const std::vector<int>& positions) {
  std::vector<Reduction> reductions;
  for (const int position : positions) reductions.emplace_back(group, position);
  return reductions;
}

Partials::Partials(const std::vector<Reduction>& reductions, std::size_t count) : reductions_(reductions) {
  const auto place = [&](std::size_t size) {
    Region region;
    region.offset = static_cast<std::int64_t>(bytes_);
    region.bytes = count * size;
    bytes_ += (region.bytes + 63) / 64 * 64;
    return region;
  };
  for (const Reduction& reduction : reductions) {
    values_.push_back(place(reduction.type() == "long" ? 8 : 4));
    places_.push_back(reduction.has_position() ? place(4) : Region{});
  }
}

void Partials::bind(KernelText& kernel, bool writes) {
  value_names_.clear();
  place_names_.clear();
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    Region region = values_[i];
    region.writes = writes;
    value_names_.push_back(kernel.bind(reductions_[i].type(), region));
    place_names_.emplace_back();
    if (!reductions_[i].has_position()) continue;
    region = places_[i];
    region.writes = writes;
    place_names_.back() = kernel.bind("uint", region);
  }
}

void Partials::store(KernelText& kernel, std::string_view index, std::string_view suffix) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    kernel.line("{}[{}] = {};", value_names_[i], index, reductions_[i].accumulator(suffix));
    if (reductions_[i].has_position())
      kernel.line("{}[{}] = {};", place_names_[i], index, reductions_[i].place(suffix));
  }
}

void Partials::add(KernelText& kernel, std::string_view index) const {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    const std::string place = place_names_[i].empty() ? "" : fmt::format("{}[{}]", place_names_[i], index);
    reductions_[i].add(kernel, fmt::format("{}[{}]", value_names_[i], index), place);
  }
}

}  // namespace russet::gpu
