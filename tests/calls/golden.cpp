#include "calls/golden.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>

#include "base/philox.h"

namespace golden {
namespace {

using russet::DType;
using russet::Shape;
using russet::Tensor;

template <class T, class F>
Tensor filled(const Shape& shape, DType dtype, russet::Device device, F value) {
  const std::int64_t count = russet::numel(shape);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * russet::size_of(dtype));
  russet::visit_dtype(dtype, [&]<class Element>() {
    for (std::int64_t i = 0; i < count; ++i) {
      const Element element = russet::convert_element<Element>(static_cast<T>(value(static_cast<std::uint64_t>(i))));
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(Element), &element, sizeof(Element));
    }
  });
  return Tensor::from_bytes(bytes, shape, {dtype, device, false});
}

double uniform(std::uint64_t seed, std::uint64_t offset, std::uint64_t position) {
  return static_cast<double>(russet::base::uniform_at(seed, offset, position));
}

}  // namespace

std::string read_text(const std::string& name) {
  const char* const folder = std::getenv("RUSSET_TEST_GOLDEN");
  const std::string path = (folder != nullptr ? folder : RUSSET_SOURCE_DIR "/tests/golden/data") + ("/" + name);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::string text;
  std::vector<char> block(1 << 16);
  int count = 0;
  while ((count = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  if (count < 0) throw std::runtime_error("cannot unpack " + path);
  return text;
}

std::vector<std::string> read_lines(const std::string& name) {
  const std::string text = read_text(name);
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

Json read_json(const std::string& name) { return Json::parse(read_text(name)); }

Tensor real(std::uint64_t seed, std::uint64_t offset, const Shape& shape, double low, double high, DType dtype,
            russet::Device device) {
  return filled<float>(shape, dtype, device, [&](std::uint64_t i) {
    return static_cast<float>(low + (high - low) * uniform(seed, offset, i));
  });
}

Tensor given(const std::vector<double>& values, const Shape& shape, DType dtype, russet::Device device) {
  if (static_cast<std::int64_t>(values.size()) != russet::numel(shape)) {
    throw std::runtime_error(fmt::format("{} values for the shape {}", values.size(), to_string(shape)));
  }
  const auto value = [&](std::uint64_t i) { return values[i]; };
  if (is_integral(dtype)) return filled<std::int64_t>(shape, dtype, device, value);
  return filled<double>(shape, dtype, device, value);
}

std::vector<double> integers(std::uint64_t seed, std::uint64_t offset, const Shape& shape, std::int64_t low,
                             std::int64_t high) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < russet::numel(shape); ++i) {
    values.push_back(static_cast<double>(low) + std::floor(static_cast<double>(high - low) *
                                                           uniform(seed, offset, static_cast<std::uint64_t>(i))));
  }
  return values;
}

Tensor integer(std::uint64_t seed, std::uint64_t offset, const Shape& shape, std::int64_t low, std::int64_t high,
               DType dtype, russet::Device device) {
  return given(integers(seed, offset, shape, low, high), shape, dtype, device);
}

Tensor boolean(std::uint64_t seed, std::uint64_t offset, const Shape& shape, russet::Device device) {
  return filled<bool>(shape, DType::boolean, device, [&](std::uint64_t i) { return uniform(seed, offset, i) < 0.5; });
}

Shape shape_of(const Json& sizes) {
  Shape shape;
  for (const Json& size : sizes) shape.push_back(size.get<std::int64_t>());
  return shape;
}

DType dtype_of(const std::string& name, DType floating) {
  if (name == "float") return floating;
  for (int i = 0; i < russet::dtype_count; ++i) {
    if (russet::name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  throw std::runtime_error("no type is called " + name);
}

std::vector<double> numbers(const Json& values) {
  std::vector<double> result;
  for (const Json& value : values)
    result.push_back(value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>());
  return result;
}

std::string difference(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                       double scale) {
  if (found.size() != expected.size()) return fmt::format("{} numbers, not {}", found.size(), expected.size());
  double largest = scale;
  for (const double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  const double slack = tolerance * std::max(largest, 1e-30);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same = found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]));
    if (same || std::abs(found[i] - expected[i]) <= slack) continue;
    return fmt::format("element {} is {:.9g}, not {:.9g} (largest {:.3g})", i, found[i], expected[i], largest);
  }
  return {};
}

}  // namespace golden
