#include "safetensors_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace russet::io {
namespace {

constexpr std::string_view format_name(DType dtype) {
  constexpr std::string_view names[] = {"BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64"};
  return names[static_cast<int>(dtype)];
}

std::uint64_t byte_count(const Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : name_(path.string()),
      map_(std::make_shared<const MappedFile>(path)),
      header_(parse_safetensors(map_->bytes(), name_)) {}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(entries().begin(), entries().end(),
                                  [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found == entries().end() ? nullptr : &*found;
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  if (const SafetensorsEntry* entry = find(name)) return *entry;
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(entries().size(), 8); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", entries()[i].name);
  }
  if (entries().size() > 8) names += ", ...";
  throw FileError(fmt::format("{}: there is no tensor \"{}\"; it holds {}", name_, name,
                              names.empty() ? std::string("none") : names));
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return map_->bytes().subspan(header_.data_begin + entry.begin, entry.end - entry.begin);
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry, Device device) const {
  return Tensor::from_bytes(bytes(entry), entry.shape, {entry.dtype, device, false});
}

StateDict SafetensorsFile::tensors(Device device) const {
  StateDict all;
  for (const SafetensorsEntry& entry : entries()) all.insert(entry.name, tensor(entry, device));
  return all;
}

StateDict load_safetensors(const std::filesystem::path& path, Device device) {
  return SafetensorsFile(path).tensors(device);
}

SafetensorsLayout lay_out_safetensors(const StateDict& tensors, const Metadata& metadata) {
  SafetensorsLayout layout;
  layout.order.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), std::size_t{0});
  const auto tensor_at = [&](std::size_t place) -> const Tensor& { return tensors[place].second; };
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensor_at(a).dtype()) > size_of(tensor_at(b).dtype());
  });
  std::vector<std::uint64_t> begins(tensors.size());
  std::uint64_t reached = 0;
  for (const std::size_t place : layout.order) {
    begins[place] = reached;
    reached += byte_count(tensor_at(place));
  }

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (std::size_t place = 0; place < tensors.size(); ++place) {
    const auto& [name, tensor] = tensors[place];
    const Shape& sizes = tensor.sizes();
    header[name] = {{"dtype", format_name(tensor.dtype())},
                    {"shape", std::vector<std::int64_t>(sizes.begin(), sizes.end())},
                    {"data_offsets", {begins[place], begins[place] + byte_count(tensor)}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw ValueError("safetensors: names and metadata must be UTF-8");
  }
  text.append((64 - (text.size() + 8) % 64) % 64, ' ');
  for (std::size_t i = 0; i < 8; ++i) layout.header += static_cast<char>(text.size() >> (8 * i));
  layout.header += text;
  return layout;
}

void visit_data(const SafetensorsLayout& layout, const StateDict& tensors,
                const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::size_t piece = std::size_t{4} << 20;
  for (const std::size_t place : layout.order) tensors[place].second.visit_bytes(piece, take);
}

void save_safetensors(const std::filesystem::path& path, const StateDict& tensors, const Metadata& metadata) {
  const SafetensorsLayout layout = lay_out_safetensors(tensors, metadata);
  write_file_atomically(path, [&](FileWriter& writer) {
    writer.write(layout.header);
    visit_data(layout, tensors, [&](std::span<const std::byte> piece) { writer.write(piece); });
  });
}

}  // namespace russet::io
