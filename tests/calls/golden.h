#pragma once
// Golden values: reading the files of tests/golden/data, and the generator that both sides draw from (docs/golden.md).
#include <russet/tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace golden {

using Json = nlohmann::json;

/// The text of tests/golden/data/NAME, unpacked.
std::string read_text(const std::string& name);
std::vector<std::string> read_lines(const std::string& name);
Json read_json(const std::string& name);

/// low + (high - low) * uniform, rounded to float32, then converted to `dtype`.
russet::Tensor real(std::uint64_t seed, std::uint64_t offset, const russet::Shape& shape, double low, double high,
                    russet::DType dtype, russet::Device device = {});
/// These numbers as `dtype`: rounded, or without their fractions.
russet::Tensor given(const std::vector<double>& values, const russet::Shape& shape, russet::DType dtype,
                     russet::Device device = {});
/// low + floor((high - low) * uniform).
std::vector<double> integers(std::uint64_t seed, std::uint64_t offset, const russet::Shape& shape, std::int64_t low,
                             std::int64_t high);
russet::Tensor integer(std::uint64_t seed, std::uint64_t offset, const russet::Shape& shape, std::int64_t low,
                       std::int64_t high, russet::DType dtype, russet::Device device = {});
/// Whether uniform is below a half.
russet::Tensor boolean(std::uint64_t seed, std::uint64_t offset, const russet::Shape& shape,
                       russet::Device device = {});

russet::Shape shape_of(const Json& sizes);
/// By PyTorch's name; "float" is `floating`.
russet::DType dtype_of(const std::string& name, russet::DType floating);
/// Numbers, with "nan", "inf" and "-inf" as strings.
std::vector<double> numbers(const Json& values);

/// An empty string if `found` is `expected` within `tolerance` of the largest finite expected number, or of `scale` if
/// that is larger, else what differs. NaN and infinities must match.
std::string difference(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                       double scale = 0);

}  // namespace golden
