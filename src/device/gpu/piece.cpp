#include "device/gpu/piece.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace russet::gpu {
namespace {

std::string array_text(const Piece::Array& array) {
  if (array.large_bytes > 0) {
    return fmt::format("  LARGE_GROUP_MEMORY({}, {}, {}, {});\n", array.type, array.name, array.count,
                       array.large_bytes);
  }
  return fmt::format("  GROUP_MEMORY({}, {}, {});\n", array.type, array.name, array.count);
}

/// The text with "@" told apart by the piece's number.
std::string numbered(std::string_view text, std::size_t piece) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '@') result += fmt::format("_{}", piece);
  }
  return result;
}

/// An expression that is base number `base`, one of [first, last).
std::string choice(std::uint32_t first, std::uint32_t last) {
  if (last - first == 1) return fmt::format("b{}", first);
  const std::uint32_t middle = first + (last - first + 1) / 2;
  return fmt::format("(base < {}u ? {} : {})", middle, choice(first, middle), choice(middle, last));
}

/// Further arguments.
std::string base_list(std::uint32_t bases, std::string_view before) {
  std::string list;
  for (std::uint32_t i = 0; i < bases; ++i) list += fmt::format(", {}b{}", before, i);
  return list;
}

/// The function that finds what a place of the table stands for.
std::string reach_text(std::uint32_t bases) {
  if (bases == 0) return "inline device char* reach_@(ulong place) { return (device char*)place; }\n";
  return fmt::format(
      "inline device char* reach_@(ulong place{}) {{\n  const uint base = uint(place >> 56u);\n"
      "  device char* const start = {};\n  return start + (place & 0x00fffffffffffffful);\n}}\n",
      base_list(bases, "device char* "), choice(0, bases));
}

/// The pieces as functions.
std::string functions_text(const std::vector<Piece>& pieces) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    std::string parameters;
    for (const Piece::Argument& argument : piece.arguments) {
      parameters += fmt::format("device {}{}* {}, ", argument.writes ? "" : "const ", argument.type, argument.name);
    }
    parameters += fmt::format(
        "constant {}& values, uint3 group_id, uint3 group_count, uint thread_id, uint lane_id, uint simdgroup_id",
        piece.values_type);
    for (const Piece::Array& array : piece.arrays) {
      parameters += fmt::format(", threadgroup {}* {}", array.type, array.name);
    }
    text +=
        numbered(fmt::format("{}inline void piece_@({}) {{\n{}}}\n", piece.declarations, parameters, piece.body), i);
  }
  return text;
}

std::string member_text(const std::vector<Piece>& pieces, std::size_t values) {
  std::size_t places = 1;
  for (const Piece& piece : pieces) places = std::max(places, piece.arguments.size());
  std::string text = fmt::format(
      "struct Member_@ {{\n  ulong places[{}];\n  ulong values[{}];\n  uint first, count, piece, width, height;\n}};\n",
      places, values);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    text += numbered(fmt::format("static_assert(sizeof({}) <= {}, \"the table has room for the values\");\n",
                                 pieces[i].values_type, values * 8),
                     i);
  }
  return text;
}

/// Arrays of the kernel: pieces share those that are alike. `names`: of each piece's arrays.
std::vector<Piece::Array> arrays_of(const std::vector<Piece>& pieces, std::vector<std::vector<std::string>>& names) {
  std::vector<Piece::Array> arrays;
  for (const Piece& piece : pieces) {
    std::vector<bool> taken(arrays.size(), false);
    names.emplace_back();
    for (const Piece::Array& wanted : piece.arrays) {
      std::size_t i = 0;
      while (i < taken.size() && (taken[i] || arrays[i].type != wanted.type || arrays[i].count != wanted.count)) ++i;
      if (i == taken.size()) {
        arrays.push_back({wanted.type, fmt::format("array{}", arrays.size()), wanted.count});
        taken.push_back(false);
      }
      taken[i] = true;
      names.back().push_back(arrays[i].name);
    }
  }
  return arrays;
}

