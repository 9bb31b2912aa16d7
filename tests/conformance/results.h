#pragma once
// The same program on two devices: numbers for it, and what its results differ in.
#include <fmt/format.h>
#include <russet/functional.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace russet::conformance {

using Results = std::vector<Tensor>;

/// The same normal numbers on every device.
class NormalNumbers {
 public:
  Tensor numbers(const Shape& shape, Device on, DType type = DType::float32, double mean = 0) {
    std::normal_distribution<float> normal(static_cast<float>(mean), 1);
    std::vector<float> values;
    for (std::int64_t i = 0; i < numel(shape); ++i) values.push_back(normal(generator_));
    return Tensor::from(values, shape).to(type).to(on);
  }
  void restart() { generator_.seed(1); }

 private:
  std::mt19937 generator_{1};
};

/// "" if all results agree with those of the reference within `bound` of the largest element of each.
inline std::string difference(const Results& actual, const Results& expected, double bound) {
  const Device reference{DeviceType::reference};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto a = actual[i].to(reference).to(DType::float64).to_vector<double>();
    const auto e = expected[i].to(DType::float64).to_vector<double>();
    double largest = 0;
    for (const double value : e) largest = std::max(largest, std::abs(value));
    for (std::size_t at = 0; at < e.size(); ++at) {
      if (!(std::abs(a[at] - e[at]) <= bound * largest)) {
        return fmt::format("result {}, element {}: {} instead of {} (largest {})", i, at, a[at], e[at], largest);
      }
    }
  }
  return "";
}

}  // namespace russet::conformance
