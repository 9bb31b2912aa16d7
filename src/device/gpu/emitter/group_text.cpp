#include "device/gpu/emitter/group_text.h"

#include <russet/error.h>

#include <algorithm>

#include "device/gpu/emitter/expressions.h"
#include "ops/table.h"

namespace russet::gpu {
namespace {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Instruction;
using ops::Op;
using Kind = Instruction::Kind;

constexpr std::size_t index_of(int position) { return static_cast<std::size_t>(position); }

constexpr std::array<char, 4> component{'x', 'y', 'z', 'w'};

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

/// Of an epilogue: whether this reads the contraction's result, which the text calls "sum" (an array of a vector's).
bool is_contraction(const Group& group, const Instruction& in) {
  return in.kind == Kind::load && group.accesses[index_of(in.access)].slot < 0;
}

/// Which accesses a part of the group touches.
std::vector<bool> used_accesses(const Group& group, const Phases& phases, GroupPart part) {
  std::vector<bool> used(group.accesses.size(), false);
  const auto use = [&](const std::vector<int>& instructions) {
    for (const int position : instructions) {
      const Instruction& in = group.code[index_of(position)];
      if (in.access >= 0 && !is_contraction(group, in)) used[index_of(in.access)] = true;
    }
  };
  for (const Phase& phase : phases.list) {
    if (part != GroupPart::results) {
      use(phase.full);
      use(phase.stores);
    }
    if (part != GroupPart::elements || phases.elements_read_reduced) use(phase.reduced);
  }
  if (part != GroupPart::elements) use(phases.reduced_stores);
  return used;
}

/// Whether an operation gives the same, rounded afterwards, if its inputs are not rounded before: it passes on one of
/// them as it is, or with another sign, and would pass on the same one. (What `where` chooses by is no half.)
bool rounds_alike(Op op) {
  switch (op) {
    case Op::maximum:
    case Op::minimum:
    case Op::neg:
    case Op::abs:
    case Op::where: return true;
    default: return false;
  }
}

}  // namespace

GroupText::GroupText(const Group& group, const Phases& phases, const Walk& walk, KernelText& kernel, GroupPart part)
    : group_(group),
      phases_(phases),
      walk_(walk),
      kernel_(kernel),
      places_(group, walk, kernel, used_accesses(group, phases, part)),
      names_(group.code.size()),
      rounded_by_stores_(group.code.size(), false),
      is_common_(group.code.size(), false) {
  const std::vector<bool> used = used_uniforms(part);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    const Instruction& in = group.code[i];
    if (is_uniform(in)) {
      if (used[i]) bind_uniform(static_cast<int>(i));
    } else {
      names_[i] = fmt::format("{}{}", is_full(in) ? "v" : "r", i);
    }
    if (in.kind != Kind::random) continue;
    kernel.use("random.metal");
    kernel.values().add_ulong(fmt::format("seed{}", i), in.seed);
    kernel.values().add_argument("ulong", fmt::format("draw{}", i), in.argument, Patch::Form::bits);
  }
}

bool GroupText::is_full(const Instruction& in) const {
  return group_.kind == Group::Kind::elementwise || in.extent == Extent::full;
}

void GroupText::leave_rounding_to_stores() {
  std::vector<bool> may(group_.code.size(), true);  // as far as those that read it are concerned
  for (std::size_t i = group_.code.size(); i-- > 0;) {
    const Instruction& in = group_.code[i];
    const bool is_kept = i < phases_.kept.size() && phases_.kept[i];
    rounded_by_stores_[i] = in.kind == Kind::compute && is_half(in.dtype) && !is_kept && may[i];
    if (in.kind == Kind::store || (rounded_by_stores_[i] && rounds_alike(in.op))) continue;
    for (const std::int16_t input : in.inputs) {
      if (input >= 0) may[index_of(input)] = false;
    }
  }
}

