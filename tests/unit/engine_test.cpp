// The path from recording to replay: what compiles, what is reused, what aliases, and what a failure leaves behind.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <thread>

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};

Tensor numbers(const Shape& shape, double scale = 0.01) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) values.push_back(static_cast<float>(scale * ((i * 7919) % 101 - 50)));
  return Tensor::from(values, shape);
}

TEST(Aliasing, WritesThroughViewsAreSeenByTheBase) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  x[1].add_(2);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 6, 7, 8}));
  x.t().reshape({-1}).zero_();  // a copy: transposed elements are not in order
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 6, 7, 8}));
  x.reshape({-1}).zero_();
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(6, 0));
}

TEST(Gradients, OnlyWhatLeadsToTheInputsIsWalked) {
  Tensor x = numbers({4});
  Tensor other = numbers({4}, 0.02);
  x.requires_grad_();
  other.requires_grad_();
  const Tensor branch = exp(other);
  sum(branch).backward();  // frees what the branch kept
  const Tensor y = sum(x * x + branch);
  const std::uint64_t before = counters().nodes_recorded;
  const Tensor gradient = autograd::grad({y}, {x}).front();
  const std::uint64_t walked = counters().nodes_recorded - before;
  EXPECT_EQ(gradient.to_vector<float>(), (x * 2).to_vector<float>());
  EXPECT_LT(walked, 12U);
  EXPECT_THROW(autograd::grad({sum(x * x + branch)}, {other}), AutogradError);
}

TEST(Gradients, AViewHasOneThoughOnlyAFurtherViewWasUsed) {
  Tensor x = numbers({6});
  x.requires_grad_();
  const Tensor v = (x * 2).reshape({2, 3});
  const Tensor used = v[1];
  const Tensor y = sum(used * used);
  const Tensor gradient = autograd::grad({y}, {v}, {}, {.retain_graph = true}).front();
  EXPECT_EQ(gradient[0].to_vector<float>(), std::vector<float>(3, 0));
  EXPECT_EQ(gradient[1].to_vector<float>(), (used.detach() * 2).to_vector<float>());
  y.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (gradient.reshape({-1}) * 2).to_vector<float>());
}

TEST(Gradients, ViewsRetainTheirOwn) {
  Tensor x = numbers({2, 3});
  x.requires_grad_();
  const Tensor v = x.t();
  v.retain_grad();
  const Tensor y = sum(v[0] * 3);
  y.backward({}, true);
  EXPECT_EQ(v.grad().to_vector<float>(), (std::vector<float>{3, 3, 0, 0, 0, 0}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 0, 0, 3, 0, 0}));
  y.backward();
  EXPECT_EQ(v.grad().to_vector<float>(), (std::vector<float>{6, 6, 0, 0, 0, 0}));  // accumulated, as PyTorch does
}

TEST(Gradients, ViewsOfExpandedTensorsAndLongChainsOfViews) {
  Tensor x = numbers({4});
  x.requires_grad_();
  const Tensor row = x.expand({3, 4})[1];
  sum(row * row).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (x.detach() * 2).to_vector<float>());
  x.set_grad({});
  Tensor turned = x.reshape({2, 2});
  for (int i = 0; i < 100'000; ++i) turned = turned.t();
  sum(turned[0] * 5).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{5, 5, 0, 0}));
}

TEST(Aliasing, ExportedMemoryFollowsWrites) {
  const Tensor x = numbers({4, 4});
  const auto* memory = static_cast<const float*>(x.data());
  x.fill_(3);
  EXPECT_EQ(memory[5], 3.0F);
  x[1].mul_(2);
  EXPECT_EQ(memory[5], 6.0F);
  EXPECT_EQ(x.data(), memory);
}

struct Net {
  nn::Linear first{20, 16};
  nn::Linear second{16, 4};
  Tensor operator()(const Tensor& x, bool training) { return second(dropout(relu(first(x)), 0.2, training)); }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const Tensor& p : first.parameters()) all.push_back(p);
    for (const Tensor& p : second.parameters()) all.push_back(p);
    return all;
  }
};

/// Steps of training, each as one plan or in two. Returns the parameters.
std::vector<Tensor> trained(bool in_one) {
  manual_seed(3);
  Net net;
  const std::vector<Tensor> parameters = net.parameters();
  optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
  const Tensor x = numbers({64, 20});
  const Tensor y = remainder(arange(64), 4);
  for (int step = 0; step < 3; ++step) {
    const auto train = [&] {
      cross_entropy(net(x, true), y).backward();
      optimizer.step();
      optimizer.zero_grad();
    };
    in_one ? in_one_plan(train) : train();
  }
  return parameters;
}

TEST(OnePlan, TrainsAsStepByStep) {
  const std::vector<Tensor> expected = trained(false);
  const std::vector<Tensor> actual = trained(true);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(allclose(actual[i], expected[i], 1e-6, 1e-6)) << i;
}

