// What the compiler makes of small programs: each test needs one pass, and fails without it.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <limits>
#include <set>

#include "autograd/attention.h"
#include "compile/plan.h"
#include "graph/strided.h"
#include "nothing.h"
#include "runtime/device.h"
#include "runtime/profiler.h"
#include "without_pass.h"

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};

Tensor numbers(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) values.push_back(static_cast<float>((i * 7919) % 101 - 50) / 50);
  return Tensor::from(values, shape);
}

/// The plans that `program` runs, as one list of steps.
std::vector<StepInfo> steps_of(const std::function<void()>& program, Device on = cpu) {
  flush();
  std::vector<StepInfo> steps;
  observe_plans(on, [&](const PlanSummary& plan) { steps.insert(steps.end(), plan.steps.begin(), plan.steps.end()); });
  program();
  flush();
  observe_plans(on, nullptr);
  return steps;
}

std::size_t bytes_of(const std::vector<StepInfo>& steps) {
  std::size_t bytes = 0;
  for (const StepInfo& step : steps) bytes += step.bytes;
  return bytes;
}

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(Passes, FuseMakesOneGroupOfSoftmax) {
  const Tensor x = numbers({64, 100});
  Tensor y;
  const auto steps = steps_of([&] { y = softmax(x, 1); });
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].bytes, 2 * 64 * 100 * sizeof(float));  // read once, written once
}

/// A view's sums go along its memory, as those of an array do.
TEST(Passes, LowerAddsUpViewsInTheOrderOfTheirMemory) {
  const Tensor x = numbers({8, 50, 96});
  flush();
  Tensor sums;
  const auto steps = steps_of([&] { sums = sum(x.narrow(1, 1, 49).permute({2, 0, 1}), {1, 2}); });
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_NE(steps[0].detail.find("column group"), std::string::npos) << steps[0].detail;
  const std::vector<double> found = sums.to_vector<double>();
  const std::vector<double> values = x.to_vector<double>();
  for (std::size_t column = 0; column < found.size(); ++column) {
    double wanted = 0;
    for (std::size_t row = 0; row < values.size() / 96; ++row) wanted += row % 50 > 0 ? values[row * 96 + column] : 0;
    EXPECT_NEAR(found[column], wanted, 1e-4);
  }
}

TEST(Passes, FuseMakesOneGroupOfCrossEntropyForwardAndBackward) {
  const Tensor x = numbers({64, 100}).requires_grad_();
  const Tensor target = remainder(arange(64), 100);
  const auto steps = steps_of([&] { sum(softmax(x, 1) * numbers({64, 100})).backward(); });
  int rows = 0;
  for (const StepInfo& step : steps) rows += count(step.detail, "row group [64, 100]");
  EXPECT_LE(rows, 1);
}

int count_steps(const std::vector<StepInfo>& steps, const std::string& word) {
  int found = 0;
  for (const StepInfo& step : steps) found += count(step.detail, word);
  return found;
}

