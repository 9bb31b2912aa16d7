// Attention of many heads and its gradients in 16 bits: GPUs with tensor cores compute the three gradients by one
// kernel where there are enough of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include <string>
#include <vector>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

class ManyHeads : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

struct Case {
  std::int64_t batch, heads, queries, keys, width;
  AttentionOptions options{};
};

// Heads of both widths; keys that end within a simdgroup's, and within a threadgroup's last four; queries that end
// within a block, and within its half.
const Case cases[] = {
    {16, 8, 33, 40, 16},
    {13, 10, 70, 77, 64, {.is_causal = true}},
    {64, 2, 16, 130, 24, {.dropout_p = 0.25}},
    {128, 1, 45, 13, 40, {.dropout_p = 0.1, .is_causal = true}},
    {129, 1, 20, 64, 64},
    {130, 1, 5, 199, 64, {.dropout_p = 0.5}},
};

TEST_P(ManyHeads, AttentionAndItsGradients) {
  for (const Case& one : cases) {
    for (const DType type : {DType::bfloat16, DType::float16}) {
      const auto run = [&](Device on) {
        restart();
        manual_seed(7);
        const auto made = [&](std::int64_t rows) { return numbers({one.batch, one.heads, rows, one.width}, on, type); };
        const Tensor query = made(one.queries).requires_grad_();
        const Tensor key = made(one.keys).requires_grad_();
        const Tensor value = made(one.keys).requires_grad_();
        const Tensor slope = made(one.queries);
        flush();
        const Tensor y = scaled_dot_product_attention(query, key, value, {}, one.options);
        y.backward(slope);
        return Results{y, query.grad(), key.grad(), value.grad()};
      };
      const double bound = type == DType::float16 ? 4e-3 : 3e-2;
      EXPECT_EQ(difference(run(device), run(reference), bound), "") << fmt::format(
          "{} x {} of {} by {} x {} {}", one.batch, one.heads, one.queries, one.keys, one.width, name_of(type));
    }
  }
}

/// Devices that may prefer products to an attention's kernels.
std::vector<std::string> with_products() {
  std::vector<std::string> devices = conformance::tested_devices();
  std::erase(devices, "mps");
  return devices;
}

class Heads : public ManyHeads {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Heads);  // if mps alone is tested

// Heads side by side, as a layer's projection leaves them: computed before, or in the same plan. 50 and 197 keys are
// rounded up to whole vectors where products want that, 18 would grow too much.
TEST_P(Heads, SideBySide) {
  const Case lengths[] = {{2, 3, 50, 50, 16},
                          {2, 3, 50, 50, 16, {.is_causal = true}},
                          {2, 3, 50, 50, 16, {.dropout_p = 0.25}},
                          {2, 3, 18, 18, 16},
                          {16, 3, 197, 197, 64}};
  for (const Case& one : lengths) {
    for (const bool in_plan : {false, true}) {
      const std::int64_t width = one.heads * one.width;
      const auto run = [&](Device on) {
        restart();
        manual_seed(7);
        const Tensor x = numbers({one.batch, one.keys, 3 * width}, on, DType::float32).requires_grad_();
        const Tensor weight = numbers({width, width}, on, DType::float32).requires_grad_();
        const Tensor slope = numbers({one.batch, one.keys, width}, on, DType::float32);
        flush();
        const Tensor projected = in_plan ? x * 0.5 : x;
        const auto part = [&](std::int64_t i) {
          const Tensor own = projected.narrow(2, i * width, width);
          return own.reshape({one.batch, one.keys, one.heads, one.width}).transpose(1, 2);
        };
        const Tensor heads = scaled_dot_product_attention(part(0), part(1), part(2), {}, one.options);
        const Tensor y = matmul(heads.transpose(1, 2).reshape({one.batch, one.keys, width}), weight);
        y.backward(slope);
        return Results{y, x.grad(), weight.grad()};
      };
      EXPECT_EQ(difference(run(device), run(reference), 1e-4), "") << fmt::format(
          "{} x {} of {} x {}{}", one.batch, one.heads, one.keys, one.width, in_plan ? ", in the plan" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Heads, testing::ValuesIn(with_products()),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Devices, ManyHeads, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