TEST(OnePlan, ComputesNothingBeforeItsEnd) {
  const Tensor w = numbers({64, 20}).requires_grad_();
  optim::SGD optimizer({w}, {.lr = 0.1});
  flush();
  const auto plans = [] {
    const Counters now = counters();
    return now.plans_compiled + now.cache_hits;
  };
  const std::uint64_t before = plans();
  in_one_plan([&] {
    in_one_plan([&] { sum(w * w).backward(); });
    optimizer.step();
    mark();
    EXPECT_EQ(plans(), before);
  });
  EXPECT_EQ(plans(), before + 1);
  in_one_plan([&] {
    const Tensor loss = sum(w * w);
    EXPECT_GT(loss.item(), 0);  // reading computes, here as everywhere
    loss.backward();
    EXPECT_EQ(plans(), before + 2);
  });
  EXPECT_EQ(plans(), before + 3);
}

TEST(OnePlan, EndsWithAnErrorOfItsWork) {
  Tensor sum_of_both;
  const Tensor x = numbers({4});
  EXPECT_THROW(in_one_plan([&] {
                 sum_of_both = x + x;
                 throw ValueError("no");
               }),
               ValueError);
  EXPECT_TRUE(allclose(sum_of_both, x * 2));
  const std::uint64_t before = counters().plans_compiled;
  const Tensor w = numbers({7}).requires_grad_();
  sum(w * w * w).backward();  // computes again
  EXPECT_EQ(counters().plans_compiled, before + 1);
}

