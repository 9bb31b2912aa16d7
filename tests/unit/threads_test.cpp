// Threads record, differentiate, compile, run and read side by side: on tensors of their own, on one graph, on shared
// leaves. RUSSET_STRESS_SECONDS says how long the mixture of all runs (1 by default); the thread sanitizer looks on in
// `make tsan`.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

namespace russet {
namespace {

constexpr int thread_count = 8;

/// Calls work(number) on as many threads at once; the first exception is the test's failure.
template <class Work>
void side_by_side(int count, const Work& work) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::atomic<int> waiting{count};
  for (int number = 0; number < count; ++number) {
    threads.emplace_back([&, number] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        work(number);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(number)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

Tensor leaf_of(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).requires_grad_();
}

TEST(Threads, AddTheirGradientsOfASharedLeaf) {
  constexpr int rounds = 50;
  const Tensor leaf = leaf_of({1, 2, 3});
  const Tensor other = leaf_of({4, 5, 6});
  side_by_side(thread_count, [&](int number) {
    for (int round = 0; round < rounds; ++round) sum(leaf * other * Scalar(number + 1)).backward();
  });
  const float factor = rounds * thread_count * (thread_count + 1) / 2.0F;
  EXPECT_EQ(leaf.grad().to_vector<float>(), (std::vector<float>{4 * factor, 5 * factor, 6 * factor}));
  EXPECT_EQ(other.grad().to_vector<float>(), (std::vector<float>{factor, 2 * factor, 3 * factor}));
}

TEST(Threads, DifferentiateOneGraph) {
  constexpr int rounds = 20;
  const Tensor leaf = leaf_of({1, 2, 3});
  Tensor value = leaf;
  for (int i = 0; i < 50; ++i) value = value * 1.0 + leaf;
  const Tensor loss = sum(square(value));
  side_by_side(thread_count, [&](int) {
    for (int round = 0; round < rounds; ++round) loss.backward({}, true);
  });
  // value is 51 leaf, the gradient 2 * 51 * 51 leaf each time.
  const float factor = 2.0F * 51 * 51 * rounds * thread_count;
  EXPECT_EQ(leaf.grad().to_vector<float>(), (std::vector<float>{factor, 2 * factor, 3 * factor}));
}

TEST(Threads, DifferentiateWithoutLeavingGradients) {
  const Tensor leaf = leaf_of({1, 2, 3});
  const Tensor loss = sum(leaf * leaf * leaf);
  side_by_side(thread_count, [&](int) {
    for (int round = 0; round < 20; ++round) {
      const Tensor gradient = autograd::grad({loss}, {leaf}, {}, {.retain_graph = true})[0];
      EXPECT_EQ(gradient.to_vector<float>(), (std::vector<float>{3, 12, 27}));
    }
  });
  EXPECT_FALSE(leaf.grad().defined());
}

/// One graph can be used once: one thread frees it, all others are told so.
TEST(Threads, FreeOneGraphOnce) {
  for (int round = 0; round < 20; ++round) {
    const Tensor leaf = leaf_of({2});
    const Tensor loss = sum(exp(leaf) * leaf);
    std::atomic<int> told{0};
    side_by_side(thread_count, [&](int) {
      try {
        loss.backward();
      } catch (const AutogradError&) {
        ++told;
      }
    });
    const int differentiated = thread_count - told;
    EXPECT_GE(differentiated, 1);
  }
}

/// Hooks and a custom Function on a graph and a leaf that all threads share; some passes fail.
struct Tripled : autograd::Function<Tripled> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * 3;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, const autograd::variable_list& gradients) {
    ctx->saved_data["calls"] = 1;  // passes take turns
    return {gradients[0] * 3 + ctx->get_saved_variables()[0] * 0};
  }
};

TEST(Threads, RunHooksOfOneGraph) {
  constexpr int rounds = 30;
  const Tensor leaf = leaf_of({1, 2, 3});
  const Tensor value = Tripled::apply(leaf * 2);
  const Tensor loss = sum(value * value);
  std::atomic<int> seen{0}, accumulated{0};
  value.register_hook([&](const Tensor& gradient) {
    ++seen;
    return gradient * 2;
  });
  leaf.register_hook([](const Tensor& gradient) { return gradient * 0.5; });
  leaf.register_post_accumulate_grad_hook([&](const Tensor&) { ++accumulated; });
  side_by_side(thread_count, [&](int) {
    for (int round = 0; round < rounds; ++round) {
      HookHandle passing = value.register_hook([](const Tensor& gradient) { return gradient * 1.0; });
      loss.backward({}, true);
      passing.remove();
    }
  });
  EXPECT_EQ(seen, rounds * thread_count);
  EXPECT_EQ(accumulated, rounds * thread_count);
  const float factor = 2.0F * 36 * rounds * thread_count;
  EXPECT_EQ(leaf.grad().to_vector<float>(), (std::vector<float>{factor, 2 * factor, 3 * factor}));
}

TEST(Threads, ReadWhatAnotherHasRecorded) {
  for (int round = 0; round < 20; ++round) {
    Tensor shared = arange(1000).to(DType::float32);
    for (int i = 0; i < 20; ++i) shared = shared + 1;
    side_by_side(thread_count, [&](int number) {
      const Tensor own = shared * Scalar(number);
      EXPECT_EQ(own.to_vector<float>()[999], static_cast<float>(1019 * number));
      EXPECT_EQ(shared.to_vector<float>()[0], 20);
    });
  }
}

TEST(Threads, ViewOneTensor) {
  for (int round = 0; round < 20; ++round) {
    const Tensor leaf = leaf_of(std::vector<float>(64, 1));
    const Tensor doubled = leaf * 2;
    side_by_side(thread_count, [&](int number) {
      const Tensor part = doubled.reshape({8, 8})[number];
      sum(part * Scalar(number)).backward({}, true);
    });
    const std::vector<float> gradient = leaf.grad().to_vector<float>();
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], 2.0F * static_cast<float>(i / 8));
  }
}

