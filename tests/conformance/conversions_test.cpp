// Floating numbers become integers in one way on every device, those that the integer type cannot hold included. What
// is expected is computed here.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/runtime.h>

#include <cmath>
#include <limits>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr DType targets[] = {DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64, DType::boolean};

/// Numbers that stand on both sides of what integer types hold, `count` of them.
std::vector<float> numbers(std::int64_t count) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> corners = {std::numeric_limits<float>::quiet_NaN(),
                                      infinity,
                                      -infinity,
                                      0x1p31F,
                                      -0x1p31F,
                                      0x1p63F,
                                      -0x1p63F,
                                      std::nextafter(0x1p31F, 0.0F),
                                      std::nextafter(0x1p63F, 0.0F),
                                      std::nextafter(-0x1p31F, -infinity),
                                      255.9F,
                                      256.0F,
                                      -0.9F,
                                      -0.0F,
                                      -1,
                                      1.9F,
                                      127.5F,
                                      -128.9F,
                                      -129,
                                      300,
                                      32768,
                                      -32769.5F,
                                      70000,
                                      3e9F,
                                      -3e9F,
                                      1e30F};
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    values.push_back(at % 3 == 2 ? static_cast<float>(at) * 7.3F - 900 : corners[at * 5 % corners.size()]);
  }
  return values;
}

/// The low `bits` of an integer, as a number with or without sign.
std::int64_t low_bits(std::int64_t value, int bits, bool is_signed) {
  const std::int64_t size = std::int64_t{1} << bits;
  const std::int64_t rest = ((value % size) + size) % size;
  return is_signed && rest >= size / 2 ? rest - size : rest;
}

std::int64_t expected(double value, DType to) {
  if (to == DType::boolean) return value != 0 ? 1 : 0;
  const double limit = to == DType::int64 ? 0x1p63 : 0x1p31;
  const double whole = std::trunc(value);
  const bool fits = whole >= -limit && whole < limit;  // not of NaN
  const std::int64_t smallest = to == DType::int64 ? INT64_MIN : INT32_MIN;
  const std::int64_t integer = fits ? static_cast<std::int64_t>(whole) : smallest;
  switch (to) {
    case DType::uint8: return low_bits(integer, 8, false);
    case DType::int8: return low_bits(integer, 8, true);
    case DType::int16: return low_bits(integer, 16, true);
    default: return integer;
  }
}

class Conversions : public testing::TestWithParam<std::string> {
 protected:
  /// The numbers in a type of which every device has the same ones.
  Tensor made(DType from, std::int64_t count) const {
    return Tensor::from(numbers(count), {count}).to(from).to(device);
  }
  std::vector<DType> sources() const {
    std::vector<DType> types = {DType::float32, DType::float16, DType::bfloat16};
    if (has_type(device, DType::float64)) types.push_back(DType::float64);
    return types;
  }
  void expect_converted(const Tensor& made, const std::vector<double>& from, DType to, const char* how) const {
    const Integers found = made.to_vector<std::int64_t>();
    ASSERT_EQ(found.size(), from.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], expected(from[i], to)) << how << ": " << from[i] << " to " << name_of(to) << ", place " << i;
    }
  }

  const Device device{GetParam()};
};

TEST_P(Conversions, OfFloatingNumbersTruncate) {
  for (const DType from : sources()) {
    std::vector<Tensor> inputs;
    for (const std::int64_t count : {1, 7, 64, 1000}) inputs.push_back(made(from, count));
    std::vector<Tensor> results;  // computed together
    for (const Tensor& x : inputs) {
      for (const DType to : targets) results.push_back(x.to(to));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Tensor& x = inputs[i / std::size(targets)];
      expect_converted(results[i], x.to_vector<double>(), targets[i % std::size(targets)],
                       fmt::format("{} {}", name_of(from), x.numel()).c_str());
    }
  }
}

/// In between other work of one kernel: what is read there is what would have been stored.
TEST_P(Conversions, AreTheSameInsideOfGroups) {
  for (const DType from : sources()) {
    const Tensor x = made(from, 64);
    std::vector<double> values = x.to_vector<double>();
    for (double& value : values) value = -value;
    std::vector<Tensor> results;
    for (const DType to : targets) results.push_back((x * -1).to(to).to(DType::int64) + 1);
    for (std::size_t i = 0; i < std::size(targets); ++i) {
      expect_converted(results[i].to(Device()) - 1, values, targets[i],
                       fmt::format("{} in a group", name_of(from)).c_str());
    }
  }
}

TEST_P(Conversions, AreTheSameInEveryLayout) {
  for (const DType from : sources()) {
    const Tensor x = made(from, 30 * 34);
    const Tensor views[] = {x.view({30, 34}).transpose(0, 1), x.view({30, 34}).narrow(1, 3, 17),
                            x.slice(0, {1, 1000, 3}), x.narrow(0, 0, 1).expand({5, 3})};
    std::vector<Tensor> results;
    for (const Tensor& view : views) {
      for (const DType to : targets) results.push_back(view.to(to));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_converted(results[i], views[i / std::size(targets)].to_vector<double>(), targets[i % std::size(targets)],
                       fmt::format("{} strided", name_of(from)).c_str());
    }
  }
}

TEST_P(Conversions, HappenWhenTensorsAreWrittenAndRead) {
  const Tensor x = made(DType::float32, 64);
  const std::vector<double> values = x.to_vector<double>();
  std::vector<Tensor> written;
  for (const DType to : targets) {
    written.push_back(zeros({64}, {.dtype = to, .device = device}));
    written.back().copy_(x);
  }
  for (std::size_t i = 0; i < written.size(); ++i) expect_converted(written[i], values, targets[i], "copy_");
  const std::vector<std::uint8_t> bytes = x.to_vector<std::uint8_t>();
  const std::vector<std::int32_t> words = x.to_vector<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(bytes[i], expected(values[i], DType::uint8)) << values[i];
    EXPECT_EQ(words[i], expected(values[i], DType::int32)) << values[i];
    EXPECT_EQ(x[static_cast<std::int64_t>(i)].item<std::int64_t>(), expected(values[i], DType::int64)) << values[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conversions, testing::ValuesIn(tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
