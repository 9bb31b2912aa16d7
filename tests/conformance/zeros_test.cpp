// -0 is smaller than 0 for maximum, minimum, amax and amin on every device: the order of elements changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

std::vector<std::string> tested_and_reference() {
  std::vector<std::string> names = tested_devices();
  names.emplace_back("reference");
  return names;
}

class Zeros : public testing::TestWithParam<std::string> {
 protected:
  const Device device{GetParam()};
};

/// Whether all elements are zeros of this sign.
bool all_are(const Tensor& zeros, bool negative) {
  const std::vector<float> values = zeros.to_vector<float>();
  return std::ranges::all_of(values, [&](float x) { return x == 0 && std::signbit(x) == negative; });
}

TEST_P(Zeros, OfBothSignsAreOrdered) {
  struct Case {
    std::string name;
    Tensor few_plus, few_minus;  // one element is of the other sign than all others
  };
  const bool compiled = compiles_kernels(GetParam());
  const std::vector<std::int64_t> sizes =
      compiled ? std::vector<std::int64_t>{40, 70000} : std::vector<std::int64_t>{2, 5, 40, 9000, 70000};
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    if (!has_type(device, dtype)) continue;
    for (const std::int64_t size : sizes) {
      for (const std::int64_t place : {std::int64_t{0}, size / 3, size - 1}) {
        const auto made = [&](double most, double one) {
          std::vector<double> values(static_cast<std::size_t>(size), most);
          values[static_cast<std::size_t>(place)] = one;
          return Tensor::from(values, {size}).to(dtype).to(device);
        };
        cases.push_back({fmt::format("{} of {}, the one at {} differs", size, name_of(dtype), place), made(-0.0, 0.0),
                         made(0.0, -0.0)});
      }
    }
  }
  struct Answer {
    std::string name;
    Tensor larger, smaller;
  };
  std::vector<Answer> answers;  // recorded together, so that a device that compiles kernels compiles few
  for (const Case& c : cases) {
    const Tensor& plus = c.few_plus;
    const Tensor& minus = c.few_minus;
    const std::int64_t size = plus.numel();
    answers.push_back({c.name, maximum(plus, minus), minimum(plus, minus)});
    answers.push_back({c.name + ", swapped", maximum(minus, plus), minimum(minus, plus)});
    answers.push_back({c.name + ", a row", amax(plus, 0), amin(minus, 0)});
    answers.push_back({c.name + ", columns", amax(plus.reshape({size, 1}).expand({size, 3}), 0),
                       amin(minus.reshape({size, 1}).expand({size, 3}), 0)});
  }
  for (const Answer& answer : answers) {
    EXPECT_TRUE(all_are(answer.larger, false)) << answer.name << ": the largest is -0";
    EXPECT_TRUE(all_are(answer.smaller, true)) << answer.name << ": the smallest is 0";
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Zeros, testing::ValuesIn(tested_and_reference()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