/// Those that only follow the reductions are not read where elements are: such scalars may change from run to run, and
/// values that do lie in memory, where they take longer to come.
std::vector<bool> GroupText::used_uniforms(GroupPart part) const {
  const bool reads_all = part != GroupPart::elements || phases_.elements_read_reduced;
  std::vector<bool> used(group_.code.size(), reads_all);
  if (reads_all) return used;
  for (const Instruction& in : group_.code) {
    if (!is_full(in) && in.kind != Kind::reduce) continue;
    for (const std::int16_t input : in.inputs) {
      if (input >= 0) used[index_of(input)] = true;
    }
  }
  return used;
}

void GroupText::bind_uniform(int position) {
  const Instruction& in = at(position);
  std::string& name = names_[index_of(position)];
  const std::string member = fmt::format("c{}", position);
  ValueList& values = kernel_.values();
  if (in.kind == Kind::constant) {
    if (is_floating(in.dtype)) {
      const auto single = static_cast<float>(in.number.real);
      const float value = in.dtype == DType::float16    ? static_cast<float>(float16(single))
                          : in.dtype == DType::bfloat16 ? static_cast<float>(bfloat16(single))
                                                        : single;
      name = values.add_float(member, value);
      return;
    }
    std::int64_t value = in.number.integer;
    visit_dtype(in.dtype, [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>) {
        value = value != 0;
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(value);  // NOLINT: a number's sign stays
      }
    });
    name = in.dtype == DType::int64 ? values.add_long(member, value) : values.add_int(member, value);
    return;
  }
  switch (in.dtype) {
    case DType::float32: name = values.add_argument("float", member, in.argument, Patch::Form::float32); return;
    case DType::float16: name = values.add_argument("float", member, in.argument, Patch::Form::float16); return;
    case DType::bfloat16: name = values.add_argument("float", member, in.argument, Patch::Form::bfloat16); return;
    case DType::int64:
    case DType::boolean:
      name = rounded(in.dtype, values.add_argument("long", member, in.argument, Patch::Form::bits));
      return;
    default: name = rounded(in.dtype, values.add_argument("int", member, in.argument, Patch::Form::int32));
  }
}

std::string GroupText::value(int position) const {
  if (phases_.kept[index_of(position)]) {
    return walk_.width > 1 ? fmt::format("k{}[j * {}u + k]", position, walk_.width) : fmt::format("k{}[j]", position);
  }
  return names_[index_of(position)];
}

void GroupText::declare_kept(int items) {
  for (std::size_t i = 0; i < phases_.kept.size(); ++i) {
    if (!phases_.kept[i]) continue;
    kernel_.line("{} k{}[{}];", register_type(group_.code[i].dtype), i, items * walk_.width);
  }
}

std::string GroupText::load(int position) const {
  const Instruction& in = at(position);
  if (is_contraction(group_, in)) {
    // Before rounding, as the epilogue may have it; integers wrap.
    const std::string_view sum = walk_.width > 1 ? "sum[k]" : "sum";
    return is_floating(in.dtype) ? std::string(sum)
                                 : rounded(in.dtype, fmt::format("{}({})", register_type(in.dtype), sum));
  }
  const std::string& pointer = places_.pointer(in.access);
  const std::string offset = places_.offset(in.access, is_full(in) || rows_are_inside_);
  const auto element = [&](const std::string& stored) {
    return loaded(in.dtype,
                  places_.is_packed(in.access) ? fmt::format("({} >> (uint({}) & 3u) & 1u)", stored, offset) : stored);
  };
  if (is_full(in) && places_.is_vector(in.access)) return fmt::format("x{}[k]", position);
  if (is_full(in) && walk_.width > 1 && places_.inner_stride(in.access) != 0)
    return element(places_.scattered(in.access));
  if (is_full(in) && loads_ahead_ && walk_.width == 1) return element(fmt::format("l{}[ahead]", position));
  return element(fmt::format("{}[{}{}]", pointer, offset, places_.is_packed(in.access) ? " >> 2" : ""));
}

