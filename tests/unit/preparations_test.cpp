// What evaluations compute of parameters alone: when it is computed, how long it is kept, and what happens where it
// cannot be. On a device whose kernels count and fail as told, and on the CPU.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/russet.h>

#include <cstdlib>
#include <thread>

#include "graph/keeping.h"
#include "graph/tensor_state.h"
#include "nothing.h"
#include "runtime/engine.h"
#include "small_program.h"

namespace russet {
namespace {

using graph::NodeRef;
using ops::Op;

constexpr std::int64_t n = 64;
const Shape sizes{n, n};
constexpr std::size_t wide_bytes = n * n * 4;
constexpr std::size_t narrow_bytes = n * n * 2;

/// How often casts and products ran, and which of the two fails.
struct Runs {
  int casts = 0;
  int products = 0;
  bool casts_fail = false;
  bool products_fail = false;
};

class Counted final : public compile::Kernel {
 public:
  Counted(Runs& runs, bool is_product) : runs_(runs), is_product_(is_product) {}
  void run(const compile::Bindings&) const override {
    if (is_product_) {
      if (runs_.products_fail) throw DeviceError("the product fails");
      ++runs_.products;
    } else {
      if (runs_.casts_fail) throw DeviceError("the cast fails");
      ++runs_.casts;
    }
  }
  std::string name() const override { return "counted"; }

 private:
  Runs& runs_;
  bool is_product_;
};

class CountingTarget final : public compile::Target {
 public:
  explicit CountingTarget(Runs& runs) : runs_(runs) {}
  std::unique_ptr<compile::Kernel> compile(const compile::Step& step) const override {
    return std::make_unique<Counted>(runs_, std::holds_alternative<compile::Primitive>(step));
  }

 private:
  Runs& runs_;
};

/// A device of `most` bytes.
class SmallDevice final : public runtime::DeviceDriver {
 public:
  runtime::DeviceProperties properties() const override { return {}; }
  const compile::Target& target() const override { return target_; }
  std::byte* allocate(std::size_t bytes) override {
    if (bytes > most - used) throw OutOfMemoryError("the device is full");
    used += bytes;
    return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  }
  void release(std::byte* memory, std::size_t bytes) override {
    used -= bytes;
    std::free(memory);  // NOLINT: that of aligned_alloc
  }
  void upload(std::byte*, std::span<const std::byte>) override {}
  void clear(std::byte*, std::size_t) override {}
  void download(std::span<std::byte>, const std::byte*) override {}

  Runs runs;
  std::size_t most = std::size_t{1} << 30;
  std::size_t used = 0;

 private:
  CountingTarget target_{runs};
};

/// y = x . (w in bfloat16), with a steady w.
class Evaluation : public ::testing::Test {
 public:
  Evaluation() = default;
  /// An engine of a program lives as long as that does, and gives back nothing when it ends.
  ~Evaluation() override { engine_.memory().drop_free(); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 protected:
  NodeRef leaf(DType dtype, bool persistent) {
    graph::NodeInfo info;
    info.dtype = dtype;
    info.shape = sizes;
    info.device = cpu;
    auto node = make_ref<graph::Node>(info, engine_.allocate(cpu, graph::byte_size(info)));
    if (persistent) node->mark_persistent();
    return node;
  }

  NodeRef computed(Op op, NodeRef a, NodeRef b = nullptr) {
    graph::NodeInfo info;
    info.op = op;
    info.dtype = DType::bfloat16;
    info.shape = sizes;
    info.device = cpu;
    return make_ref<graph::Node>(info, graph::NodeRefs{std::move(a), std::move(b), nullptr});
  }

  graph::Outcome run(const NodeRef& x, const NodeRef& w) {
    const NodeRef cast = computed(Op::cast, w);
    const NodeRef product = computed(Op::matmul, x, cast);
    graph::Work work;
    work.device = cpu;
    work.nodes.resize(4);
    const auto put = [&](std::size_t i, const NodeRef& node) { work.nodes[i].recorded = node.get(); };
    put(0, x), put(1, w), put(2, cast), put(3, product);
    work.nodes[0].leaf = work.nodes[1].leaf = true;
    work.nodes[1].steady = graph::is_steady(*w);
    work.nodes[2].inputs = {1, -1, -1};
    work.nodes[3].inputs = {0, 2, -1};
    work.nodes[3].output = true;
    graph::Outcome outcome;
    outcome.clear(work.nodes.size());
    engine_.execute(work, outcome);
    return outcome;
  }

  SmallDevice device_;
  runtime::Engine engine_{device_};
  Device cpu = DeviceType::cpu;
};

TEST_F(Evaluation, PreparesOnceForAValue) {
  const NodeRef x = leaf(DType::bfloat16, false);
  NodeRef w = leaf(DType::float32, true);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(run(x, w).failure, nullptr);
    EXPECT_EQ(device_.runs.casts, 1);
    EXPECT_EQ(device_.runs.products, i);
  }
  const NodeRef other = leaf(DType::float32, true);
  run(x, other);
  EXPECT_EQ(device_.runs.casts, 2);
  run(x, w);
  run(x, other);
  EXPECT_EQ(device_.runs.casts, 2) << "both are kept";
}

TEST_F(Evaluation, GoesWithTheValue) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const std::size_t before = engine_.memory().used();
  for (int i = 1; i <= 3; ++i) {
    const NodeRef w = leaf(DType::float32, true);
    run(x, w);
    EXPECT_EQ(device_.runs.casts, i);
    EXPECT_EQ(engine_.memory().used(), before + wide_bytes + narrow_bytes);
  }
  EXPECT_EQ(engine_.memory().used(), before);
}

TEST_F(Evaluation, GoesWhenTheValueBecomesVisible) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  const std::size_t with = engine_.memory().used();
  w->buffer()->pin();
  graph::drop_kept(*w);
  EXPECT_EQ(engine_.memory().used(), with - narrow_bytes);
  run(x, w);
  run(x, w);
  EXPECT_EQ(device_.runs.casts, 3);
}

