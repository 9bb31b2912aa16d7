// Promotion against PyTorch's table, 16-bit types against their definitions.
#include <gtest/gtest.h>
#include <russet/device.h>
#include <russet/error.h>
#include <russet/scalar.h>

#include <cmath>
#include <limits>

namespace russet {
namespace {

// Printed by PyTorch's torch.promote_types, in the order of DType.
constexpr const char* promoted[dtype_count] = {
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64",
    "uint8 uint8 int16 int16 int32 int64 float16 bfloat16 float32 float64",
    "int8 int16 int8 int16 int32 int64 float16 bfloat16 float32 float64",
    "int16 int16 int16 int16 int32 int64 float16 bfloat16 float32 float64",
    "int32 int32 int32 int32 int32 int64 float16 bfloat16 float32 float64",
    "int64 int64 int64 int64 int64 int64 float16 bfloat16 float32 float64",
    "float16 float16 float16 float16 float16 float16 float16 float32 float32 float64",
    "bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 bfloat16 float32 float64",
    "float32 float32 float32 float32 float32 float32 float32 float32 float32 float64",
    "float64 float64 float64 float64 float64 float64 float64 float64 float64 float64",
};

TEST(Promotion, FollowsPyTorch) {
  for (int a = 0; a < dtype_count; ++a) {
    std::string row;
    for (int b = 0; b < dtype_count; ++b) {
      row += (b == 0 ? "" : " ") + std::string(name_of(promote(static_cast<DType>(a), static_cast<DType>(b))));
    }
    EXPECT_EQ(row, promoted[a]);
  }
}

TEST(Promotion, NumbersTakePartByKind) {
  EXPECT_EQ(promote(DType::uint8, Scalar(300)), DType::uint8);
  EXPECT_EQ(promote(DType::boolean, Scalar(true)), DType::boolean);
  EXPECT_EQ(promote(DType::boolean, Scalar(1)), DType::int64);
  EXPECT_EQ(promote(DType::boolean, Scalar(1.0)), DType::float32);
  EXPECT_EQ(promote(DType::int64, Scalar(0.5)), DType::float32);
  EXPECT_EQ(promote(DType::float16, Scalar(0.5)), DType::float16);
  EXPECT_EQ(promote(DType::bfloat16, Scalar(2)), DType::bfloat16);
  EXPECT_EQ(promote(DType::float64, Scalar(1)), DType::float64);
}

/// The value of binary16 bits by its definition.
double half_value(unsigned bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((bits >> 10) & 31U);
  const int fraction = static_cast<int>(bits & 1023U);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Float16, EveryValueGoesThroughFloat) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(half);
    if (std::isnan(half_value(bits))) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(value))));
    } else {
      ASSERT_EQ(static_cast<double>(value), half_value(bits)) << bits;
      ASSERT_EQ(float16(value).bits, bits);
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  for (unsigned bits = 0; bits < 0x7bffU; ++bits) {
    const double low = half_value(bits);
    const double high = half_value(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(float16(middle).bits, bits + (bits & 1U)) << bits;
    ASSERT_EQ(float16(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(float16(std::nextafter(middle, INFINITY)).bits, bits + 1);
    ASSERT_EQ(float16(-middle).bits, 0x8000U | (bits + (bits & 1U)));
  }
  EXPECT_EQ(float16(65519.996F).bits, 0x7bffU);
  EXPECT_EQ(float16(65520.0F).bits, 0x7c00U);
  EXPECT_EQ(float16(-1e30F).bits, 0xfc00U);
  EXPECT_EQ(float16(INFINITY).bits, 0x7c00U);
}

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16(1.0F).bits, 0x3f80U);
  EXPECT_EQ(bfloat16(1.00390625F).bits, 0x3f80U);    // halfway between 1 and 1 + 2^-7: to even
  EXPECT_EQ(bfloat16(1.01171875F).bits, 0x3f82U);    // halfway above an odd one
  EXPECT_EQ(bfloat16(1.0039063692F).bits, 0x3f81U);  // just above halfway
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80U);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(static_cast<float>(bfloat16(-2.5F)), -2.5F);
}

TEST(ConvertElement, TruncatesAndTests) {
  EXPECT_EQ(convert_element<std::int32_t>(-2.9), -2);
  EXPECT_EQ(convert_element<std::int32_t>(0x1p31), INT32_MIN);
  EXPECT_EQ(convert_element<std::int32_t>(std::numeric_limits<double>::quiet_NaN()), INT32_MIN);
  EXPECT_EQ(convert_element<std::int64_t>(0x1p63F), INT64_MIN);
  EXPECT_EQ(convert_element<std::int64_t>(3e9F), 3000000000);
  EXPECT_EQ(convert_element<std::uint8_t>(-1.5F), 255);
  EXPECT_EQ(convert_element<std::uint8_t>(3e9), 0);
  EXPECT_EQ((convert_element<std::uint8_t>(std::int64_t{257})), 1);
  EXPECT_TRUE(convert_element<bool>(0.25F));
  EXPECT_FALSE(convert_element<bool>(float16(0.0F)));
  EXPECT_EQ(convert_element<double>(bfloat16(1.5F)), 1.5);
}

TEST(Device, Names) {
  EXPECT_EQ(Device("cpu"), Device());
  EXPECT_EQ(Device("cuda:1"), Device(DeviceType::cuda, 1));
  EXPECT_EQ(to_string(Device("cuda:1")), "cuda:1");
  EXPECT_EQ(to_string(Device("mps:0")), "mps");
  EXPECT_EQ(to_string(Device("reference")), "reference");
  EXPECT_EQ(Device("null").type, DeviceType::null);
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:256", "cuda:-1", "cuda:1 ", "CPU"}) {
    EXPECT_THROW(Device{bad}, DeviceError) << bad;
  }
}

}  // namespace
}  // namespace russet