TEST(Passes, DecomposeWritesAttentionWithProductsWhereThereIsNoKernel) {
  const Tensor x = numbers({2, 64, 32});
  const Tensor mask = numbers({2, 1, 64}) > 0;
  autograd::AttentionOperands operands{x, x * 2, x * 3, mask, {}, {.scale = 0.3}};
  Tensor y;
  Tensor l;
  const auto steps = steps_of([&] {
    y = autograd::attention(operands);
    l = autograd::attention_logsumexp(operands);
  });
  EXPECT_EQ(count_steps(steps, "matmul"), 2);
  EXPECT_EQ(count_steps(steps, "attention"), 0);
  EXPECT_EQ(count_steps(steps, " exp"), 1);
  const Tensor s = where(mask, matmul(x, (x * 2).transpose(1, 2)) * 0.3, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(allclose(y, matmul(softmax(s, -1), x * 3), 1e-4, 1e-5));
  EXPECT_TRUE(allclose(l, logsumexp(s, {-1}, true), 1e-5, 1e-5));
}

TEST(Passes, PairLetsAnAttentionTakeThreeSteps) {
  const Device null{DeviceType::null};
  const auto made = [&] { return zeros({2, 4, 64, 32}, {DType::float32, null}); };
  const Tensor q = made().requires_grad_();
  const Tensor k = made().requires_grad_();
  const Tensor v = made().requires_grad_();
  const Tensor g = made();
  flush();
  const auto steps =
      steps_of([&] { scaled_dot_product_attention(q, k, v, {}, {.dropout_p = 0.25}).backward(g); }, null);
  // The result with its logsumexp; delta; the query's gradient; those of key and value. No random numbers in memory.
  EXPECT_EQ(steps.size(), 4U);
  for (const StepInfo& step : steps) EXPECT_EQ(count(step.detail, "uniform"), 0) << step.detail;
}

TEST(Passes, EpiloguesHoldBiasAndActivation) {
  const Device null{DeviceType::null};  // it takes every epilogue
  const Tensor x = numbers({64, 100}).to(null);
  const Tensor w = numbers({32, 100}).to(null);
  const Tensor b = numbers({32}).to(null);
  Tensor y;
  flush();
  const auto steps = steps_of([&] { y = relu(linear(x, w, b)); }, null);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(count(steps[0].detail, "epilogue"), 1);
}

TEST(Passes, EpiloguesLoadABiasThatIsFilledInTheSamePlan) {
  const Tensor x = numbers({3, 4});
  const Tensor w = numbers({4, 4});
  flush();
  Tensor bias;
  Tensor y;
  const auto steps = steps_of([&] {
    bias = empty({4}).fill_(0.5);
    y = relu(linear(x, w, bias));
  });
  EXPECT_EQ(count_steps(steps, "epilogue"), 1);
  EXPECT_TRUE(allclose(bias, full({4}, 0.5)));
  EXPECT_TRUE(allclose(y, relu(matmul(x, w.t()) + 0.5)));
}

/// The memory for results that the plans of `program` need besides what they overwrite.
std::size_t output_bytes_of(const std::function<void()>& program, Device on) {
  flush();
  std::size_t bytes = 0;
  observe_plans(on, [&](const PlanSummary& plan) { bytes += plan.output_bytes; });
  program();
  flush();
  observe_plans(on, nullptr);
  return bytes;
}

TEST(Passes, EpiloguesUpdateParametersWithGradientsThatAreNeverStored) {
  const Device null{DeviceType::null};
  const NoGrad no_grad;
  const Tensor x = numbers({64, 32}).to(null);
  const Tensor g = numbers({64, 16}).to(null);
  Tensor w = numbers({32, 16}).to(null);
  Tensor momentum = numbers({32, 16}).to(null);
  const auto update = [&] {
    momentum.copy_(momentum * 0.9 + matmul(x.t(), g));
    w.sub_(momentum * 0.1);
  };
  const auto steps = steps_of(update, null);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].bytes, (64 * 32 + 64 * 16 + 4 * 32 * 16) * sizeof(float));
  EXPECT_EQ(output_bytes_of(update, null), 0U);  // in place
}

TEST(Passes, EpiloguesUpdateNothingInPlaceThatTheirContractionReads) {
  const Device null{DeviceType::null};
  const NoGrad no_grad;
  const Tensor a = numbers({64, 64}).to(null);
  Tensor w = numbers({64, 64}).to(null);
  const std::size_t bytes = 64 * 64 * sizeof(float);
  EXPECT_EQ(output_bytes_of([&] { w.sub_(matmul(w, a)); }, null), bytes);
  EXPECT_EQ(output_bytes_of([&] { w.sub_(matmul(exp(w), a)); }, null), bytes);
  EXPECT_EQ(output_bytes_of([&] { w.sub_(matmul(exp(a), a)); }, null), 0U);
}