TEST_F(Evaluation, MayFailAndIsTriedAgain) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  const std::size_t before = engine_.memory().used();
  device_.runs.casts_fail = true;
  {
    const graph::Outcome outcome = run(x, w);
    EXPECT_THROW(std::rethrow_exception(outcome.failure), DeviceError);
    EXPECT_EQ(outcome.culprits, std::vector<std::int32_t>{2}) << "the cast";
    EXPECT_EQ(outcome.results[3], nullptr);
  }
  EXPECT_EQ(device_.runs.products, 0);
  EXPECT_EQ(engine_.memory().used(), before);
  device_.runs.casts_fail = false;
  EXPECT_NE(run(x, w).results[3], nullptr);
  EXPECT_EQ(device_.runs.casts, 1);
}

// Memory that a device's failure lost is refused until something is written there again.
TEST_F(Evaluation, IsPreparedAnewOnceTheDeviceFailed) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  device_.runs.products_fail = true;
  EXPECT_NE(run(x, w).failure, nullptr);
  EXPECT_EQ(device_.runs.casts, 1);
  device_.runs.products_fail = false;
  EXPECT_EQ(run(x, w).failure, nullptr);
  EXPECT_EQ(device_.runs.casts, 2);
}

TEST_F(Evaluation, WithoutMemoryIsAnErrorAndGoesOn) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  device_.most = device_.used + narrow_bytes / 2;
  {
    const graph::Outcome outcome = run(x, w);
    EXPECT_THROW(std::rethrow_exception(outcome.failure), OutOfMemoryError);
    EXPECT_EQ(outcome.culprits, std::vector<std::int32_t>{2});
  }
  device_.most = device_.used + 2 * narrow_bytes;
  EXPECT_NE(run(x, w).results[3], nullptr);
}

// The result of another model's preparation is given up for memory that is needed now.
TEST_F(Evaluation, MakesWay) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  const NodeRef other = leaf(DType::float32, true);
  engine_.memory().drop_free();
  device_.most = device_.used + narrow_bytes;  // for the result, or for what is prepared
  EXPECT_NE(run(x, other).results[3], nullptr);
  EXPECT_EQ(device_.runs.casts, 2);
  EXPECT_NE(run(x, w).results[3], nullptr);
  EXPECT_EQ(device_.runs.casts, 3);
}

TEST_F(Evaluation, MakesWayForAValueWhereTheDeviceIsFull) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  engine_.memory().drop_free();
  device_.most = device_.used;
  EXPECT_NO_THROW(engine_.allocate(cpu, narrow_bytes));
  EXPECT_THROW(engine_.allocate(cpu, 2 * narrow_bytes), OutOfMemoryError);
}

