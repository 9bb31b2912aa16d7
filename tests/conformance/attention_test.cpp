// Attention of many heads and its gradients in 16 bits: GPUs with tensor cores compute the three gradients by one
// kernel where there are enough of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/random.h>
#include <russet/runtime.h>

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

INSTANTIATE_TEST_SUITE_P(Devices, ManyHeads, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
