#include <gtest/gtest.h>
#include <russet/chips.h>
#include <russet/error.h>

#include <string>

namespace russet {
namespace {

TEST(Chips, AreAllFromM1ToM5) {
  for (const char* const generation : {"m1", "m2", "m3", "m4", "m5"}) {
    for (const char* const suffix : {"", "-pro", "-max"}) {
      EXPECT_NO_THROW((void)chip_of(std::string(generation) + suffix)) << generation << suffix;
    }
  }
  for (const char* const ultra : {"m1-ultra", "m2-ultra", "m3-ultra"}) EXPECT_NO_THROW((void)chip_of(ultra)) << ultra;
  EXPECT_EQ(chips().size(), 18);
  EXPECT_THROW((void)chip_of("m4-ultra"), ValueError);
}

TEST(Chips, AreKnownByTheNamesOfTheirGpus) {
  EXPECT_EQ(chip_of_gpu("Apple M1 Pro").name, "m1-pro");
  EXPECT_EQ(chip_of_gpu("Apple M4").name, "m4");
  EXPECT_EQ(chip_of_gpu("Apple M4 Max").name, "m4-max");
  EXPECT_EQ(chip_of_gpu("Apple M5 Max").family, "apple10");
}

TEST(Chips, LaterOnesAreTheFastestOfTheirSuffix) {
  EXPECT_EQ(chip_of_gpu("Apple M9").name, "m5");
  EXPECT_EQ(chip_of_gpu("Apple M9 Pro").name, "m5-pro");
  EXPECT_EQ(chip_of_gpu("Apple M9 Max").name, "m5-max");
  EXPECT_EQ(chip_of_gpu("Apple M5 Ultra").name, "m3-ultra");
  EXPECT_EQ(chip_of_gpu("Apple M12 Max").name, "m5-max");
}

TEST(Chips, OtherGpusAreTheSlowest) {
  for (const char* const other : {"Apple", "", "m", "Apple Paravirtual device", "Apple A12Z GPU", "Apple M9 Large"}) {
    EXPECT_EQ(chip_of_gpu(other).name, "m1") << other;
  }
  for (const Chip& chip : chips()) {
    EXPECT_GE(chip.gigabytes_a_second, chips().front().gigabytes_a_second) << chip.name;
    EXPECT_GE(chip.teraflops, chips().front().teraflops) << chip.name;
  }
}

// 128 multiply-adds a core and clock.
TEST(Chips, ClocksAreThoseOfTheirGenerations) {
  for (const Chip& chip : chips()) {
    const double gigahertz = chip.teraflops * 1e3 / (chip.cores * 256.0);
    EXPECT_GT(gigahertz, 1.25) << chip.name;
    EXPECT_LT(gigahertz, 1.65) << chip.name;
  }
}

TEST(Chips, OfNvidiaAreKnownForCudaAlone) {
  EXPECT_EQ(chip_of("h200", DeviceType::cuda).family, "sm_90");
  EXPECT_THROW((void)chip_of("h200"), ValueError);
  EXPECT_THROW((void)chip_of("m1", DeviceType::cuda), ValueError);
  EXPECT_TRUE(chips(DeviceType::cpu).empty());
  for (const Chip& chip : chips(DeviceType::cuda)) {
    EXPECT_GT(chip.half_teraflops, chip.teraflops) << chip.name;
    EXPECT_EQ(chip.family.substr(0, 3), "sm_") << chip.name;
  }
}

TEST(Chips, MultiplyHalvesByTensorCores) {
  const Chip& chip = chip_of("h200", DeviceType::cuda);
  EXPECT_DOUBLE_EQ(modelled_seconds(1, 989e12, chip, DType::bfloat16), 1);
  EXPECT_DOUBLE_EQ(modelled_seconds(1, 67e12, chip, DType::float32), 1);
  EXPECT_DOUBLE_EQ(modelled_seconds(1, 67e12, chip), 1);
  EXPECT_DOUBLE_EQ(modelled_seconds(1, 2.6e12, chip_of("m1"), DType::float16), 1);
}

TEST(Chips, ModelTheTimeOfWork) {
  EXPECT_DOUBLE_EQ(modelled_seconds(68.25e9, 1, chip_of("m1")), 1);
  EXPECT_DOUBLE_EQ(modelled_seconds(1, 7.8e12, chip_of("m1")), 3);
}

}  // namespace
}  // namespace russet