TEST(Replay, ATrainingLoopCompilesNothingAfterThreeSteps) {
  Net net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const Tensor data = numbers({640, 20});
  const Tensor labels = remainder(arange(640), 4);
  std::uint64_t after_three = 0;
  for (int step = 0; step < 10; ++step) {
    optimizer.set_lr(0.1 / (step + 1));
    const std::int64_t start = 64 * step;
    const Tensor x = data.slice(0, {start, start + 64});
    const Tensor y = labels.slice(0, {start, start + 64});
    const Tensor loss = cross_entropy(net(x, true), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    {
      const NoGrad no_grad;
      const Tensor accuracy = mean(eq(argmax(net(x, false), 1), y).to(DType::float32));
      if (step % 2 == 0)
        flush();
      else
        (void)accuracy.item<float>();
    }
    if (step == 3) after_three = counters().plans_compiled;
  }
  EXPECT_EQ(counters().plans_compiled, after_three) << why_compiled();
}

TEST(Replay, ALoopThatNeverReadsStaysBounded) {
  const Tensor w = numbers({8, 8});
  Tensor x = numbers({8, 8});
  for (int step = 0; step < 200; ++step) {
    x = tanh(matmul(x, w));
    flush();
  }
  const std::size_t before = memory_in_use(cpu);
  const std::uint64_t plans = counters().plans_compiled;
  for (int step = 0; step < 2000; ++step) {
    x = tanh(matmul(x, w));
    flush();
  }
  EXPECT_EQ(counters().plans_compiled, plans) << why_compiled();
  EXPECT_LE(memory_in_use(cpu), before);
}

TEST(Replay, ManyShapesKeepCachesBoundedAndHit) {
  const Tensor data = numbers({64, 20});
  Net net;
  flush();  // the first weights
  const auto run = [&](std::int64_t batch) { return sum(net(data.slice(0, {0, batch}), false)).item<float>(); };
  for (std::int64_t batch = 1; batch <= 50; ++batch) run(batch);
  const std::uint64_t plans = counters().plans_compiled;
  for (int round = 0; round < 20; ++round) {
    for (std::int64_t batch = 1; batch <= 50; ++batch) run(batch);
  }
  EXPECT_EQ(counters().plans_compiled, plans);
}

TEST(Replay, TheSameProgramGivesTheSameBits) {
  const auto run = [] {
    manual_seed(7);
    const Tensor x = randn({128, 64});
    const Tensor w = (randn({64, 32}) * 0.1).detach().requires_grad_();
    sum(square(dropout(matmul(x, w), 0.3, true))).backward();
    return w.grad().to_bytes();
  };
  EXPECT_EQ(run(), run());
}

TEST(Memory, BytesAreVisitedInPieces) {
  const auto pieces = [](const Tensor& x, std::size_t most) {
    std::vector<std::size_t> sizes;
    std::vector<std::byte> all;
    x.visit_bytes(most, [&](std::span<const std::byte> piece) {
      sizes.push_back(piece.size());
      all.insert(all.end(), piece.begin(), piece.end());
    });
    EXPECT_EQ(all, x.to_bytes());
    return sizes;
  };
  const Tensor x = numbers({5, 2});
  EXPECT_EQ(pieces(x, 16), (std::vector<std::size_t>{16, 16, 8}));
  EXPECT_EQ(pieces(x.t(), 20), (std::vector<std::size_t>{20, 20}));
  EXPECT_EQ(pieces(x[3], 7), (std::vector<std::size_t>{7, 1}));
  EXPECT_EQ(pieces(x * 2, 1 << 20), (std::vector<std::size_t>{40}));
  EXPECT_TRUE(pieces(x.slice(0, {2, 2}), 4).empty());
  EXPECT_THROW(pieces(x, 0), ValueError);
}

TEST(Failure, ALimitOfAScopeEndsWithIt) {
  const Device device = DeviceType::null;
  {
    const MemoryLimit outer(2000, device);
    {
      const MemoryLimit inner({}, device);
      EXPECT_EQ(memory_limit(device), std::nullopt);
    }
    EXPECT_EQ(memory_limit(device), 2000U);
  }
  EXPECT_EQ(memory_limit(device), std::nullopt);
}

TEST(Failure, AMemoryLimitRefusesBeforeAnythingRuns) {
  const Tensor kept = numbers({16});
  flush();
  set_memory_limit(memory_in_use(cpu) + (std::size_t{1} << 20));
  EXPECT_THROW((void)sum(randn({1024, 1024}) * randn({1024, 1024}), DimList{0}).to_vector<float>(), OutOfMemoryError);
  EXPECT_EQ(kept.to_vector<float>().size(), 16U);
  EXPECT_NO_THROW((void)sum(randn({32, 32})).item<float>());  // the program goes on with less
  set_memory_limit(std::nullopt);
}

TEST(Failure, CellsKeepTheirLastValueWhenAFlushNeverStarted) {
  const Tensor x = numbers({16});
  const std::vector<float> before = x.to_vector<float>();
  set_memory_limit(memory_in_use(cpu) + (std::size_t{1} << 20));
  const Tensor large = randn({1024, 1024});
  x.add_(sum(large));
  EXPECT_THROW(flush(), OutOfMemoryError);
  set_memory_limit(std::nullopt);
  EXPECT_EQ(x.to_vector<float>(), before);
  EXPECT_THROW((void)large.to_vector<float>(), Error);
}

TEST(Failure, AnIndexThatIsComputedIsAnErrorWhenTheValueIsRead) {
  const Tensor table = numbers({5, 3});
  const Tensor rows = index_select(table, 0, Tensor::from<std::int64_t>({1, 7}, {2}) + 0);
  EXPECT_THROW((void)rows.to_vector<float>(), IndexError);
  EXPECT_EQ(table.to_vector<float>().size(), 15U);
}

TEST(Memory, WritesThroughDataChangeNothingThatWasMadeBefore) {
  const Tensor x = numbers({16});
  const std::vector<float> before = x.to_vector<float>();
  const Tensor doubled = x * 2;
  static_cast<float*>(x.data())[0] = 100;
  EXPECT_EQ(doubled.to_vector<float>()[0], before[0] * 2);
  EXPECT_EQ((x * 2).to_vector<float>()[0], 200);
}

TEST(Memory, WritesThroughDataReachWhatIsComputedOnceForAll) {
  // A parameter's cast to a narrow type is kept from step to step.
  nn::Linear layer(4, 1);
  const Tensor input = ones({1, 4});
  const auto output = [&] {
    const NoGrad guard;
    const Autocast narrow(DType::bfloat16);
    return layer(input).item<float>();
  };
  float* const weight = static_cast<float*>(layer.weight.data());
  for (int i = 0; i < 4; ++i) weight[i] = 1;
  layer.bias.detach().zero_();
  EXPECT_EQ(output(), 4);
  EXPECT_EQ(output(), 4);
  weight[0] = 5;
  EXPECT_EQ(output(), 8);
}

TEST(Failure, ShapesAndDevicesAreCheckedAtTheCall) {
  EXPECT_THROW(matmul(numbers({64, 128}), numbers({256, 10})), ShapeError);
  EXPECT_THROW(numbers({2}) + numbers({2}).to(Device("reference")), DeviceError);
  EXPECT_THROW(Device("quantum"), DeviceError);
  EXPECT_THROW(zeros({2}, {.device = Device("cuda")}), DeviceError);
}

TEST(Threads, EachRecordsForItself) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      Tensor x = full({100}, static_cast<double>(i));
      for (int step = 0; step < 50; ++step) x = x + 1;
      results[i] = sum(x).item<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], 100.0F * (static_cast<float>(i) + 50));
}

TEST(Null, PlansWithoutRunning) {
  plan_null_as(cpu);
  const Device null{DeviceType::null};
  reset_peak_memory(null);
  const Tensor x = zeros({1024, 1024}, {.device = null});
  const Tensor y = matmul(x, x);
  flush();
  EXPECT_GE(peak_memory(null), std::size_t{8} << 20);
}

}  // namespace
}  // namespace russet