TEST(Passes, ScheduleUpdatesAParameterAfterAllWhoReadItsOldValue) {
  const NoGrad no_grad;
  const Tensor x = numbers({256, 256});
  const Tensor gradient = numbers({256, 256});
  for (const Device& on : {cpu, Device(DeviceType::null)}) {
    const Tensor a = x.to(on);
    const Tensor g = gradient.to(on);
    Tensor w = numbers({256, 256}).to(on);
    Tensor product;
    const auto program = [&] {
      product = matmul(matmul(a, a), w);
      w.sub_(g * 0.1);
    };
    EXPECT_EQ(output_bytes_of(program, on), 256 * 256 * sizeof(float)) << to_string(on);
  }
}

TEST(Passes, ScheduleLetsGradientsDieInUpdates) {
  const NoGrad no_grad;
  constexpr std::int64_t size = 256;
  const Tensor x = numbers({size, size});
  std::vector<Tensor> weights(4);
  for (Tensor& weight : weights) weight = numbers({size, size});
  flush();
  std::size_t arena = 0;
  observe_plans(cpu, [&](const PlanSummary& plan) { arena = std::max(arena, plan.arena_bytes); });
  std::vector<Tensor> gradients;
  for (const Tensor& weight : weights) gradients.push_back(matmul(x, weight));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].sub_(gradients[i] * 0.1);
  gradients.clear();
  flush();
  observe_plans(cpu, nullptr);
  EXPECT_LE(arena, 2 * size * size * sizeof(float));
}

TEST(Passes, ProloguesComputeWhatContractionsRead) {
  const Device null{DeviceType::null};
  const Tensor x = numbers({64, 32}).to(null);
  const Tensor scale = numbers({32}).to(null);
  const Tensor v = numbers({32, 8}).to(null);
  const Tensor w = numbers({32, 16}).to(null);
  flush();
  Tensor first;
  Tensor second;
  const auto steps = steps_of(
      [&] {
        const Tensor y = relu(x * scale);
        first = matmul(y, v);
        second = matmul(y, w);
      },
      null);
  ASSERT_EQ(steps.size(), 2U);  // y is never stored
  for (const StepInfo& step : steps) EXPECT_EQ(count(step.detail, "prologue"), 1) << step.detail;
  EXPECT_EQ(bytes_of(steps), (2 * (64 * 32 + 32) + 32 * (8 + 16) + 64 * (8 + 16)) * sizeof(float));
}

TEST(Passes, ProloguesReadThroughViews) {
  const Device null{DeviceType::null};
  const Tensor x = numbers({32, 10}).to(null);
  const Tensor w = numbers({32, 16}).to(null);
  flush();
  Tensor product;
  const auto steps = steps_of([&] { product = matmul((x + 1).t(), w); }, null);
  EXPECT_EQ(steps.size(), 1U);
}

TEST(Passes, ProloguesTakeMasksOutOfMemoryWithWhatTheyAreMadeOf) {
  const Device null{DeviceType::null};
  const Tensor x = numbers({64, 32}).to(null);
  const Tensor scale = numbers({32}).to(null);
  const Tensor v = numbers({32, 8}).to(null);
  const Tensor w = numbers({8, 32}).to(null);
  flush();
  Tensor masked;
  const auto steps = steps_of(
      [&] {
        const Tensor y = relu(x * scale);
        masked = masked_fill(matmul(matmul(y, v), w), y <= 0, 0) * x;
      },
      null);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(bytes_of(steps), (2 * (64 * 32 + 32) + 2 * 32 * 8 + 2 * 64 * 8 + 64 * 32) * sizeof(float));
}