/// The files of all.
std::vector<std::string> files_of(const std::vector<Piece>& pieces) {
  std::vector<std::string> files;
  for (const Piece& piece : pieces) {
    for (const std::string& file : piece.files) {
      if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    }
  }
  return files;
}

/// What piece number `number` is called with for the member `self`: its memory, its values, `places` in the grid and in
/// the threadgroup, and its arrays.
std::string arguments_text(const Piece& piece, std::size_t number, std::string_view places,
                           const std::vector<std::string>& arrays, std::uint32_t bases) {
  std::string arguments;
  for (std::size_t a = 0; a < piece.arguments.size(); ++a) {
    const Piece::Argument& argument = piece.arguments[a];
    arguments += fmt::format("\n      (device {}{}*)(reach_@(self.places[{}]{})),", argument.writes ? "" : "const ",
                             argument.type, a, base_list(bases, ""));
  }
  arguments += fmt::format("\n      *(constant {}*)self.values, {}", numbered(piece.values_type, number), places);
  for (const std::string& name : arrays) arguments += ", " + name;
  return arguments;
}

/// What a kernel with a table declares before its entry point.
std::string declarations_text(const std::vector<Piece>& pieces, std::size_t values, std::size_t bytes,
                              std::uint32_t bases) {
  return fmt::format("{}{}static_assert(sizeof(Member_@) == {}, \"the table is laid out alike\");\n{}",
                     functions_text(pieces), member_text(pieces, values), bytes, reach_text(bases));
}

/// The arguments of such a kernel.
std::string table_arguments(std::uint32_t bases) {
  std::string text;
  for (std::uint32_t i = 0; i < bases; ++i) text += fmt::format("OUT(char, b{}, {}), ", i, i);
  return text + fmt::format("TABLE(Member_@, members, {})", bases);
}

}  // namespace

std::vector<Piece::Array> shared_arrays(const std::vector<Piece>& pieces) {
  std::vector<std::vector<std::string>> names;
  return arrays_of(pieces, names);
}

bool is_simdgroup(const Piece& piece) { return piece.threads == 32 && piece.arrays.empty(); }

Source source_of(const Piece& piece) {
  std::string arguments;
  for (std::size_t i = 0; i < piece.arguments.size(); ++i) {
    const Piece::Argument& argument = piece.arguments[i];
    arguments += fmt::format("{}({}, {}, {}), ", argument.writes ? "OUT" : "IN", argument.type, argument.name, i);
  }
  std::string arrays;
  std::uint32_t large_memory = 0;
  for (const Piece::Array& array : piece.arrays) {
    arrays += array_text(array);
    large_memory += array.large_bytes;
  }
  const std::string entry = piece.resident == 1
                                ? fmt::format("KERNEL(@, {}, ", piece.threads)
                                : fmt::format("RESIDENT_KERNEL(@, {}, {}, ", piece.threads, piece.resident);
  return {piece.stem,
          fmt::format("{}{}{}{}({}, values, {})) {{\n{}{}}}\n", piece.declarations, entry, arguments,
                      piece.values_change ? "CHANGING_VALUES" : "VALUES", piece.values_type, piece.arguments.size(),
                      arrays, piece.body),
          piece.files, piece.threads, large_memory};
}