TEST_F(Evaluation, KeepsNoMoreThanIsUsed) {
  const NodeRef x = leaf(DType::bfloat16, false);
  std::vector<NodeRef> parameters;
  for (int i = 0; i < 100; ++i) {
    parameters.push_back(leaf(DType::float32, true));
    run(x, parameters.back());
  }
  const std::size_t kept = engine_.memory().used() - narrow_bytes - parameters.size() * wide_bytes;
  EXPECT_LE(kept, 32 * narrow_bytes);
  EXPECT_GE(kept, narrow_bytes);
}

TEST_F(Evaluation, KeepsWhatIsUsed) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  // Those that are gone take no place of others.
  const auto more = [&](std::size_t count) {
    std::vector<NodeRef> leaves;
    while (leaves.size() < count) leaves.push_back(leaf(DType::float32, true));
    return leaves;
  };
  std::vector<NodeRef> gone = more(25);
  const std::vector<NodeRef> alive = more(25);
  for (const NodeRef& one : gone) run(x, one);
  gone.clear();
  for (const NodeRef& one : alive) run(x, one);
  run(x, w);
  EXPECT_EQ(device_.runs.casts, 51);
  // What was used last stays.
  std::vector<NodeRef> others;
  for (int i = 0; i < 50; ++i) {
    others.push_back(leaf(DType::float32, true));
    run(x, others.back());
    run(x, w);
  }
  EXPECT_EQ(device_.runs.casts, 101);
}

TEST_F(Evaluation, MakesWayUnderALimit) {
  const NodeRef x = leaf(DType::bfloat16, false);
  const NodeRef w = leaf(DType::float32, true);
  run(x, w);
  engine_.memory().set_limit(engine_.memory().used() + wide_bytes - narrow_bytes);
  const NodeRef other = leaf(DType::float32, true);
  engine_.memory().set_limit(std::nullopt);
  run(x, w);
  EXPECT_EQ(device_.runs.casts, 2) << "its result made way for a value";
  // Room for a result and what is prepared, if what is kept counts as room; buffers may be rounded up to 4 KiB.
  constexpr std::size_t slack = 12288;
  engine_.memory().set_limit(engine_.memory().used() + narrow_bytes + slack);
  const std::uint64_t plans = counters().plans_compiled;
  run(x, other);
  run(x, other);
  EXPECT_EQ(device_.runs.casts, 3);
  EXPECT_EQ(counters().plans_compiled, plans + 1) << "that of this limit";
}

using runtime::Preparations;

/// The plan of x . cast(w), for a batch of so many.
Preparations::PlanPtr preparation_of(std::int64_t samples, DType dtype = DType::bfloat16) {
  testing::SmallProgram program;
  const compile::ValueId x = program.leaf(dtype, {samples, n});
  const compile::ValueId w = program.leaf(DType::float64, sizes);
  program.program.leaves.back().steady = true;
  const compile::ValueId cast = program.add(Op::cast, dtype, sizes, {w});
  program.output(program.add(Op::matmul, dtype, {samples, n}, {x, cast}));
  return compile::make_plan(program.program, PlansAlone()).preparation;
}

TEST(Preparations, AreSharedByAlikeOnesOfAnEnvironment) {
  Preparations preparations;
  const auto first = preparations.shared(preparation_of(4), 1);
  EXPECT_EQ(preparations.shared(preparation_of(5), 1), first);
  EXPECT_NE(preparations.shared(preparation_of(4), 2), first);
  EXPECT_NE(preparations.shared(preparation_of(4, DType::float16), 1), first);  // of as many bytes
}

TEST_F(Evaluation, OfWhatIsVisibleMeanwhileIsNotKept) {
  const NodeRef w = leaf(DType::float32, true);
  Preparations preparations;
  const auto preparation = preparation_of(4);
  const Preparations::Sources sources{{w.get()}, {}};
  for (const bool is_visible : {false, true}) {
    if (is_visible) w->buffer()->pin();
    preparations.clear();
    preparations.keep(preparation, sources, {engine_.allocate(cpu, narrow_bytes)});
    EXPECT_EQ(preparations.find(*preparation, sources).size(), is_visible ? 0U : 1U);
  }
}