// Each alone would be made of two tensors in two places, and leave the group to read them a third time.
TEST(Passes, ProloguesTakeTogetherWhatDoesNotPayAlone) {
  const Device null{DeviceType::null};
  const Tensor g = numbers({64, 32}).to(null);
  const Tensor x = numbers({64, 32}).to(null);
  const Tensor y = numbers({64, 32}).to(null);
  const Tensor v = numbers({32, 8}).to(null);
  flush();
  std::vector<Tensor> products;
  const auto steps = steps_of(
      [&] {
        const Tensor p = g - x;
        const Tensor q = g - y;
        products = {matmul(p, v), matmul(p, v * 2), matmul(q, v), matmul(q, v * 2)};
      },
      null);
  int prologues = 0;
  int stored = 0;
  for (const StepInfo& step : steps) {
    prologues += count(step.detail, "prologue of input 0");
    stored += count(step.detail, "storing");
  }
  EXPECT_EQ(prologues, 4);
  EXPECT_EQ(stored, 0);
}

TEST(Passes, ProloguesStoreWhatOthersRead) {
  const Device null{DeviceType::null};
  const Tensor x = numbers({64, 32}).to(null);
  const Tensor w = numbers({32, 16}).to(null);
  flush();
  Tensor y;
  Tensor product;
  const auto steps = steps_of(
      [&] {
        y = exp(x);
        product = matmul(y, w);
      },
      null);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(count(steps[0].detail, "storing prologue"), 1) << steps[0].detail;
  EXPECT_EQ(bytes_of(steps), (2 * 64 * 32 + 32 * 16 + 64 * 16) * sizeof(float));
}

TEST(Passes, ProloguesStoreNothingThatTheirContractionReadsOtherwise) {
  const Device null{DeviceType::null};
  const Tensor x = numbers({32, 32}).to(null);
  flush();
  Tensor y;
  Tensor last;
  const auto steps = steps_of(
      [&] {
        y = exp(x);
        last = matmul(y, matmul(y.t(), y));
      },
      null);
  ASSERT_EQ(steps.size(), 3U);
  for (const StepInfo& step : steps) EXPECT_EQ(count(step.detail, "prologue"), 0) << step.detail;
}

TEST(Passes, ShareLeavesApartWhatIsWrittenPieceByPiece) {
  const Tensor a = numbers({64, 32});
  const Tensor b = a.clone();
  const Tensor c = a.clone();
  flush();
  Tensor first;
  Tensor second;
  const auto steps = steps_of([&] {
    first = cat({a, b}, 1);
    second = cat({a, c}, 1);
  });
  EXPECT_EQ(bytes_of(steps), 2 * 4 * 64 * 32 * sizeof(float));  // each piece is read once and written once
}

TEST(Passes, ShareComputesEqualExpressionsOnce) {
  const Tensor x = numbers({4096});
  Tensor y;
  const auto steps = steps_of([&] { y = exp(x) + exp(x) * exp(x); });
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(count(steps[0].detail, " exp"), 1);
}

TEST(Passes, SimplifyTransposesOperandsInsteadOfProducts) {
  const Tensor a = numbers({64, 100});
  const Tensor b = numbers({100, 32});
  Tensor y;
  const auto steps = steps_of([&] { y = matmul(a, b).t().contiguous(); });
  EXPECT_EQ(steps.size(), 1U);
}

TEST(Passes, SimplifyCastsAWeightOnceForAllItsOrders) {
  const Tensor x = numbers({64, 100}).to(DType::bfloat16);
  const Tensor w = numbers({32, 100});
  const Tensor g = numbers({64, 32}).to(DType::bfloat16);
  flush();
  Tensor y;
  Tensor back;
  const auto steps = steps_of([&] {
    y = matmul(x, w.t().to(DType::bfloat16));
    back = matmul(g, w.to(DType::bfloat16));
  });
  EXPECT_EQ(steps.size(), 3U);  // one cast, two products
  EXPECT_TRUE(allclose(y.to(DType::float32), matmul(x.to(DType::float32), w.t()), 2e-2, 2e-1));
}

