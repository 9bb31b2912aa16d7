#pragma once
// Data types, their properties and PyTorch's promotion rules.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace russet {

enum class DType : std::uint8_t {
  boolean,
  uint8,
  int8,
  int16,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
};

inline constexpr int dtype_count = 10;

/// IEEE 754 binary16, stored as its bits.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
  bool operator==(const float16&) const = default;
};

/// The upper half of a float32, stored as its bits. Conversion rounds to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit constexpr bfloat16(float value) : bits(round(value)) {}
  explicit constexpr operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  bool operator==(const bfloat16&) const = default;

 private:
  static constexpr std::uint16_t round(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((word >> 16) | 0x40U);
    return static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
};

/// Size of an element in bytes.
constexpr std::size_t size_of(DType type) {
  constexpr std::size_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[static_cast<int>(type)];
}

/// PyTorch's name: "bool", "uint8", ..., "float64".
constexpr std::string_view name_of(DType type) {
  constexpr std::string_view names[] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                        "int64", "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<int>(type)];
}

constexpr bool is_floating(DType type) { return type >= DType::float16; }
constexpr bool is_integral(DType type) { return type != DType::boolean && !is_floating(type); }

/// The distance from 1 to the next larger number of a floating type (torch.finfo's eps).
constexpr double epsilon_of(DType type) {
  switch (type) {
    case DType::float16: return 0x1p-10;
    case DType::bfloat16: return 0x1p-7;
    case DType::float64: return std::numeric_limits<double>::epsilon();
    default: return std::numeric_limits<float>::epsilon();
  }
}

/// The type of a result of two tensors of these types (PyTorch's `promote_types`).
DType promote(DType a, DType b);

/// The DType of a C++ element type.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::uint8;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::int8;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::int16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::int32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::int64;
}
template <>
constexpr DType dtype_of<float16>() {
  return DType::float16;
}
template <>
constexpr DType dtype_of<bfloat16>() {
  return DType::bfloat16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::float32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::float64;
}

/// Calls `visitor.template operator()<T>()` with the C++ element type of `type`.
template <class Visitor>
decltype(auto) visit_dtype(DType type, Visitor&& visitor) {
  switch (type) {
    case DType::boolean: return visitor.template operator()<bool>();
    case DType::uint8: return visitor.template operator()<std::uint8_t>();
    case DType::int8: return visitor.template operator()<std::int8_t>();
    case DType::int16: return visitor.template operator()<std::int16_t>();
    case DType::int32: return visitor.template operator()<std::int32_t>();
    case DType::int64: return visitor.template operator()<std::int64_t>();
    case DType::float16: return visitor.template operator()<float16>();
    case DType::bfloat16: return visitor.template operator()<bfloat16>();
    case DType::float32: return visitor.template operator()<float>();
    case DType::float64: break;
  }
  return visitor.template operator()<double>();
}

/// A floating number without its fraction. What the type cannot hold, and NaN, becomes the smallest number of int32 or
/// int64; narrower types take the low bits of int32. PyTorch on x86 gives the same.
template <class Integer, class Floating>
constexpr Integer truncated(Floating value) {
  if constexpr (sizeof(Integer) < sizeof(std::int32_t)) {
    return static_cast<Integer>(truncated<std::int32_t>(value));
  } else {
    constexpr Integer smallest = std::numeric_limits<Integer>::min();
    constexpr auto low = static_cast<Floating>(smallest);  // exact, and -low is the first number that is too large
    const bool fits = value >= low && value < -low;
    const auto inside = static_cast<Integer>(fits ? value : Floating{0});
    return fits ? inside : smallest;
  }
}

/// Converts between element types as `.to(dtype)` does: floating to integer as above, integers wrap, anything but 0 is
/// true.
template <class To, class From>
constexpr To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncated<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace russet