// What was kept with a value that stays goes when others are replaced, time and again.
TEST(Keeping, WhatIsOverIsLetGo) {
  class Over final : public graph::Keepsake {
   public:
    explicit Over(int& alive) : alive_(alive) { ++alive_; }
    ~Over() override { --alive_; }
    bool is_over() const override { return true; }

   private:
    int& alive_;
  };
  int alive = 0;
  {
    const graph::Node value(graph::NodeInfo{}, Ref<graph::Buffer>());
    for (int i = 0; i < 10; ++i) {
      graph::keep_with(value, make_ref<Over>(alive));
      EXPECT_EQ(alive, 1);
    }
  }
  EXPECT_EQ(alive, 0);
}

Tensor numbers(const Shape& shape, std::int64_t start = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    values.push_back(0.01F * static_cast<float>(((i + start) * 7919) % 101 - 50));
  }
  return Tensor::from(values, shape);
}

/// Two layers, of which evaluations in bfloat16 cast the parameters.
struct Model {
  Model() { flush(); }  // parameters are drawn
  nn::Sequential net{nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4)};

  std::vector<float> evaluate(const Tensor& x) {
    const NoGrad guard;
    const Autocast narrow(DType::bfloat16);
    return net(x).to(DType::float32).to_vector<float>();
  }
  /// Recorded as training does it.
  std::vector<float> in_grad_mode(const Tensor& x) {
    const Autocast narrow(DType::bfloat16);
    return net(x).detach().to(DType::float32).to_vector<float>();
  }
};

std::uint64_t kernels_of(const std::function<void()>& work) {
  flush();
  const std::uint64_t before = counters().kernels_run;
  work();
  return counters().kernels_run - before;
}

TEST(Preparation, FollowsTheParameters) {
  Model model;
  const Tensor x = numbers({8, 16});
  const auto evaluate = [&] { EXPECT_EQ(model.evaluate(x), model.in_grad_mode(x)); };
  const std::uint64_t first = kernels_of(evaluate);
  const std::uint64_t second = kernels_of(evaluate);
  EXPECT_LT(second, first);
  EXPECT_EQ(kernels_of(evaluate), second);
  std::int64_t start = 0;
  for (const Tensor& parameter : model.net.parameters()) {
    {
      const NoGrad guard;
      Tensor(parameter).copy_(numbers(parameter.sizes(), start += 11));
    }
    EXPECT_EQ(kernels_of(evaluate), first) << start;
    EXPECT_EQ(kernels_of(evaluate), second) << start;
  }
}

TEST(Preparation, IsSharedByBatchesOfAllSizes) {
  Model model;
  const auto evaluate = [&](std::int64_t samples) {
    return kernels_of([&] { model.evaluate(numbers({samples, 16})); });
  };
  const std::uint64_t first = evaluate(8);
  EXPECT_LT(evaluate(3), first);
  EXPECT_EQ(evaluate(3), evaluate(8));
}

TEST(Preparation, IsNoPartOfTraining) {
  Model model;
  optim::SGD optimizer(model.net.parameters(), {.lr = 0.1});
  const Tensor x = numbers({8, 16});
  const auto forward_and_backward = [&] {
    const Autocast narrow(DType::bfloat16);
    const Tensor loss = sum(square(model.net(x).to(DType::float32)));
    (void)loss.item<float>();  // they are plans of their own
    loss.backward();
  };
  forward_and_backward();
  optimizer.step();
  forward_and_backward();
  // Gradients add up: the parameters stay for several passes.
  const std::uint64_t kernels = kernels_of(forward_and_backward);
  const std::size_t used = memory_in_use(DeviceType::cpu);
  EXPECT_EQ(kernels_of(forward_and_backward), kernels);
  optimizer.step();
  EXPECT_EQ(kernels_of(forward_and_backward), kernels);
  EXPECT_EQ(memory_in_use(DeviceType::cpu), used);
}

/// x . w, whose backward pass multiplies with another matrix, made of a parameter that nothing on the tape reads.
struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    ctx->save_for_backward({w});
    return matmul(x, w);
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, const autograd::variable_list& g) {
    const Tensor w = ctx->get_saved_variables()[0];
    return {matmul(g[0], w * w), Tensor()};
  }
};

TEST(Preparation, IsNoPartOfABackwardPass) {
  const nn::Linear layer(16, 16);
  const Tensor w = layer.weight.detach();
  const Tensor x = numbers({8, 16}).requires_grad_();
  flush();
  const Tensor gradient = ones({8, 16});
  const auto kernels_of_backward = [&] {
    const Tensor y = Product::apply(x, w);
    (void)y.to_vector<float>();
    return kernels_of([&] { (void)autograd::grad({y}, {x}, {gradient})[0].to_vector<float>(); });
  };
  const std::uint64_t kernels = kernels_of_backward();
  EXPECT_EQ(kernels_of_backward(), kernels);
}

