#pragma once
// Elementwise functions on single numbers: integer arithmetic that wraps, and division as PyTorch defines it.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ops/failures.h"

namespace russet::cpu::tiles {

template <class T>
constexpr T wrapping_multiply(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}

// The larger and the smaller of two numbers, or NaN; -0 is smaller than 0.
template <class T>
T larger(T a, T b) {
  return a != a || a > b || (a == b && std::signbit(b)) ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a != a || a < b || (a == b && std::signbit(a)) ? a : b;
}

template <class T>
T floored_quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) ops::throw_division_by_zero("floor_divide");
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));  // the smallest number wraps
    return a % b != 0 && (a < 0) != (b < 0) ? a / b - 1 : a / b;
  } else {
    if (b == 0) return a / b;
    const T remainder = std::fmod(a, b);
    T quotient = (a - remainder) / b;
    if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T{0}, a / b);
    const T floored = std::floor(quotient);
    return quotient - floored > T{0.5} ? floored + 1 : floored;
  }
}

/// The remainder with the sign of a.
template <class T>
T remainder_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) ops::throw_division_by_zero("fmod");
    return b == -1 ? T{0} : static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

/// Integer powers, wrapping on overflow. With a negative exponent the result is 0 unless the base is 1 or -1.
template <class T>
constexpr T integer_power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? static_cast<T>(exponent % 2 != 0 ? -1 : 1) : T{0};
  }
  T result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = wrapping_multiply(result, base);
    base = wrapping_multiply(base, base);
  }
  return result;
}

template <class T>
constexpr T shifted_left(T a, T count) {
  constexpr T width = sizeof(T) * 8;
  return count < 0 || count >= width ? T{0} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << count);
}

template <class T>
constexpr T shifted_right(T a, T count) {
  constexpr T width = sizeof(T) * 8;
  return static_cast<T>(a >> (count < 0 || count >= width ? width - 1 : count));
}

}  // namespace russet::cpu::tiles
