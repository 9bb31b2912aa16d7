// Copies and elementwise work over arrays of which one lies in another order: along a short axis elements that are read
// lie side by side, along a longer one those that are written.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/functional.h>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

class Transposed : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
  /// On the simulator each kernel is compiled; those of other types differ in nothing but the type.
  const bool is_simulated = device.type == DeviceType::mps;

  void expect_alike(const std::function<Results(Device)>& run, const std::string& what) {
    const auto results_on = [&](Device on) {
      restart();
      return run(on);
    };
    EXPECT_EQ(difference(results_on(device), results_on(DeviceType::reference), 0), "") << what;
  }
};

// Weights of windows to channels last; more channels than there are, fewer, and no fours of them.
TEST_P(Transposed, WeightsOfWindows) {
  for (const Shape& sizes : {Shape{256, 64, 3, 3}, Shape{40, 384, 3, 3}, Shape{33, 1024, 2, 2}, Shape{64, 260, 4, 8},
                             Shape{64, 128, 7, 7}, Shape{256, 66, 3, 3}, Shape{3, 4, 3, 3}}) {
    for (const DType from : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const DType to : {DType::float32, DType::bfloat16}) {
        if (is_simulated && (from != DType::float32 || to != DType::bfloat16)) continue;
        const auto copied = [&](Device on) {
          return Results{numbers(sizes, on, from).permute({0, 2, 3, 1}).to(to).contiguous()};
        };
        expect_alike(copied, fmt::format("{} from {} to {}", to_string(sizes), name_of(from), name_of(to)));
      }
    }
  }
}

// What lies in the result's order beside it, or is the same for many elements, or is no whole array.
TEST_P(Transposed, WithOthersInTheResultsOrder) {
  expect_alike(
      [&](Device on) {
        const Tensor w = numbers({256, 64, 3, 3}, on, DType::float32).permute({0, 2, 3, 1});
        const Tensor same = numbers({256, 3, 3, 64}, on, DType::float32);
        const Tensor row = numbers({64}, on, DType::float32);
        return Results{(same + (w * row)).contiguous()};
      },
      "sum of products");
  if (is_simulated) return;
  expect_alike(
      [&](Device on) {
        const Tensor w = numbers({256, 66, 3, 3}, on, DType::float32).permute({0, 2, 3, 1});
        return Results{cat({w * 2, zeros({256, 3, 3, 2}, {.device = on})}, 3)};
      },
      "a part of an array, of no whole fours");
  expect_alike(
      [&](Device on) {
        const Tensor w = numbers({256, 64, 3, 3}, on, DType::float32) * 2;
        return Results{w.permute({0, 2, 3, 1}).contiguous(), w};
      },
      "results in two orders");
  expect_alike(
      [&](Device on) {
        const Tensor w = numbers({256, 66, 3, 3}, on, DType::float32);
        return Results{w.slice(1, {1, 65}).permute({0, 2, 3, 1}).contiguous() * 2};
      },
      "a slice");
  expect_alike(
      [&](Device on) {
        const Tensor a = numbers({256, 64, 3, 3}, on, DType::float32).permute({0, 2, 3, 1});
        const Tensor b = numbers({3, 256, 64, 3}, on, DType::float32).permute({1, 0, 3, 2});
        return Results{Tensor::cleared({256, 3, 3, 64}, {.device = on}).copy_(a + b)};
      },
      "two orders");
}

INSTANTIATE_TEST_SUITE_P(Devices, Transposed, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
