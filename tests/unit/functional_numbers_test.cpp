// Numbers that a type cannot hold are refused at the call, as in PyTorch; and ranges that are too long.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include <cmath>
#include <functional>
#include <limits>

namespace russet {
namespace {

const Device device{DeviceType::reference};

struct Refused {
  Scalar number;
  DType dtype;
};

const Refused refused[] = {
    {NAN, DType::int64},        {INFINITY, DType::int64},  {-INFINITY, DType::int32},     {0x1p63, DType::int64},
    {-1e19, DType::int64},      {300, DType::uint8},       {-256, DType::uint8},          {-1.0, DType::uint8},
    {255.9, DType::uint8},      {128, DType::int8},        {-129, DType::int8},           {32768, DType::int16},
    {0x1p31, DType::int32},     {INT64_MAX, DType::int32}, {1e300, DType::float32},       {70000, DType::float16},
    {-70000.0, DType::float16}, {3.4e38, DType::bfloat16}, {-0x1p63 - 4096, DType::int64}};

using Fill = std::function<Tensor(const Tensor& x, Scalar number)>;

const std::pair<const char*, Fill> fills[] = {
    {"full_like", [](const Tensor& x, Scalar number) { return full_like(x, number); }},
    {"fill_", [](const Tensor& x, Scalar number) { return x.fill_(number); }},
    {"scatter", [](const Tensor& x,
                   Scalar number) { return scatter(x, 0, Tensor::from<std::int64_t>({1}, {1}, device), number); }},
    {"index_fill",
     [](const Tensor& x, Scalar number) {
       return index_fill(x, 0, Tensor::from<std::int64_t>({1}, {1}, device), number);
     }},
    {"pad",
     [](const Tensor& x, Scalar number) {
       return pad(x, {1, 1}, PadMode::constant, number);
     }},
};

TEST(Numbers, ThatATypeCannotHoldAreRefused) {
  for (const auto& [number, dtype] : refused) {
    const std::string what = std::string(name_of(dtype)) + " " + std::to_string(number.to_double());
    EXPECT_THROW(full({2}, number, {.dtype = dtype, .device = device}), ValueError) << what;
    EXPECT_THROW(scalar_tensor(number, {.dtype = dtype, .device = device}), ValueError) << what;
    for (const auto& [name, fill] : fills) {
      EXPECT_THROW(fill(zeros({3}, {dtype, device}), number), ValueError) << name << ": " << what;
    }
  }
  const Tensor bytes = zeros({3}, {DType::uint8, device});
  const Tensor mask = bytes.to(DType::boolean);
  EXPECT_THROW(masked_fill(bytes, mask, 300), ValueError);
  EXPECT_THROW(where(mask, bytes, 300), ValueError);
  EXPECT_THROW(clamp(bytes, std::nullopt, 300), ValueError);
  EXPECT_THROW(masked_fill(zeros({3}, {DType::float16, device}), mask, -1e9), ValueError);
  try {
    full({2}, 300, {.dtype = DType::uint8});
    ADD_FAILURE();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "full: uint8 cannot hold 300");
  }
}

TEST(Numbers, ThatATypeHoldsAreTaken) {
  const auto made = [](Scalar number, DType dtype) {
    return full({1}, number, {.dtype = dtype, .device = device}).item<double>();
  };
  EXPECT_EQ(made(-1, DType::uint8), 255);
  EXPECT_EQ(made(-255, DType::uint8), 1);
  EXPECT_EQ(made(1.9, DType::int32), 1);
  EXPECT_EQ(made(-0x1p63, DType::int64), -0x1p63);
  EXPECT_EQ(made(-128, DType::int8), -128);
  EXPECT_EQ(made(INFINITY, DType::float16), INFINITY);
  EXPECT_TRUE(std::isnan(made(NAN, DType::bfloat16)));
  EXPECT_EQ(made(NAN, DType::boolean), 1);
  EXPECT_EQ(made(65504, DType::float16), 65504);
  EXPECT_EQ(made(std::numeric_limits<float>::max(), DType::float32), std::numeric_limits<float>::max());
  // Arithmetic wraps the number as it does results.
  EXPECT_EQ((zeros({1}, {DType::uint8, device}) + 300).item<double>(), 44);
}

TEST(Numbers, RangesThatAreTooLongAreRefused) {
  EXPECT_THROW(arange(INT64_MIN, INT64_MAX), ValueError);
  EXPECT_THROW(arange(INT64_MAX, INT64_MIN, -1), ValueError);
  EXPECT_THROW(arange(0.0, 0x1p63), ValueError);
  EXPECT_THROW(arange(0.0, 1e300, 1e-300), ValueError);
  EXPECT_THROW(arange(0, 1, NAN), ValueError);
  EXPECT_THROW(arange(0, 1e19, 1e18, {.dtype = DType::int64}), ValueError);
  const std::vector<std::int64_t> wide = {INT64_MIN, -(std::int64_t{1} << 62), 0, std::int64_t{1} << 62};
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, std::int64_t{1} << 62, {.device = device}).to_vector<std::int64_t>(), wide);
  EXPECT_EQ(arange(5, 4, INT64_MIN, {.device = device}).to_vector<std::int64_t>(), std::vector<std::int64_t>{5});
}

}  // namespace
}  // namespace russet