TEST(Passes, PruneLeavesNoValueBehindThatNobodyReads) {
  const Tensor x = numbers({4096});
  Tensor y;
  const auto steps = steps_of([&] {
    const Tensor a = tanh(matmul(x.reshape({64, 64}), x.reshape({64, 64})));
    const Tensor b = tanh(matmul(x.reshape({64, 64}), x.reshape({64, 64})));
    y = a + b;
  });
  int products = 0;
  for (const StepInfo& step : steps) products += count(step.detail, "matmul");
  EXPECT_EQ(products, 1);
}

TEST(Passes, PruneDropsValuesThatNoOutputNeeds) {
  using compile::Value;
  compile::Program program;
  const auto add = [&](ops::Op op, compile::Inputs inputs) {
    const Shape shape{8};
    program.values.push_back({{{DType::float32, shape}, op, {}}, inputs, -1, -1, contiguous_strides(shape)});
  };
  add(ops::Op::leaf, {-1, -1, -1});
  program.values[0].leaf = 0;
  program.leaves.push_back({0, false, false});
  add(ops::Op::exp, {0, -1, -1});
  add(ops::Op::tanh, {0, -1, -1});  // nobody reads this
  add(ops::Op::neg, {1, -1, -1});
  program.outputs.push_back({3, -1});
  const compile::Plan plan = compile::make_plan(program, runtime::driver_of(DeviceType::cpu)->target());
  EXPECT_EQ(plan.program.values.size(), 3U);
}

TEST(Passes, RecomputeStoresNothingThatIsCheaperToComputeAgain) {
  const Tensor x = numbers({64, 1024});
  const Tensor w = numbers({1024, 64});
  Tensor y;
  Tensor z;
  const auto steps = steps_of([&] {
    const Tensor h = x * 2;  // read by a product, whose result meets a neighbour of h
    const Tensor s = sum(h, {0}, true);
    y = h - s;
  });
  // Column sums need a sweep of their own; the second sweep reads x again and no copy of h was kept.
  EXPECT_LE(bytes_of(steps), (3 * 64 * 1024 + 4 * 1024) * sizeof(float));
}

/// Gradients of eight layers, and the most memory that their computation takes.
struct DeepNetwork {
  std::vector<std::vector<float>> gradients;
  std::size_t peak = 0;

  DeepNetwork() {
    std::vector<Tensor> weights;
    for (int i = 0; i < 8; ++i) weights.push_back((numbers({256, 256}) * 0.01 * (i + 1)).detach().requires_grad_());
    Tensor x = numbers({512, 256});
    flush();
    reset_peak_memory(cpu);
    for (const Tensor& weight : weights) x = gelu(matmul(x, weight));
    sum(square(x)).backward();
    peak = peak_memory(cpu);
    for (const Tensor& weight : weights) gradients.push_back(weight.grad().to_vector<float>());
  }
};

TEST(Passes, RematerialiseKeepsWorkWithinTheLimit) {
  const DeepNetwork free;
  const std::size_t limit = free.peak * 2 / 3;
  set_memory_limit(limit);
  const DeepNetwork limited;
  set_memory_limit(std::nullopt);
  EXPECT_LE(limited.peak, limit);
  EXPECT_EQ(limited.gradients, free.gradients);
}

class Layouts : public testing::TestWithParam<DType> {};  // processors differ in what they take blocked

