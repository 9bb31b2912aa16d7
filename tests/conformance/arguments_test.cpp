// What changes from step to step of a loop whose plan stays: numbers that the user gives, random numbers, and where
// slices begin. Devices keep what a run launched and put later numbers in: each step must have its own.
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet::conformance {
namespace {

const Device reference{DeviceType::reference};
constexpr int steps = 8;  // what is launched is kept from the third on

class Arguments : public testing::TestWithParam<std::string>, protected NormalNumbers {
 protected:
  /// What a step gives, of each step in a row, read in the end or after each.
  Results results_of(Device on, const std::function<Results(const Results&, int)>& step, bool read_each) {
    restart();
    manual_seed(7);
    Results given;
    for (const Shape& shape : {Shape{40, 64}, Shape{40, 100}, Shape{40, 7}}) given.push_back(numbers(shape, on));
    flush();
    Results all;
    for (int i = 0; i < steps; ++i) {
      Results results = step(given, i);
      flush();
      for (Tensor& result : results) {
        if (read_each) result = result.to(reference);
        all.push_back(std::move(result));
      }
    }
    return all;
  }

  void expect_alike(const std::function<Results(const Results&, int)>& step) {
    for (const bool read_each : {true, false}) {
      EXPECT_EQ(difference(results_of(device, step, read_each), results_of(reference, step, read_each), 1e-5), "");
    }
  }

  const Device device{GetParam()};
};

TEST_P(Arguments, AreTheNumbersOfEachStep) {
  expect_alike([](const Results& given, int step) {
    Results results;
    for (const Tensor& x : given) results.push_back(x * (0.5 + step) + step);
    return results;
  });
}

TEST_P(Arguments, DrawOtherRandomNumbersInEachStep) {
  expect_alike([](const Results& given, int step) {
    Results results;
    for (const Tensor& x : given) results.push_back(dropout(x, 0.5, true) * (1.0 + step));
    return results;
  });
}

TEST_P(Arguments, SayWhereSlicesOfEachStepBegin) {
  expect_alike([](const Results& given, int step) {
    Results results;
    for (const Tensor& x : given) results.push_back(x.narrow(0, 4 * step, 4) * (1.0 + step));
    return results;
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, Arguments, testing::ValuesIn(tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