std::string GroupText::compute(int position) const {
  const Instruction& in = at(position);
  const auto input = [&](std::size_t i) { return in.inputs[i] < 0 ? std::string() : value(in.inputs[i]); };
  switch (in.kind) {
    case Kind::load: return load(position);
    case Kind::index: {
      return is_full(in) ? places_.position(in.access) : places_.offset(in.access, rows_are_inside_);
    }
    case Kind::random: {
      const std::string_view draw = in.op == Op::uniform  ? "uniform_at"
                                    : in.op == Op::normal ? "normal_at"
                                                          : "random_bits_at";
      if (draws_vectors(in)) return fmt::format("uniform_of(w{}[k])", position);
      return fmt::format("{}(values.seed{}, values.draw{}, ulong({}))", draw, position, position, input(0));
    }
    case Kind::compute: {
      const DType from = at(in.inputs[0]).dtype;
      if (in.op == Op::cast) {
        return is_floating(from) && rounded_by_stores_[index_of(position)] ? input(0) : cast(from, in.dtype, input(0));
      }
      const DType type = in.op == Op::where ? in.dtype : from;
      const std::string text = expression(in.op, type, input(0), input(1), input(2));
      return is_exact(in.op, in.dtype) || rounded_by_stores_[index_of(position)] ? text : rounded(in.dtype, text);
    }
    default: throw InternalError("a group's instruction has no expression");
  }
}

/// Whether the numbers of a vector are the four words of one block of Philox.
bool GroupText::draws_vectors(const Instruction& in) const {
  if (in.kind != Kind::random || in.op != Op::uniform || walk_.width != 4 || in.inputs[0] < 0) return false;
  const Instruction& position = at(in.inputs[0]);
  if (position.kind != Kind::index || !is_full(position)) return false;
  Access access = group_.accesses[index_of(position.access)];
  access.dtype = in.dtype;  // positions do not lie in memory
  return is_aligned(access, walk_.inner, walk_.width);
}

std::vector<int> GroupText::vector_loads(const Phase& phase) const {
  std::vector<int> positions;
  for (const int position : phase.full) {
    const Instruction& in = at(position);
    if (in.kind == Kind::load && !is_contraction(group_, in) && places_.is_vector(in.access) &&
        !is_common_[index_of(position)])
      positions.push_back(position);
  }
  return positions;
}

std::vector<int> GroupText::loads_of_items(const Phase& phase) const {
  if (walk_.width > 1) return vector_loads(phase);
  std::vector<int> positions;
  for (const int position : phase.full) {
    const Instruction& in = at(position);
    if (in.kind == Kind::load && !is_contraction(group_, in) && is_full(in)) positions.push_back(position);
  }
  return positions;
}

std::string GroupText::vector_type(int position) const {
  const std::string_view element = stored_type(at(position).dtype);
  return walk_.width > 1 && !places_.is_packed(at(position).access) ? fmt::format("{}{}", element, walk_.width)
                                                                    : std::string(element);
}

std::string GroupText::vector_at(int position, bool inner) const {
  const int access = at(position).access;
  return fmt::format("*(device const {}*)({} + {})", vector_type(position), places_.pointer(access),
                     places_.is_packed(access) ? fmt::format("({} >> 2)", places_.offset(access, inner))
                                               : places_.offset(access, inner));
}

template <class TextOf>
std::string GroupText::listed(const TextOf& text_of) const {
  std::string list;
  for (int i = 0; i < walk_.width; ++i) list += (i == 0 ? "" : ", ") + text_of(component[index_of(i)]);
  return list;
}

void GroupText::define_elements(int position, std::string_view vector) {
  const DType dtype = at(position).dtype;
  if (places_.is_packed(at(position).access)) {
    kernel_.line("const {0} x{1}[4] = {{{0}({2} & 1u), {0}({2} >> 1 & 1u), {0}({2} >> 2 & 1u), {0}({2} >> 3 & 1u)}};",
                 register_type(dtype), position, vector);
    return;
  }
  if (is_floating(dtype) && stored_type(dtype) != register_type(dtype)) {
    const std::string floats = fmt::format("f{}", position);
    kernel_.line("const float{0} {1} = make_float{0}({2});", walk_.width, floats, vector);
    kernel_.line("const float x{}[{}] = {{{}}};", position, walk_.width,
                 listed([&](char c) { return fmt::format("{}.{}", floats, c); }));
    return;
  }
  kernel_.line("const {} x{}[{}] = {{{}}};", register_type(dtype), position, walk_.width,
               listed([&](char c) { return loaded(dtype, fmt::format("{}.{}", vector, c)); }));
}