Source source_of(const std::vector<Piece>& pieces, std::size_t values, std::size_t bytes, std::uint32_t bases) {
  Source source;
  source.stem = "bundle";
  source.files = files_of(pieces);
  for (const Piece& piece : pieces) source.threads = std::max(source.threads, piece.threads);
  std::vector<std::vector<std::string>> array_names;
  std::string arrays;
  for (const Piece::Array& array : arrays_of(pieces, array_names)) arrays += array_text(array);
  std::string calls;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool packed = pieces[i].threads < source.threads;
    const std::string_view self =
        packed ? "id, count, lane_id, lane_id, 0u" : "id, count, thread_id, lane_id, simdgroup_id";
    calls += fmt::format("  if (self.piece == {}u) {{\n", i);
    if (packed) {
      calls += fmt::format("    const uint group = block * {}u + simdgroup_id;\n", source.threads / 32);
      calls += "    if (group >= self.width * self.height) return;\n";
    } else {
      calls += "    const uint group = block;\n";
    }
    calls += "    const uint row = self.height == 1u ? 0u : group / self.width;\n";
    calls += "    const uint3 id = make_uint3(group - row * self.width, row, 0u);\n";
    calls += fmt::format("    piece_@_{}({});\n    return;\n  }}\n", i,
                         arguments_text(pieces[i], i, self, array_names[i], bases));
  }
  source.text = fmt::format(
      R"({declarations}KERNEL(@, {threads}, {arguments}) {{
{arrays}  uint last = 0u;
  const uint members_count = members[0].count;
  for (uint at = lane_id; at < members_count; at += 32u) {{
    if (members[at].first <= group_id.x) last = at;
  }}
  constant Member_@& self = members[simd_max(last)];
  const uint block = group_id.x - self.first;
  const uint3 count = make_uint3(self.width, self.height, 1u);
{calls}}}
)",
      fmt::arg("declarations", declarations_text(pieces, values, bytes, bases)), fmt::arg("threads", source.threads),
      fmt::arg("arguments", table_arguments(bases)), fmt::arg("arrays", arrays), fmt::arg("calls", calls));
  return source;
}

namespace {

/// What a part is called with: its memory, its values, `places` in the grid and in the threadgroup, and its arrays.
std::string sample_arguments(const Piece& piece, const SamplePart& part, std::string_view values,
                             std::string_view places, const std::vector<std::string>& arrays) {
  std::string arguments;
  for (std::size_t i = 0; i < piece.arguments.size(); ++i) {
    const Piece::Argument& argument = piece.arguments[i];
    arguments += fmt::format("(device {}{}*)a{}, ", argument.writes ? "" : "const ", argument.type, part.arguments[i]);
  }
  arguments += fmt::format("{}, {}", values, places);
  for (const std::string& name : arrays) arguments += ", " + name;
  return arguments;
}

/// The part of a piece that the sample's threadgroup runs.
std::string sample_text(const Piece& piece, const SamplePart& part, std::string_view values, std::uint32_t threads,
                        const std::vector<std::string>& arrays) {
  const std::string count = fmt::format("make_uint3({}u, {}u, 1u)", part.groups[0], part.groups[1]);
  const auto call = [&](const std::string& places) {
    return fmt::format("piece_@_{}({});\n", part.piece, sample_arguments(piece, part, values, places, arrays));
  };
  if (part.unit == 0) return "  " + call(fmt::format("group_id, {}, thread_id, lane_id, simdgroup_id", count));
  const std::uint32_t in_a_group = piece.threads / part.unit;
  const std::string self = part.unit == 1
                               ? fmt::format("unit % {0}u, unit % 32u, unit % {0}u / 32u", in_a_group)
                               : fmt::format("unit % {0}u * 32u + lane_id, lane_id, unit % {0}u", in_a_group);
  return fmt::format(
      "  for (uint i = {}; i < {}u; i += {}u) {{\n    const uint unit = group_id.x * {}u + i;\n    {}  }}\n",
      part.unit == 1 ? "thread_id" : "simdgroup_id", part.units, threads / part.unit, part.units,
      call(fmt::format("make_uint3(unit / {}u, 0u, 0u), {}, {}", in_a_group, count, self)));
}

/// Arguments that are bound and brought to threadgroup memory at a kernel's start: a group for each part, of those
/// which it is the first to use.
class Brought {
 public:
  Brought(const std::vector<SamplePart>& parts, const std::vector<SampleArgument>& arguments) : arguments_(arguments) {
    std::vector<bool> seen(arguments.size(), false);
    for (const SamplePart& part : parts) {
      groups_.emplace_back();
      for (const std::size_t i : part.arguments) {
        if (!seen[i] && arguments[i].is_held && !arguments[i].binding.empty()) groups_.back().push_back(i);
        seen[i] = true;
      }
    }
  }

