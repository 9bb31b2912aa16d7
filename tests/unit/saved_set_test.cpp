// What lives on between a forward pass whose loss was read and its backward pass.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <random>

#include "graph/min_cut.h"

namespace russet {
namespace {

using graph::MinCut;

struct Arrow {
  std::int32_t from, to;
  std::int64_t capacity;
};

std::int64_t across(const std::vector<Arrow>& arrows, const std::vector<bool>& sink_side) {
  std::int64_t total = 0;
  for (const Arrow& arrow : arrows) {
    if (sink_side[static_cast<std::size_t>(arrow.from)] || !sink_side[static_cast<std::size_t>(arrow.to)]) continue;
    if (arrow.capacity == MinCut::unlimited) return MinCut::unlimited;
    total += arrow.capacity;
  }
  return total;
}

/// Of all partitions of a graph whose source is vertex 0 and whose sink is the last.
std::int64_t least_by_trying(std::int32_t count, const std::vector<Arrow>& arrows) {
  std::int64_t least = MinCut::unlimited;
  for (std::uint32_t inner = 0; inner < (1U << (count - 2)); ++inner) {
    std::vector<bool> sink_side(static_cast<std::size_t>(count), false);
    for (std::int32_t i = 0; i < count - 2; ++i) sink_side[static_cast<std::size_t>(i + 1)] = (inner >> i) & 1U;
    sink_side.back() = true;
    least = std::min(least, across(arrows, sink_side));
  }
  return least;
}

TEST(MinCut, EqualsTheLeastOfAllPartitions) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  MinCut min_cut;
  for (int round = 0; round < 400; ++round) {
    const std::int32_t count = 3 + below(7);
    std::vector<Arrow> arrows;
    for (int i = 0; i < 3 * count; ++i) {
      const std::int32_t from = below(static_cast<std::uint32_t>(count)), to = below(static_cast<std::uint32_t>(count));
      const bool ends = from == 0 && to == count - 1;
      if (from != to) arrows.push_back({from, to, !ends && below(6) == 0 ? MinCut::unlimited : below(9)});
    }
    const std::int64_t least = least_by_trying(count, arrows);
    if (least == MinCut::unlimited) continue;
    min_cut.reset(count);
    for (const Arrow& arrow : arrows) min_cut.add_edge(arrow.from, arrow.to, arrow.capacity);
    EXPECT_EQ(across(arrows, min_cut.solve(0, count - 1)), least) << "round " << round;
  }
}

constexpr std::int64_t side = 64;
constexpr std::size_t matrix_bytes = side * side * sizeof(float);

Tensor matrix(double scale) {
  return sin(arange(side * side).to(DType::float32) * scale).reshape({side, side}).contiguous();
}

/// How much more memory is in use once the loss, which nobody else holds, has been read; and x's gradient.
struct Kept {
  std::size_t bytes;
  std::vector<float> gradient;
};

template <class Program>
Kept kept_by(Program program, bool read_loss = true) {
  Tensor x = matrix(0.37);
  x.requires_grad_();
  const Tensor w = matrix(0.91), v = matrix(0.53);
  x.to_vector<float>(), w.to_vector<float>(), v.to_vector<float>();
  reset_peak_memory({});
  const std::size_t before = memory_in_use({});
  Tensor loss = program(x, w, v);
  Kept kept{};
  if (read_loss) {
    loss.item<float>();
    reset_peak_memory({});  // gives the arena back
    kept.bytes = memory_in_use({}) - before;
  }
  loss.backward();
  kept.gradient = x.grad().to_vector<float>();
  return kept;
}

TEST(SavedSet, KeepsOneSumRatherThanItsTwoTerms) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    return sum(exp((matmul(x, w) + matmul(x, v)) * 0.01));
  };
  const Kept kept = kept_by(program);
  EXPECT_GE(kept.bytes, matrix_bytes);
  EXPECT_LT(kept.bytes, 2 * matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
}

TEST(SavedSet, KeepsOneInputRatherThanManyValuesMadeOfIt) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor product = matmul(x, w) * 0.01;
    return sum(exp(product) + sin(product) * v + tanh(product * product));
  };
  const Kept kept = kept_by(program);
  EXPECT_GE(kept.bytes, matrix_bytes);
  EXPECT_LT(kept.bytes, 2 * matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
}

TEST(SavedSet, KeepsNothingOfWhatComesFromLeavesAlone) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) { return sum(exp(x * w) * v); };
  const Kept kept = kept_by(program);
  EXPECT_LT(kept.bytes, matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
}

TEST(SavedSet, TakesTheFewerBytesOfAValueAndItsCast) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor half = matmul(x, w).to(DType::bfloat16);
    return sum((half * half).to(DType::float32) * v);
  };
  const Kept kept = kept_by(program);
  EXPECT_GE(kept.bytes, matrix_bytes / 2);
  EXPECT_LT(kept.bytes, matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
}

TEST(SavedSet, TakesTheFewerBytesThoughTheyLieFurtherFromWhatIsRead) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor wide = matmul(x, w).to(DType::bfloat16).to(DType::float32);
    return sum(wide * wide * v);
  };
  const Kept kept = kept_by(program);
  EXPECT_GE(kept.bytes, matrix_bytes / 2);
  EXPECT_LT(kept.bytes, matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
}

struct Exp : autograd::Function<Exp> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    const Tensor y = exp(x);
    ctx->save_for_backward({x, y, y * 2.0});
    return y;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, const autograd::variable_list& gradients) {
    const autograd::variable_list saved = ctx->get_saved_variables();
    return {gradients[0] * (saved[1] + saved[2] + saved[0]) * 0.25};
  }
};

TEST(SavedSet, KnowsWhatCustomFunctionsSave) {
  const auto program = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    return sum(Exp::apply(matmul(x, w))) + v[0][0];  // no other operator saves the product
  };
  const Kept kept = kept_by(program);
  EXPECT_GE(kept.bytes, matrix_bytes);
  EXPECT_LT(kept.bytes, 2 * matrix_bytes);
  EXPECT_EQ(kept.gradient, kept_by(program, false).gradient);
  const Kept none = kept_by([](const Tensor& x, const Tensor&, const Tensor& v) { return sum(Exp::apply(x * v)); });
  EXPECT_LT(none.bytes, matrix_bytes);
}

}  // namespace
}  // namespace russet