TEST(Threads, FailByThemselves) {
  const Tensor table = ones({3, 2});
  const Tensor zero = Tensor::from<std::int64_t>({0}, {1});
  flush();
  side_by_side(thread_count, [&](int number) {
    for (int round = 0; round < 50; ++round) {
      const Tensor good = table * 2;
      const std::int64_t row = (round + number) % 5;
      const Tensor rows = index_select(table, 0, zero + row);
      try {
        EXPECT_EQ(sum(rows).item(), 2);
        EXPECT_LT(row, 3);
      } catch (const IndexError&) {
        EXPECT_GE(row, 3);
      }
      EXPECT_EQ(sum(good).item(), 12);
    }
  });
}

/// Everything at once, on tensors that all threads share and on their own.
class Mixture {
 public:
  Mixture() {
    for (int i = 0; i < 4; ++i) leaves_.push_back((rand({8, 8}) - 0.5).detach().requires_grad_());
    Tensor value = ones({8, 8});
    for (const Tensor& leaf : leaves_) value = tanh(matmul(value, leaf));
    loss_ = sum(value);
    loss_.to_bytes();
  }

  void run(unsigned seed, std::chrono::steady_clock::time_point end) {
    std::mt19937 random(seed);
    while (std::chrono::steady_clock::now() < end) {
      switch (random() % 8) {
        case 0: loss_.backward({}, true); break;
        case 1: train(random); break;
        case 2: compile(random); break;
        case 3: EXPECT_EQ(loss_.item(), loss_.item()); break;
        case 4: fail(random); break;
        case 5: leaves_[random() % leaves_.size()].grad(); break;
        case 6: views(random); break;
        default: sum(matmul(leaves_[random() % 4], leaves_[random() % 4])).backward(); break;
      }
      rounds += 1;
    }
  }

  std::atomic<int> rounds{0};

 private:
  /// A network of its own.
  static void train(std::mt19937& random) {
    nn::Linear layer(8, 4);
    optim::SGD optimizer(layer.parameters(), {.lr = 0.1, .momentum = 0.9});
    const Tensor x = rand({static_cast<std::int64_t>(1 + random() % 4), 8});
    for (int step = 0; step < 3; ++step) {
      in_one_plan([&] {
        sum(square(layer(x))).backward();
        optimizer.step();
        optimizer.zero_grad();
      });
    }
    EXPECT_EQ(layer.weight.to_vector<float>().size(), 32U);
  }

  /// A program of a shape that nobody has seen yet.
  static void compile(std::mt19937& random) {
    const auto size = static_cast<std::int64_t>(1 + random() % 200);
    Tensor value = ones({size});
    const std::size_t length = 1 + random() % 100;
    for (std::size_t i = 0; i < length; ++i) value = value + 1;
    EXPECT_EQ(sum(value).item(), static_cast<double>(size) * static_cast<double>(length + 1));
  }

  void fail(std::mt19937& random) const {
    const Tensor bad = index_select(leaves_[0], 0, Tensor::from<std::int64_t>({7}, {1}) + Scalar(random() % 2 ? 0 : 1));
    const Tensor good = leaves_[0].detach() * 2;
    try {
      bad.to_bytes();
    } catch (const IndexError&) {
    }
    EXPECT_EQ(good.to_vector<float>().size(), 64U);
  }

  void views(std::mt19937& random) const {
    const Tensor row = leaves_[random() % 4][static_cast<std::int64_t>(random() % 8)];
    sum(row * row.t()).backward();
    EXPECT_EQ(row.to_vector<float>().size(), 8U);
  }

  std::vector<Tensor> leaves_;
  Tensor loss_;
};

TEST(Threads, DoEverythingAtOnce) {
  const char* const seconds = std::getenv("RUSSET_STRESS_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 1);
  Mixture mixture;
  side_by_side(thread_count, [&](int number) { mixture.run(static_cast<unsigned>(number), end); });
  EXPECT_GT(mixture.rounds, thread_count);
  RecordProperty("rounds", mixture.rounds);
}

}  // namespace
}  // namespace russet
