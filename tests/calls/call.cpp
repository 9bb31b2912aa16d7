#include "calls/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace golden {

namespace {

russet::Shape resized(russet::Shape shape, Sizes sizes) {
  const int rank = shape.rank();
  if (rank == 0 || sizes == Sizes::given) return shape;
  if (sizes == Sizes::scalar) return {};
  if (sizes == Sizes::none_first) shape[0] = 0;
  if (sizes == Sizes::none_last) shape[rank - 1] = 0;
  for (std::int64_t& size : shape) size = sizes == Sizes::odd && size > 1 ? 2 * size + 1 : size;
  return shape;
}

/// `count` values: the given ones, over and over.
std::vector<double> repeated(const std::vector<double>& given, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count && !given.empty(); ++i) {
    values.push_back(given[static_cast<std::size_t>(i) % given.size()]);
  }
  return values;
}

bool is_square(const russet::Shape& shape) {
  return shape.rank() >= 2 && shape[shape.rank() - 1] == shape[shape.rank() - 2];
}

/// Square matrices of `size` rows that are as easy to invert and to decompose as the smaller ones whose values are
/// given: over and over, those gave matrices of whose inverses float32 keeps four digits. The diagonal goes on from the
/// given one in steps, for vectors of nearly equal singular values may be any; what is beside it gets smaller as rows
/// get longer.
std::vector<double> enlarged(const std::vector<double>& given, std::int64_t given_size, std::int64_t size,
                             std::int64_t count) {
  constexpr double step = 2;
  std::vector<double> others;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) % (given_size * given_size);
    if (place / given_size != place % given_size) others.push_back(given[i]);
  }
  const double share = static_cast<double>(given_size) / static_cast<double>(size);
  std::vector<double> values;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i / size % size;
    values.push_back(row == i % size ? given[0] + step * static_cast<double>(row)
                                     : others[next++ % others.size()] * share);
  }
  return values;
}

}  // namespace

Call::Call(const Json& record, const Making& making) : making_(making), unnamed_(record.at("a").size()) {
  for (const Json& value : record.at("a")) add(value);
  if (!record.contains("k")) return;
  for (const auto& [name, value] : record.at("k").items()) {
    names_.push_back(name);
    add(value);
  }
}

void Call::add(const Json& value) {
  Argument argument{value, {}, {}};
  if (value.is_object()) argument.tensor = make(value);
  if (value.is_array()) {
    for (const Json& entry : value) argument.tensors.push_back(entry.is_object() ? make(entry) : Tensor());
  }
  arguments_.push_back(std::move(argument));
}

Tensor Call::values_of(const Json& spec, const russet::Shape& shape, russet::DType dtype) const {
  const std::string type = spec.at("t");
  if (spec.contains("v")) {
    const russet::Shape given_shape = shape_of(spec.at("s"));
    const std::vector<double> listed = numbers(spec.at("v"));
    const bool squares = making_.sizes == Sizes::odd && is_square(given_shape) && is_square(shape) &&
                         shape[shape.rank() - 1] > given_shape[shape.rank() - 1];
    std::vector<double> values =
        squares ? enlarged(listed, given_shape[shape.rank() - 1], shape[shape.rank() - 1], russet::numel(shape))
                : repeated(listed, russet::numel(shape));
    if (type == "float" && !is_floating(dtype)) {
      for (double& value : values) value = std::isfinite(value) && std::abs(value) < 100 ? std::abs(value) : 1;
    }
    return golden::given(values, shape, dtype, making_.device);
  }
  if (type == "bool" || dtype == russet::DType::boolean) return golden::boolean(seed, offset_, shape, making_.device);
  if (type != "float")
    return golden::integer(seed, offset_, shape, spec.at("lo"), spec.at("hi"), dtype, making_.device);
  const double low = spec.at("lo");
  const double high = spec.at("hi");
  if (is_floating(dtype)) return golden::real(seed, offset_, shape, low, high, dtype, making_.device);
  const bool negative = low < 0 && dtype != russet::DType::uint8;
  std::vector<double> values = golden::integers(seed, offset_, shape, negative ? -2 : 1, negative ? 3 : 5);
  for (double& value : values) value = value == 0 ? 3 : value;
  return golden::given(values, shape, dtype, making_.device);
}

Tensor Call::make(const Json& spec) {
  ++offset_;
  const russet::Shape shape = resized(shape_of(spec.at("s")), making_.sizes);
  const russet::DType dtype = dtype_of(spec.at("t"), making_.floating);
  const bool leaf = spec.contains("g") && is_floating(dtype);
  const std::string key =
      making_.pool == nullptr ? "" : fmt::format("{} {} {}", offset_, spec.dump(), to_string(shape));
  const Tensor tensor = russet::test::take(making_.pool, key, [&] { return made(spec, shape, dtype, leaf); });
  if (leaf) leaves_.push_back(tensor);
  made_.emplace_back(tensor, tensor.version());
  return tensor;
}

Tensor Call::made(const Json& spec, const russet::Shape& shape, russet::DType dtype, bool leaf) const {
  Tensor tensor = values_of(spec, shape, dtype);
  if (leaf && making_.nudge != 0) tensor = tensor + direction(tensor, leaves_.size()) * making_.nudge;
  tensor = russet::test::laid_out(tensor, making_.layout);
  return leaf ? tensor.requires_grad_() : tensor;
}

bool Call::is_stale() const {
  return std::any_of(made_.begin(), made_.end(),
                     [](const auto& entry) { return entry.first.version() != entry.second; });
}

Tensor Call::direction(const Tensor& leaf, std::size_t index) {
  return golden::real(seed + 1, index, leaf.sizes(), -1, 1, leaf.dtype(), leaf.device());
}

Scalar Call::scalar(std::size_t i) const {
  const Json& number = value(i);
  if (number.is_boolean()) return number.get<bool>();
  if (number.is_number_integer()) return number.get<std::int64_t>();
  return real(i);
}

double Call::real(std::size_t i) const {
  const Json& number = value(i);
  return number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>();
}

std::vector<std::int64_t> Call::integers(std::size_t i) const {
  const Json& numbers = value(i);
  if (!numbers.is_array()) return {numbers.get<std::int64_t>()};
  return numbers.get<std::vector<std::int64_t>>();
}

russet::Size2 Call::size2(std::size_t i) const {
  const std::vector<std::int64_t> sizes = integers(i);
  return sizes.size() == 1 ? russet::Size2(sizes[0]) : russet::Size2(sizes[0], sizes[1]);
}

russet::Size3 Call::size3(std::size_t i) const {
  const std::vector<std::int64_t> sizes = integers(i);
  return sizes.size() == 1 ? russet::Size3(sizes[0]) : russet::Size3(sizes[0], sizes[1], sizes[2]);
}

}  // namespace golden
