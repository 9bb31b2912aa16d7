#include <fmt/format.h>
#include <russet/data/tensors.h>
#include <russet/error.h>
#include <russet/io/safetensors.h>

#include <algorithm>
#include <cstring>

namespace russet::data {

TensorDataset::TensorDataset(const Tensor& x, const Tensor& y) {
  if (x.dim() == 0 || y.dim() == 0 || x.size(0) != y.size(0)) {
    throw ShapeError(fmt::format("TensorDataset: x and y must have the same number of rows: {} and {}",
                                 to_string(x.sizes()), to_string(y.sizes())));
  }
  auto bytes = std::make_shared<const std::vector<std::byte>>(x.to_bytes());
  inputs_ = *bytes;
  owner_ = bytes;
  set_fields(x.dtype(), x.sizes(), y.dtype(), y.sizes());
  set_targets(y.to_bytes(), y.dtype());
}

TensorDataset::TensorDataset(const std::filesystem::path& path) {
  const io::SafetensorsFile file(path);
  const io::SafetensorsEntry& x = file.at("x");
  const io::SafetensorsEntry& y = file.at("y");
  if (x.shape.empty() || y.shape.empty() || x.shape[0] != y.shape[0]) {
    throw FileError(fmt::format("{}: tensors x and y must have the same number of rows: {} and {}", file.name(),
                                to_string(x.shape), to_string(y.shape)));
  }
  inputs_ = file.bytes(x);
  owner_ = file.map();
  set_fields(x.dtype, x.shape, y.dtype, y.shape);
  set_targets(file.bytes(y), y.dtype);
}

void TensorDataset::set_fields(DType x_dtype, const Shape& x_shape, DType y_dtype, const Shape& y_shape) {
  size_ = x_shape[0];
  const auto row = [](Shape shape) {
    shape.erase(0);
    return shape;
  };
  input_ = {x_dtype, row(x_shape)};
  target_ = {is_integral(y_dtype) ? DType::int64 : y_dtype, row(y_shape)};
}

void TensorDataset::set_targets(std::span<const std::byte> bytes, DType dtype) {
  if (!is_integral(dtype)) {
    targets_ = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    return;
  }
  std::vector<std::byte> wide(bytes.size() / size_of(dtype) * sizeof(std::int64_t));
  std::int64_t smallest = 0;
  std::int64_t largest = -1;
  visit_dtype(dtype, [&]<class T>() {
    for (std::size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      const auto value = convert_element<std::int64_t>(element);
      std::memcpy(wide.data() + i * sizeof(value), &value, sizeof(value));
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
  });
  if (target_.shape.empty() && smallest >= 0) classes_ = largest + 1;
  targets_ = std::make_shared<const std::vector<std::byte>>(std::move(wide));
}

void TensorDataset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random&) const {
  const auto row = static_cast<std::size_t>(index);
  if (!input.empty()) std::memcpy(input.data(), inputs_.data() + row * input.size(), input.size());
  if (!target.empty()) std::memcpy(target.data(), targets_->data() + row * target.size(), target.size());
}

}  // namespace russet::data
