#include "device/gpu/emitter/kernel_text.h"

#include <algorithm>
#include <bit>

namespace russet::gpu {

void ValueList::add(std::string declaration, std::vector<std::uint64_t> bits, bool wide) {
  const bool known = std::any_of(members_.begin(), members_.end(),
                                 [&](const NamedValue& member) { return member.declaration == declaration; });
  if (!known) members_.push_back({std::move(declaration), std::move(bits), wide, -1, Patch::Form::bits});
}

std::string ValueList::add(std::string_view type, std::string_view name, std::uint64_t bits, bool wide) {
  add(fmt::format("{} {}{}", type, prefix_, name), {bits}, wide);
  return fmt::format("values.{}{}", prefix_, name);
}

std::string ValueList::add_uint(std::string_view name, std::uint64_t value) { return add("uint", name, value, false); }
std::string ValueList::add_int(std::string_view name, std::int64_t value) {
  return add("int", name, static_cast<std::uint64_t>(value), false);
}
std::string ValueList::add_float(std::string_view name, float value) {
  return add("float", name, std::bit_cast<std::uint32_t>(value), false);
}
std::string ValueList::add_long(std::string_view name, std::int64_t value) {
  return add("long", name, static_cast<std::uint64_t>(value), true);
}
std::string ValueList::add_ulong(std::string_view name, std::uint64_t value) { return add("ulong", name, value, true); }

std::string ValueList::add_array(std::string_view type, std::string_view name, std::span<const std::int64_t> numbers) {
  std::vector<std::uint64_t> bits;
  for (const std::int64_t number : numbers) bits.push_back(static_cast<std::uint64_t>(number));
  add(fmt::format("{} {}{}[{}]", type, prefix_, name, numbers.size()), std::move(bits),
      type == "long" || type == "ulong");
  return fmt::format("values.{}{}", prefix_, name);
}

std::string ValueList::add_argument(std::string_view type, std::string_view name, std::int32_t argument,
                                    Patch::Form form) {
  std::string member = add(type, name, 0, form == Patch::Form::bits);
  members_.back().argument = argument;
  members_.back().form = form;
  return member;
}

std::string ValueList::add_offset(std::string_view name, std::int64_t value, std::int32_t argument) {
  std::string fixed = add_long(name, value);
  if (argument < 0) return fixed;
  return fmt::format("({} + {})", fixed,
                     add_argument("long", fmt::format("{}_argument", name), argument, Patch::Form::bits));
}

std::string ValueList::members() const {
  std::string text;
  for (const bool wide : {true, false}) {
    for (const NamedValue& member : members_) {
      if (member.wide == wide) text += member.declaration + "; ";
    }
  }
  return text;
}

Values ValueList::values() const {
  Values values;
  for (const bool wide : {true, false}) {
    for (const NamedValue& member : members_) {
      if (member.wide != wide) continue;
      if (member.argument >= 0) {
        values.add_argument(member.argument, member.form);
        continue;
      }
      for (const std::uint64_t bits : member.bits) {
        wide ? values.add(bits) : values.add(static_cast<std::uint32_t>(bits));
      }
    }
  }
  // A struct that holds 8-byte members ends at a multiple of 8.
  if (wide()) values.align();
  return values;
}

bool ValueList::wide() const {
  return std::any_of(members_.begin(), members_.end(), [](const NamedValue& member) { return member.wide; });
}

void KernelText::line(std::string_view text) {
  if (text.starts_with('}')) --depth_;
  body_ += std::string(2 * depth_, ' ');
  body_ += text;
  body_ += '\n';
  if (text.ends_with('{')) ++depth_;
}

std::string KernelText::bind(std::string_view type, const Region& region) {
  const std::size_t index = regions_.size();
  arguments_.push_back({std::string(type), fmt::format("a{}", index), region.writes});
  regions_.push_back(region);
  return arguments_.back().name;
}

void KernelText::group_memory(std::string_view type, std::string_view name, std::size_t count) {
  const Piece::Array array{std::string(type), std::string(name), std::to_string(count)};
  if (std::find(arrays_.begin(), arrays_.end(), array) == arrays_.end()) arrays_.push_back(array);
}

void KernelText::use(std::string_view file) {
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.emplace_back(file);
}

Call KernelText::finish(const GpuContext& context, std::array<std::uint32_t, 3> groups) const {
  Piece piece;
  piece.stem = stem_;
  piece.threads = threads_;
  piece.resident = resident_;
  piece.declarations = fmt::format("struct Values_@ {{ {}}};\n", values_.members());
  piece.arguments = arguments_;
  piece.values_type = "Values_@";
  piece.values_are_wide = values_.wide();
  piece.arrays = arrays_;
  piece.body = body_;
  piece.files = files_;
  return make_call(std::move(piece), groups, regions_, values_.values(), context);
}

PointerText pointer_text(const KernelText& kernel, std::size_t first, std::size_t last) {
  PointerText text;
  for (std::size_t i = first; i < last; ++i) {
    const Piece::Argument& argument = kernel.arguments()[i];
    const std::string pointer =
        fmt::format("device {}{}* {}", argument.writes ? "" : "const ", argument.type, argument.name);
    text.members += fmt::format("  {};\n", pointer);
    text.parameters += pointer + ", ";
    text.arguments += argument.name + ", ";
  }
  return text;
}

}  // namespace russet::gpu