TEST(Preparation, IsNoPartOfWhatLearns) {
  const nn::Linear layer(4, 4);
  const Tensor w = layer.weight;
  const auto learns = [](const Tensor& x) { return graph::value_of(x)->learns(); };
  EXPECT_TRUE(learns(w * w));
  EXPECT_TRUE(learns(layer_norm(numbers({4, 4}), {4}, layer.bias)));
  EXPECT_FALSE(learns(numbers({4, 4}) * 2));
  const NoGrad guard;
  EXPECT_FALSE(learns(w * w));
  EXPECT_FALSE(learns(layer_norm(numbers({4, 4}), {4}, layer.bias)));
}

TEST(Preparation, GoesWithTheModel) {
  const std::size_t before = memory_in_use(DeviceType::cpu);
  for (int i = 0; i < 3; ++i) {
    Model model;
    model.evaluate(numbers({8, 16}));
  }
  flush();
  reset_peak_memory(DeviceType::cpu);
  EXPECT_LE(memory_in_use(DeviceType::cpu), before);
}

TEST(Preparation, OfCapturedEvaluationsFollowsTheParameters) {
  nn::Linear layer(8, 8);
  layer.eval();
  const NoGrad guard;
  const auto evaluate = [&](const Tensor& x) {
    const Autocast scope(DType::bfloat16);
    return layer(x).to(DType::float32);
  };
  CapturedFunction forward([&](const std::vector<Tensor>& inputs) { return std::vector{evaluate(inputs[0])}; });
  float* seen = nullptr;
  for (int i = 0; i < 16; ++i) {
    const Tensor x = numbers({4, 8}, i);
    if (i == 6) layer.weight.mul_(2);
    if (i == 10) seen = static_cast<float*>(static_cast<void*>(layer.weight.data()));
    if (i >= 10) seen[i] = static_cast<float>(i);  // what is visible outside changes unnoticed
    const std::vector<float> found = forward({x})[0].to_vector<float>();
    EXPECT_EQ(found, evaluate(x).to_vector<float>()) << i;
  }
  EXPECT_EQ(forward.replays(), 8U) << forward.why_recorded();
}

// One parameter, of which several things are made, by numbers that may change.
TEST(Preparation, IsOfWhatIsComputed) {
  const nn::Linear layer(16, 16);
  const Tensor w = layer.weight.detach();
  const Tensor x = numbers({8, 16});
  const NoGrad guard;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i) {
      const auto made = [&] { return i == 0 ? w * w : i == 1 ? w + w : i == 2 ? w + 0.5 : w + (2.0 + round); };
      const Tensor found = matmul(x, made());  // nobody else holds the factor when it is read
      const std::vector<float> product = found.to_vector<float>();
      const Tensor apart = made();
      (void)apart.data();
      EXPECT_EQ(product, matmul(x, apart).to_vector<float>()) << i;
    }
  }
}

TEST(Preparation, OfMemoryThatIsExportedGoes) {
  Model model;
  const Tensor x = numbers({8, 16});
  model.evaluate(x);
  model.evaluate(x);
  const std::size_t used = memory_in_use(DeviceType::cpu);
  for (const Tensor& parameter : model.net.parameters()) (void)parameter.data();
  EXPECT_LT(memory_in_use(DeviceType::cpu), used);
}

TEST(Preparation, IsSeenByWhoObservesPlans) {
  Model model;
  std::size_t steps = 0;
  observe_plans(DeviceType::cpu, [&](const PlanSummary& plan) { steps += plan.steps.size(); });
  const auto steps_of = [&] {
    steps = 0;
    model.evaluate(numbers({8, 16}));
    return steps;
  };
  const std::size_t first = steps_of();
  EXPECT_LT(steps_of(), first);
  observe_plans(DeviceType::cpu, {});
}

TEST(Preparation, OfThreadsSideBySide) {
  Model model;
  const Tensor x = numbers({8, 16});
  const std::vector<float> expected = model.evaluate(x);
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (bool& one : right) {
    threads.emplace_back([&] {
      one = true;
      for (int i = 0; i < 50; ++i) one = one && model.evaluate(x) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count(right, true), 4);
}

}  // namespace
}  // namespace russet