void GroupText::load_elements(int position, bool inner) {
  kernel_.line("const {} l{} = {};", vector_type(position), position, vector_at(position, inner));
  define_elements(position, fmt::format("l{}", position));
}

void GroupText::load_uniforms() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!is_uniform(group_.code[i]) || names_[i].empty()) continue;
    kernel_.line("const {} u{} = {};", register_type(group_.code[i].dtype), i, names_[i]);
    names_[i] = fmt::format("u{}", i);
  }
}

std::vector<int> GroupText::common_loads(const Phase& phase, int first, int last) const {
  std::vector<int> loads = vector_loads(phase);
  std::erase_if(loads, [&](int position) {
    const Strides& strides = group_.accesses[index_of(at(position).access)].strides;
    return !std::all_of(strides.begin() + first, strides.begin() + last, [](auto stride) { return stride == 0; });
  });
  return loads;
}

void GroupText::load_common(const Phase& phase, int first, int last) {
  for (const int position : common_loads(phase, first, last)) {
    load_elements(position, false);
    is_common_[index_of(position)] = true;
  }
}

std::string GroupText::common_members(const Phase& phase, int first, int last) const {
  std::string members;
  for (const int position : common_loads(phase, first, last)) {
    members += fmt::format("  {} x{}[{}];\n", register_type(at(position).dtype), position, walk_.width);
  }
  return members;
}

void GroupText::load_common_into(std::string_view owner, const Phase& phase, int first, int last) {
  for (const int position : common_loads(phase, first, last)) {
    load_elements(position, false);
    kernel_.line("for (uint k = 0u; k < {}u; ++k) {}.x{}[k] = x{}[k];", walk_.width, owner, position, position);
  }
}

void GroupText::take_common_from(std::string_view owner, const Phase& phase, int first, int last) {
  for (const int position : common_loads(phase, first, last)) {
    kernel_.line("thread const {}* const x{} = {}.x{};", register_type(at(position).dtype), position, owner, position);
    is_common_[index_of(position)] = true;
  }
}

std::size_t GroupText::bytes_of_item(const Phase& phase) const {
  std::size_t bytes = 0;
  for (const int position : loads_of_items(phase)) {
    bytes += static_cast<std::size_t>(walk_.width) * size_of(at(position).dtype);
  }
  return bytes;
}

int GroupText::items_ahead(const Phase& phase) const {
  constexpr std::size_t wanted = 64;  // bytes a thread
  constexpr std::size_t most = 4;
  const std::size_t bytes = bytes_of_item(phase);
  std::size_t items = 1;
  while (bytes > 0 && items < most && 2 * items * bytes <= wanted) items *= 2;
  return static_cast<int>(is_long(phase) ? std::min<std::size_t>(items, 2) : items);
}

bool GroupText::is_long(const Phase& phase) {
  constexpr std::size_t long_phase = 16;
  return phase.full.size() > long_phase;
}

void GroupText::declare_ahead(const Phase& phase, int items) {
  loads_ahead_ = true;
  for (const int position : loads_of_items(phase)) {
    kernel_.line("{} l{}[{}];", vector_type(position), position, items);
  }
}

void GroupText::end_ahead() { loads_ahead_ = false; }

void GroupText::load_ahead(const Phase& phase) {
  for (const int position : loads_of_items(phase)) {
    kernel_.line("l{}[ahead] = {};", position, vector_at(position, true));
  }
}

void GroupText::take_next(const Phase& phase) {
  for (const int position : loads_of_items(phase)) kernel_.line("l{0}[0] = l{0}[1];", position);
}

