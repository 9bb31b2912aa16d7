#include "device/gpu/emitter/kernel_text.h"

#include <algorithm>
#include <bit>

namespace russet::gpu {

std::string ValueList::add(std::string_view type, std::string_view name, std::uint64_t bits, bool wide) {
  std::string declaration = fmt::format("{} {}", type, name);
  const bool known = std::any_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.declaration == declaration; });
  if (!known) members_.push_back({std::move(declaration), bits, wide, -1, Patch::Form::bits});
  return fmt::format("values.{}", name);
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

std::string ValueList::add_argument(std::string_view type, std::string_view name, std::int32_t argument,
                                    Patch::Form form) {
  const std::string member = add(type, name, 0, form == Patch::Form::bits);
  members_.back().argument = argument;
  members_.back().form = form;
  return member;
}

std::string ValueList::add_offset(std::string_view name, std::int64_t value, std::int32_t argument) {
  const std::string fixed = add_long(name, value);
  if (argument < 0) return fixed;
  return fmt::format("({} + {})", fixed,
                     add_argument("long", fmt::format("{}_argument", name), argument, Patch::Form::bits));
}

std::string ValueList::members() const {
  std::string text;
  for (const bool wide : {true, false}) {
    for (const Member& member : members_) {
      if (member.wide == wide) text += member.declaration + "; ";
    }
  }
  return text;
}

Values ValueList::values() const {
  Values values;
  for (const bool wide : {true, false}) {
    for (const Member& member : members_) {
      if (member.wide != wide) continue;
      if (member.argument >= 0) {
        values.add_argument(member.argument, member.form);
      } else if (wide) {
        values.add(member.bits);
      } else {
        values.add(static_cast<std::uint32_t>(member.bits));
      }
    }
  }
  // A struct that holds 8-byte members ends at a multiple of 8.
  const bool wide = std::any_of(members_.begin(), members_.end(), [](const Member& member) { return member.wide; });
  if (wide) values.bytes.resize((values.bytes.size() + 7) / 8 * 8);
  return values;
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
  arguments_ += fmt::format("{}({}, a{}, {}), ", region.writes ? "OUT" : "IN", type, index, index);
  regions_.push_back(region);
  types_.emplace_back(type);
  return fmt::format("a{}", index);
}

void KernelText::group_memory(std::string_view type, std::string_view name, std::size_t count) {
  const std::string declaration = fmt::format("  GROUP_MEMORY({}, {}, {});\n", type, name, count);
  if (group_memory_.find(declaration) == std::string::npos) group_memory_ += declaration;
}

void KernelText::use(std::string_view file) {
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.emplace_back(file);
}

std::string KernelText::text() const {
  return fmt::format("struct Values_@ {{ {}}};\nKERNEL(@, {}, {}VALUES(Values_@, values, {})) {{\n{}{}}}\n",
                     values_.members(), threads_, arguments_, regions_.size(), group_memory_, body_);
}

Call KernelText::finish(const Context& context, std::array<std::uint32_t, 3> groups) const {
  Call call;
  call.function = context.library.add({stem_, text(), files_, threads_});
  call.groups = groups;
  call.regions = regions_;
  call.values = values_.values();
  return call;
}

}  // namespace russet::gpu
