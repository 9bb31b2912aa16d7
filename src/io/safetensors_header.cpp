// Reads the header of a safetensors file as a stream of JSON events: no tree is built, so a hostile header costs no
// more memory than it has bytes, and a name that occurs twice is seen.
#include <fmt/format.h>
#include <russet/io/safetensors.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

namespace russet::io {
namespace {

using nlohmann::json;

/// As in the format's reference implementation.
constexpr std::uint64_t max_header_bytes = 100'000'000;

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName type_names[] = {
    {"BOOL", DType::boolean}, {"U8", DType::uint8},    {"I8", DType::int8},     {"I16", DType::int16},
    {"I32", DType::int32},    {"I64", DType::int64},   {"F16", DType::float16}, {"BF16", DType::bfloat16},
    {"F32", DType::float32},  {"F64", DType::float64},
};

/// The number of elements, or nothing if it does not fit 64 bits. Strides multiply the other sizes even where one is 0,
/// so these must fit as well.
std::optional<std::uint64_t> checked_numel(const Shape& shape) {
  std::uint64_t count = 1;
  bool none = false;
  for (const std::int64_t size : shape) {
    none |= size == 0;
    if (size != 0 && __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count)) return std::nullopt;
  }
  if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 8) return std::nullopt;
  return none ? 0 : count;
}

/// Receives the events of {"name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {...}}.
class HeaderEvents final : public json::json_sax_t {
 public:
  HeaderEvents(std::string_view file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) override {
    if (depth_ == 0) return enter(Nesting::file);
    if (nesting_ == Nesting::file && key_ == "__metadata__") return enter(Nesting::metadata);
    if (nesting_ == Nesting::file) {
      header_.entries.push_back({.name = key_, .dtype = {}, .shape = {}, .begin = 0, .end = 0});
      has_dtype_ = has_shape_ = false;
      offsets_ = -1;
      return enter(Nesting::entry);
    }
    fail("an object where none may be");
  }
  bool end_object() override {
    if (nesting_ == Nesting::entry && (!has_dtype_ || !has_shape_ || offsets_ != 2)) {
      fail(fmt::format("tensor \"{}\" lacks one of dtype, shape and data_offsets", current().name));
    }
    nesting_ = --depth_ == 1 ? Nesting::file : Nesting::outside;
    return true;
  }
  bool key(std::string& name) override {
    key_ = name;
    if (nesting_ == Nesting::file && !names_.insert(name).second) fail(fmt::format("\"{}\" is there twice", name));
    if (nesting_ == Nesting::metadata && header_.metadata.contains(name)) {
      fail(fmt::format("\"{}\" is there twice in the metadata", name));
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (nesting_ == Nesting::entry && key_ == "shape" && !has_shape_) {
      has_shape_ = true;
      return enter(Nesting::shape);
    }
    if (nesting_ == Nesting::entry && key_ == "data_offsets" && offsets_ < 0) {
      offsets_ = 0;
      return enter(Nesting::offsets);
    }
    fail("a list where none may be");
  }
  bool end_array() override {
    --depth_;
    nesting_ = Nesting::entry;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (nesting_ == Nesting::shape) return add_size(value);
    if (nesting_ == Nesting::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? current().begin : current().end) = value;
      return true;
    }
    fail("a number where none may be");
  }
  bool string(std::string& value) override {
    if (nesting_ == Nesting::metadata) {
      header_.metadata.emplace(key_, value);
      return true;
    }
    if (nesting_ == Nesting::entry && key_ == "dtype" && !has_dtype_) return set_dtype(value);
    fail("a string where none may be");
  }
  bool number_integer(std::int64_t) override { fail("a negative number"); }
  bool number_float(double, const std::string&) override { fail("a number that is not whole"); }
  bool null() override { fail("null where it may not be"); }
  bool boolean(bool) override { fail("a truth value where none may be"); }
  bool binary(json::binary_t&) override { fail("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail(fmt::format("it is no JSON from byte {} on", 8 + position));
  }

 private:
  enum class Nesting { outside, file, metadata, entry, shape, offsets };

  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: the safetensors header is wrong: {}", file_, reason));
  }
  bool enter(Nesting place) {
    nesting_ = place;
    ++depth_;
    return true;
  }
  SafetensorsEntry& current() { return header_.entries.back(); }
  bool add_size(std::uint64_t value) {
    if (current().shape.rank() == max_rank) {
      fail(fmt::format("tensor \"{}\" has more than {} dimensions", current().name, max_rank));
    }
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("tensor \"{}\" has a size of {}", current().name, value));
    }
    current().shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool set_dtype(const std::string& value) {
    const auto* found = std::find_if(std::begin(type_names), std::end(type_names),
                                     [&](const TypeName& row) { return row.name == value; });
    if (found == std::end(type_names)) {
      fail(fmt::format("tensor \"{}\" has the type \"{}\", which russet does not have", current().name, value));
    }
    current().dtype = found->dtype;
    has_dtype_ = true;
    return true;
  }

  std::string_view file_;
  SafetensorsHeader& header_;
  Nesting nesting_ = Nesting::outside;
  int depth_ = 0;
  std::string key_;
  std::unordered_set<std::string> names_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  int offsets_ = -1;
};

void check_sizes(const SafetensorsHeader& header, std::string_view name) {
  for (const SafetensorsEntry& entry : header.entries) {
    const std::optional<std::uint64_t> count = checked_numel(entry.shape);
    if (!count || entry.begin > entry.end || *count * size_of(entry.dtype) != entry.end - entry.begin) {
      throw FileError(fmt::format("{}: tensor \"{}\" of shape {} and type {} does not fit its bytes {} to {}", name,
                                  entry.name, to_string(entry.shape), name_of(entry.dtype), entry.begin, entry.end));
    }
  }
}

/// The tensors must follow each other from the first byte to the last.
void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes, std::string_view name) {
  std::vector<std::size_t> order(header.entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto& first = header.entries[a];
    const auto& second = header.entries[b];
    return std::pair(first.begin, first.end) < std::pair(second.begin, second.end);
  });
  std::uint64_t reached = 0;
  for (const std::size_t place : order) {
    const SafetensorsEntry& entry = header.entries[place];
    if (entry.begin != reached) {
      throw FileError(fmt::format("{}: tensor \"{}\" begins at byte {} of the data, not at {}: tensors {}", name,
                                  entry.name, entry.begin, reached, entry.begin < reached ? "overlap" : "leave a gap"));
    }
    reached = entry.end;
  }
  if (reached > data_bytes) {
    throw FileError(
        fmt::format("{}: it is truncated: the tensors have {} bytes, but {} are there", name, reached, data_bytes));
  }
  if (reached < data_bytes) {
    throw FileError(fmt::format("{}: {} bytes follow the last tensor", name, data_bytes - reached));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view name) {
  if (file.size() < 8) throw FileError(fmt::format("{}: {} bytes are no safetensors file", name, file.size()));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > max_header_bytes || length > file.size() - 8) {
    throw FileError(fmt::format("{}: no safetensors file, or a truncated one: a header of {} bytes in a file of {}",
                                name, length, file.size()));
  }
  const auto* const text = reinterpret_cast<const char*>(file.data()) + 8;
  if (length == 0 || text[0] != '{') throw FileError(fmt::format("{}: the safetensors header is no JSON object", name));
  SafetensorsHeader header;
  header.data_begin = 8 + length;
  HeaderEvents events(name, header);
  json::sax_parse(text, text + length, &events);
  check_sizes(header, name);
  check_layout(header, file.size() - header.data_begin, name);
  return header;
}

}  // namespace russet::io