TEST_P(Layouts, AreChannelsLastBetweenConvolutions) {
  const Tensor x = numbers({4, 64, 16, 16}).to(GetParam());
  const Tensor w = numbers({64, 64, 3, 3}).to(GetParam());
  Tensor y;
  const auto steps = steps_of([&] {
    const Tensor h = conv2d(x, w, {}, {.padding = 1});
    y = sum(conv2d(exp(h) * 0.01, w, {}, {.padding = 1}));
  });
  // In channels-last order the middle is one run of memory a pixel, with nothing to reorder.
  bool found = false;
  for (const StepInfo& step : steps) found |= step.detail.find("group [65536] exp") != std::string::npos;
  EXPECT_TRUE(found);
  for (const StepInfo& step : steps) {
    if (step.detail.starts_with("convolution [4, 64, 16, 16]") && &step != &steps[0]) {
      EXPECT_EQ(count(step.kernel, "blocked"), 0) << step.kernel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Layouts, testing::Values(DType::float32, DType::bfloat16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Passes, BundleUpdatesAllParametersInOneStep) {
  std::vector<Tensor> parameters;
  std::vector<Tensor> expected;
  NoGrad no_grad;
  for (const std::int64_t size : {3, 1000, 70000}) {
    parameters.push_back(numbers({size}));
    expected.push_back((parameters.back().clone() * 0.75).clone());
  }
  flush();
  const auto steps = steps_of([&] {
    for (Tensor& parameter : parameters) parameter.sub_(parameter * 0.25);
  });
  EXPECT_EQ(steps.size(), 1U);
  for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_TRUE(allclose(parameters[i], expected[i]));
}

TEST(Passes, PlaceComputesPiecesWhereTheyBelong) {
  const Tensor x = numbers({60, 50});
  flush();
  Tensor whole;
  Tensor sums;
  const auto steps = steps_of([&] {
    const Tensor piece = exp(x);
    whole = cat({piece, softmax(x, 1), x * 2}, 1);
    sums = sum(piece, 0);  // reads the piece as it lies there
  });
  // One group reads x and writes each piece once; the sums read one of them.
  EXPECT_EQ(bytes_of(steps), (4 * 60 * 50 + 60 * 50 + 50) * sizeof(float));
  EXPECT_TRUE(allclose(whole.narrow(1, 0, 50), exp(x)));
  EXPECT_TRUE(allclose(whole.narrow(1, 100, 50), x * 2));
  EXPECT_TRUE(allclose(sums, sum(exp(x), 0)));
}

// As the update of a weight in mixed precision reads its gradient.
TEST(Passes, SimplifyTransposesTheFactorsOfAProductBehindACast) {
  const Tensor x = numbers({64, 32}).to(DType::bfloat16);
  const Tensor g = numbers({64, 16}).to(DType::bfloat16);
  const Tensor w = numbers({16, 32});
  flush();
  Tensor updated;
  const auto steps = steps_of([&] { updated = w - matmul(x.t(), g).t().to(DType::float32); });
  ASSERT_FALSE(steps.empty());
  EXPECT_NE(steps[0].detail.find("[16, 64] x [64, 32]"), std::string::npos) << steps[0].detail;
}

TEST(Passes, BundleKeepsTheOrderOfWhatDependsOnEachOther) {
  const Tensor x = numbers({2, 500});
  Tensor written = zeros({3, 500});
  Tensor total;
  const auto steps = steps_of([&] {
    written[0].copy_(x[0]);
    written[1].copy_(x[1]);
    total = matmul(written, x.t());  // needs both copies
    written[2].copy_(x[0]);          // must not be seen by the product
  });
  EXPECT_GE(steps.size(), 3U);
  EXPECT_TRUE(allclose(total[0], matmul(x[0].unsqueeze(0), x.t())[0]));
  EXPECT_TRUE(allclose(total[2], zeros({2})));
  EXPECT_TRUE(allclose(written[2], x[0]));
}

/// A device whose kernels take few arrays.
class FewAccesses final : public PlansAlone {
 public:
  static constexpr int most = 8;
  int max_accesses() const override { return most; }
};

TEST(Passes, FuseCountsEachViewOfAValue) {
  constexpr compile::ValueId columns = 16;
  const Strides dense = contiguous_strides({32});
  compile::Program program;
  program.values.push_back(
      {{{DType::float32, {32, columns}}, ops::Op::leaf, {}}, {-1, -1, -1}, -1, 0, contiguous_strides({32, columns})});
  program.leaves.push_back({0, false, false});
  // The columns of a matrix, each copied to an output of its own.
  for (compile::ValueId column = 0; column < columns; ++column) {
    const ops::View view{{columns}, column, false};
    program.values.push_back({{{DType::float32, {32}}, ops::Op::strided, view}, {0, -1, -1}, -1, -1, dense});
    program.outputs.push_back({1 + column, -1});
  }
  // And their sum, which reads them all.
  compile::ValueId sum = 1;
  for (compile::ValueId column = 1; column < columns; ++column) {
    program.values.push_back({{{DType::float32, {32}}, ops::Op::add, {}}, {sum, 1 + column, -1}, -1, -1, dense});
    sum = static_cast<compile::ValueId>(program.values.size() - 1);
  }
  program.outputs.push_back({sum, -1});
  const compile::Plan plan = compile::make_plan(std::move(program), FewAccesses());
  EXPECT_LT(plan.program.steps.size(), static_cast<std::size_t>(columns));
  for (const compile::Step& step : plan.program.steps) {
    EXPECT_LE(std::get<compile::Group>(step).accesses.size(), static_cast<std::size_t>(FewAccesses::most));
  }
}

compile::Group group_over(const Shape& space, ops::Op op) {
  compile::Group group;
  group.space = space;
  group.code.push_back({.op = op});
  return group;
}

TEST(Descriptions, OfBundlesSayWhatIsInThem) {
  compile::Primitive product;
  product.op = ops::Op::matmul;
  product.inputs.resize(2);
  product.inputs[0].sizes = {4, 8};
  product.inputs[1].sizes = {8, 2};
  product.output.sizes = {4, 2};
  compile::Primitive with_prologue = product;
  with_prologue.prologues[1] = group_over({8, 2}, ops::Op::exp);
  const compile::Bundle bundle{{group_over({64}, ops::Op::add), group_over({64}, ops::Op::add), product,
                                group_over({3, 5}, ops::Op::add), with_prologue, group_over({64}, ops::Op::mul)}};
  EXPECT_EQ(runtime::describe(bundle),
            "bundle of 6: 3 group [64] add in 2 sizes; 1 matmul [4, 8] x [8, 2] -> float32 [4, 2]; 1 matmul [4, 8] x "
            "[8, 2] -> float32 [4, 2] + prologue of input 1; 1 group [64] mul");
}

TEST(Descriptions, OfBundlesHaveALimit) {
  compile::Bundle bundle;
  for (std::size_t length = 1; length <= 20; ++length) {
    compile::Group group = group_over({64}, ops::Op::add);
    group.code.resize(length, group.code.front());
    bundle.members.insert(bundle.members.end(), {group, group});
  }
  const std::string text = runtime::describe(bundle);
  EXPECT_EQ(text.find("bundle of 40: 2 group [64] add; 2 group [64] add add; "), 0U) << text;
  EXPECT_EQ(count(text, "; "), 16);
  EXPECT_NE(text.find("; 4 further kinds"), std::string::npos) << text;
}

TEST(Views, ComposeOnlyWhereTheResultIsAffine) {
  using graph::compose_views;
  const Shape base_order{4, 6};
  const ops::View transposed{{1, 6}, 0, false};                                     // [6, 4] of a [4, 6] base
  const auto rows = compose_views({{4, 1}, 4, false}, {2, 4}, transposed, {6, 4});  // rows 1 and 2 of the transpose
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->strides, (Strides{1, 6}));
  EXPECT_EQ(rows->offset, 1);
  EXPECT_FALSE(compose_views({{1}, 0, false}, {24}, transposed, {6, 4}).has_value());  // flattened transpose
  const auto flat = compose_views({{1}, 0, false}, {24}, {{6, 1}, 0, false}, {4, 6});
  ASSERT_TRUE(flat.has_value());
  EXPECT_EQ(flat->strides, (Strides{1}));
}

}  // namespace
}  // namespace russet