  std::string start_text() const {
    const std::size_t count = number_of(groups_.size());
    if (count == 0) return {};
    std::string text = array_text({"ulong", "arrivals", std::to_string(count)});
    text += fmt::format("  if (brings_for_samples(thread_id)) {{\n    start_arrivals<{}>(arrivals);\n", count);
    for (std::size_t part = 0; part < groups_.size(); ++part) {
      if (groups_[part].empty()) continue;
      const std::size_t number = number_of(part);
      std::size_t vectors = 0;
      for (const std::size_t i : groups_[part]) vectors += (arguments_[i].bytes + 15) / 16;
      text += fmt::format("    expect_arrivals<{}>(arrivals + {});\n", vectors, number);
      for (const std::size_t i : groups_[part]) {
        text += fmt::format("    bring_for_samples<{}>(held + {}, b{}, arrivals + {}, thread_id);\n",
                            arguments_[i].bytes, arguments_[i].at, i, number);
      }
      text += "    end_fragment_copies();\n";
    }
    return text + "  }\n";
  }

  /// What stands before a part.
  std::string barrier_text(std::size_t part) const {
    if (groups_[part].empty()) {
      return part == 0 ? "" : "  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\n";
    }
    const std::size_t number = number_of(part);
    return fmt::format("  wait_for_arrivals<{}>(arrivals + {});\n", number_of(groups_.size()) - number - 1, number);
  }

 private:
  /// Of a part's group: how many come before it.
  std::size_t number_of(std::size_t part) const {
    return static_cast<std::size_t>(
        std::count_if(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(part),
                      [](const std::vector<std::size_t>& group) { return !group.empty(); }));
  }

  const std::vector<SampleArgument>& arguments_;
  std::vector<std::vector<std::size_t>> groups_;
};

}  // namespace

Source source_of_samples(const std::vector<Piece>& pieces, const std::vector<SamplePart>& parts,
                         const std::vector<SampleArgument>& arguments, std::uint32_t threads, std::uint32_t held) {
  Source source;
  source.stem = "samples";
  source.files = files_of(pieces);
  source.threads = threads;
  source.large_memory = held;
  if (held > 0) source.files.emplace_back("samples.metal");
  std::string bound;
  std::string body;
  int bindings = 0;
  if (held > 0) body += array_text({"char", "held", std::to_string(held), held});
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const SampleArgument& argument = arguments[i];
    const std::string_view name = argument.is_held ? "b" : "a";
    if (!argument.binding.empty()) bound += fmt::format("{}(char, {}{}, {}), ", argument.binding, name, i, bindings++);
    if (argument.is_held) {
      body += fmt::format("  device char* const a{} = DEVICE_POINTER(held) + ({}l - long(group_id.x) * {}l);\n", i,
                          argument.at, argument.sample_bytes);
    }
  }
  const Brought brought(parts, arguments);
  body += brought.start_text();
  std::vector<std::vector<std::string>> array_names;
  for (const Piece::Array& array : arrays_of(pieces, array_names)) body += array_text(array);
  std::string known;
  std::string members;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SamplePart& part = parts[i];
    const Piece& piece = pieces[part.piece];
    const std::string type = numbered(piece.values_type, part.piece);
    std::string values = fmt::format("values.part{}", i);
    if (part.values.empty()) {
      members += fmt::format("alignas(8) {} part{}; ", type, i);
    } else {
      known += fmt::format("constant ulong values_@_{}[] = {{{:#x}ul}};\n", i, fmt::join(part.values, "ul, "));
      values = fmt::format("*(constant {}*)values_@_{}", type, i);
    }
    body += brought.barrier_text(i);
    body += sample_text(piece, part, values, threads, array_names[part.piece]);
  }
  const std::string changing = members.empty() ? "" : fmt::format("CHANGING_VALUES(Values_@, values, {})", bindings);
  if (members.empty()) bound.resize(bound.size() - 2);  // ", "
  if (!members.empty()) known += fmt::format("struct Values_@ {{ {}}};\n", members);
  source.text =
      fmt::format("{}{}KERNEL(@, {}, {}{}) {{\n{}}}\n", functions_text(pieces), known, threads, bound, changing, body);
  return source;
}

}  // namespace russet::gpu
