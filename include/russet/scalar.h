#pragma once
// A number that the user passed where a tensor could stand: it takes part in promotion by kind only.
#include <russet/dtype.h>
#include <concepts>
#include <cstdint>

namespace russet {

class Scalar {
 public:
  constexpr Scalar(bool value) : kind_(DType::boolean), integer_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Scalar(T value)
      : kind_(DType::int64), integer_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  constexpr Scalar(T value) : kind_(DType::float64), real_(static_cast<double>(value)) {}

  /// DType::boolean, int64 or float64: the kind of the number.
  constexpr DType kind() const { return kind_; }
  constexpr double to_double() const { return kind_ == DType::float64 ? real_ : static_cast<double>(integer_); }
  constexpr std::int64_t to_int64() const {
    return kind_ == DType::float64 ? truncated<std::int64_t>(real_) : integer_;
  }

 private:
  DType kind_;
  union {
    std::int64_t integer_;
    double real_;
  };
};

/// The type of a result of a tensor of type `tensor` and a number: the tensor's, unless the number is of a higher
/// category (PyTorch's rule); float numbers lift integers to float32.
DType promote(DType tensor, const Scalar& number);

}  // namespace russet
