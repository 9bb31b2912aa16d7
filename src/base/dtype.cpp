// Promotion tables and the binary16 conversions.
#include <russet/dtype.h>
#include <russet/scalar.h>

namespace russet {
namespace {

enum class Category { boolean, integral, floating };

constexpr Category category_of(DType type) {
  if (type == DType::boolean) return Category::boolean;
  return is_floating(type) ? Category::floating : Category::integral;
}

// PyTorch's `c10::promoteTypes`, rows and columns in the order of DType.
constexpr auto b1 = DType::boolean, u1 = DType::uint8, i1 = DType::int8, i2 = DType::int16, i4 = DType::int32,
               i8 = DType::int64, f2 = DType::float16, bf = DType::bfloat16, f4 = DType::float32, f8 = DType::float64;
constexpr DType promotions[dtype_count][dtype_count] = {
    //         b1  u1  i1  i2  i4  i8  f2  bf  f4  f8
    /* b1 */ {b1, u1, i1, i2, i4, i8, f2, bf, f4, f8},
    /* u1 */ {u1, u1, i2, i2, i4, i8, f2, bf, f4, f8},
    /* i1 */ {i1, i2, i1, i2, i4, i8, f2, bf, f4, f8},
    /* i2 */ {i2, i2, i2, i2, i4, i8, f2, bf, f4, f8},
    /* i4 */ {i4, i4, i4, i4, i4, i8, f2, bf, f4, f8},
    /* i8 */ {i8, i8, i8, i8, i8, i8, f2, bf, f4, f8},
    /* f2 */ {f2, f2, f2, f2, f2, f2, f2, f4, f4, f8},
    /* bf */ {bf, bf, bf, bf, bf, bf, f4, bf, f4, f8},
    /* f4 */ {f4, f4, f4, f4, f4, f4, f4, f4, f4, f8},
    /* f8 */ {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8},
};

constexpr bool is_symmetric() {
  for (int a = 0; a < dtype_count; ++a) {
    for (int b = 0; b < dtype_count; ++b) {
      if (promotions[a][b] != promotions[b][a]) return false;
    }
  }
  return true;
}
static_assert(is_symmetric());

// Rounds to nearest even. Bits of binary32: sign 1, exponent 8 (bias 127), fraction 23; of binary16: 1, 5 (15), 10.
std::uint16_t half_from_float(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word >> 16) & 0x8000U;
  const std::uint32_t magnitude = word & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | ((magnitude >> 13) & 0x3ffU);  // NaN, made quiet
  } else if (magnitude >= 0x477ff000U) {
    half = 0x7c00U;  // from 65520 on: infinity
  } else if (magnitude < 0x38800000U) {
    // Subnormal or zero: the unit in the last place of 0.5 is 2^-24, the smallest half, so the addition rounds for us.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    half = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide_exponent = exponent == 0x1fU ? 0xffU : exponent + 112U;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

}  // namespace

float16::float16(float value) : bits(half_from_float(value)) {}
float16::operator float() const { return float_from_half(bits); }

DType promote(DType a, DType b) { return promotions[static_cast<int>(a)][static_cast<int>(b)]; }

DType promote(DType tensor, const Scalar& number) {
  if (category_of(number.kind()) <= category_of(tensor)) return tensor;
  return number.kind() == DType::float64 ? DType::float32 : number.kind();
}

}  // namespace russet