void GroupText::open_lanes(const Phase& phase) {
  for (const int position : phase.full) {
    const Instruction& in = at(position);
    if (!draws_vectors(in)) continue;
    kernel_.line("const uint4 d{0} = philox(values.seed{0}, values.draw{0}, ulong({1}) >> 2ul);", position,
                 places_.offset(at(in.inputs[0]).access, true));
    kernel_.line("const uint w{0}[4] = {{d{0}.x, d{0}.y, d{0}.z, d{0}.w}};", position);
  }
  for (const int position : vector_loads(phase)) {
    if (loads_ahead_) {
      define_elements(position, fmt::format("l{}[ahead]", position));
    } else {
      load_elements(position, true);
    }
  }
  if (walk_.width > 1) {
    for (const int store : phase.stores) {
      kernel_.line("{} y{}[{}];", register_type(at(store).dtype), store, walk_.width);
    }
    kernel_.line("for (uint k = 0u; k < {}u; ++k) {{", walk_.width);
  }
  for (const int position : phase.full) {
    const DType dtype = at(position).dtype;
    if (phases_.kept[index_of(position)]) {
      kernel_.line("{} = {};", value(position), compute(position));
    } else {
      kernel_.line("const {} {} = {};", register_type(dtype), names_[index_of(position)], compute(position));
    }
  }
  if (walk_.width > 1) {
    for (const int store : phase.stores) kernel_.line("y{}[k] = {};", store, value(at(store).inputs[0]));
  }
}

void GroupText::close_lanes(const Phase& phase) {
  if (walk_.width > 1) kernel_.line("}");
  for (const int store : phase.stores) {
    const Instruction& in = at(store);
    const std::string target = fmt::format("{} + {}", places_.pointer(in.access), places_.offset(in.access, true));
    if (walk_.width == 1) {
      kernel_.line("*({}) = {};", target, stored(in.dtype, value(in.inputs[0])));
      continue;
    }
    if (!places_.is_vector(in.access) && places_.inner_stride(in.access) != 0) {
      kernel_.line("for (uint k = 0u; k < {}u; ++k) {} = {};", walk_.width, places_.scattered(in.access),
                   stored(in.dtype, fmt::format("y{}[k]", store)));
      continue;
    }
    if (!places_.is_vector(in.access)) {  // every element of the item is the same place
      kernel_.line("*({}) = {};", target, stored(in.dtype, fmt::format("y{}[{}]", store, walk_.width - 1)));
      continue;
    }
    if (places_.is_packed(in.access)) {
      kernel_.line("*({0} + ({1} >> 2)) = uchar(y{2}[0] | y{2}[1] << 1 | y{2}[2] << 2 | y{2}[3] << 3);",
                   places_.pointer(in.access), places_.offset(in.access, true), store);
      continue;
    }
    const bool rounds = is_half(in.dtype);  // neighbours at once
    std::string list;
    for (int k = 0; k < walk_.width; ++k) {
      const std::string element = fmt::format("y{}[{}]", store, k);
      list += (k == 0 ? "" : ", ") + (rounds ? element : stored(in.dtype, element));
    }
    const std::string type = vector_type(store);
    if (rounds) list = fmt::format("make_float{}({})", walk_.width, list);
    kernel_.line("*(device {}*)({}) = make_{}({});", type, target, type, list);
  }
}

void GroupText::run_reduced(const std::vector<int>& instructions) {
  for (const int position : instructions) {
    kernel_.line("const {} {} = {};", register_type(at(position).dtype), names_[index_of(position)], compute(position));
  }
}

void GroupText::declare_reduced(const std::vector<int>& instructions) {
  for (const int position : instructions) {
    const std::string_view type = register_type(at(position).dtype);
    kernel_.line("{0} {1} = {0}(0);", type, names_[index_of(position)]);
  }
}

void GroupText::assign_reduced(const std::vector<int>& instructions) {
  for (const int position : instructions) kernel_.line("{} = {};", names_[index_of(position)], compute(position));
}

void GroupText::store_reduced(int store) {
  const Instruction& in = at(store);
  kernel_.line("{}[{}] = {};", places_.pointer(in.access), places_.offset(in.access, rows_are_inside_),
               stored(in.dtype, value(in.inputs[0])));
}

}  // namespace russet::gpu
