// An index that names nothing is an IndexError on every device, which says index, axis and size: at the call where the
// host can see the indices, else where they have been computed; and nothing is lost but what is made of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <functional>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

/// What the error of a call says when its result is read; empty if there is none.
std::string error_of(const std::function<Tensor()>& call) {
  try {
    const Tensor result = call();
    result.to_vector<double>();
  } catch (const IndexError& error) {
    return error.what();
  }
  return "";
}

/// Whether indices are in memory when they are used, or have to be computed first.
enum class Source { memory, computed };

class Indices : public testing::TestWithParam<std::string> {
 protected:
  Tensor floats(const Shape& sizes) const { return ones(sizes, {.device = device}); }
  Tensor index(const std::vector<std::int64_t>& numbers, Source source = Source::memory) const {
    const Tensor values = Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())}, device);
    return source == Source::memory ? values : values + Tensor::from<std::int64_t>({0}, {1}, device);
  }
  /// What whoever waits is told; empty if nothing.
  static std::string told() {
    try {
      synchronize();
    } catch (const IndexError& error) {
      return error.what();
    }
    return "";
  }

  const Device device{GetParam()};
};

struct Call {
  const char* name;
  std::function<Tensor(Source)> run;
  std::string axis_and_size;
};

TEST_P(Indices, ThatNameNothingAreErrors) {
  const Tensor x = floats({5, 3});
  const Tensor source = floats({4, 3});
  // Position 3 of axis 1 would be the next row's first element.
  const auto columns = [this](Source s) { return index({0, 3, 1, 2, 0}, s).unsqueeze(1); };
  const auto rows = [this](Source s) { return index({4, 5, 1, 0}, s); };
  const auto labels = [this](Source s) { return index({0, 1, 2, 3, 0}, s); };
  const std::vector<Call> calls = {
      {"index_select", [&](Source s) { return index_select(x, 0, rows(s)); },
       "5 is out of range for dimension 0 of size 5"},
      {"index_select on axis 1",
       [&](Source s) {
         return index_select(x, 1, index({0, 3}, s));
       },
       "3 is out of range for dimension 1 of size 3"},
      {"take",
       [&](Source s) {
         return take(x, index({3, 15}, s));
       },
       "15 is out of range for dimension 0 of size 15"},
      {"gather", [&](Source s) { return gather(x, 1, columns(s)); }, "3 is out of range for dimension 1 of size 3"},
      {"gather of negative ones",
       [&](Source s) {
         return gather(x, 1, index({0, -1, 1, 2, 0}, s).unsqueeze(1));
       },
       "-1 is out of range for dimension 1 of size 3"},
      {"take_along_dim", [&](Source s) { return take_along_dim(x, columns(s), 1); },
       "3 is out of range for dimension 1 of size 3"},
      {"embedding", [&](Source s) { return embedding(rows(s), x); }, "5 is out of range for dimension 0 of size 5"},
      {"index",
       [&](Source s) {
         return x.index({index({1, 2}, s), index({1, 3}, s)});
       },
       "3 is out of range for dimension 1 of size 3"},
      {"index from the end",
       [&](Source s) {
         return x.index({Slice{}, index({-1, -4}, s)});
       },
       "-4 is out of range for dimension 1 of size 3"},
      {"index_add", [&](Source s) { return index_add(x, 0, rows(s), source); },
       "5 is out of range for dimension 0 of size 5"},
      {"index_copy", [&](Source s) { return index_copy(x, 0, rows(s), source); },
       "5 is out of range for dimension 0 of size 5"},
      {"scatter",
       [&](Source s) {
         return scatter(x, 1, columns(s), floats({5, 1}));
       },
       "3 is out of range for dimension 1 of size 3"},
      {"scatter_add",
       [&](Source s) {
         return scatter_add(x, 0, index({7}, s).unsqueeze(1), floats({1, 1}));
       },
       "7 is out of range for dimension 0 of size 5"},
      {"one_hot",
       [&](Source s) {
         return one_hot(index({2, 3}, s), 3);
       },
       "3 is out of range for dimension 1 of size 3"},
      {"nll_loss", [&](Source s) { return nll_loss(x, labels(s)); }, "3 is out of range for dimension"},
      {"cross_entropy", [&](Source s) { return cross_entropy(x, labels(s)); }, "3 is out of range for dimension"},
  };
  flush();
  for (const Call& call : calls) {
    for (const Source source : {Source::memory, Source::computed}) {
      const std::string error = error_of([&] { return call.run(source); });
      EXPECT_NE(error.find(call.axis_and_size), std::string::npos)
          << call.name << (source == Source::memory ? "" : ", computed") << ": " << error;
      EXPECT_EQ(told(), "") << call.name;  // it has been said
    }
  }
}

TEST_P(Indices, InMemoryAreCheckedAtTheCall) {
  const Tensor x = floats({5, 3});
  flush();
  EXPECT_THROW(index_select(x, 0, index({1, 9})), IndexError);
  EXPECT_THROW(gather(x, 1, index({3}).unsqueeze(0)), IndexError);
  EXPECT_THROW(cross_entropy(x, index({0, 1, 2, 3, 0})), IndexError);
  EXPECT_THROW(x.index_put_({index({1}), index({3})}, floats({1})), IndexError);
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(15, 1));
}

/// Of as many that several threadgroups look at them, and several launches where launches are cut.
TEST_P(Indices, AmongManyAreFound) {
  const Tensor x = floats({5, 3});
  const Tensor source = floats({700, 3});
  flush();
  for (const Source from : {Source::memory, Source::computed}) {
    for (const std::size_t wrong : {0, 600}) {
      std::vector<std::int64_t> numbers(700, 4);
      numbers[wrong] = 5;
      numbers[650] = 9;
      const std::string error = error_of([&] { return index_select(x, 0, index(numbers, from)); });
      EXPECT_NE(error.find(fmt::format("index 5 is out of range for dimension 0 of size 5 (number {} of 700)", wrong)),
                std::string::npos)
          << error;
      EXPECT_NE(error_of([&] { return index_add(x, 0, index(numbers, from), source); }), "");
      numbers[wrong] = numbers[650] = 4;
      EXPECT_EQ(error_of([&] { return index_select(x, 0, index(numbers, from)); }), "");
    }
  }
}

TEST_P(Indices, ThatNameSomethingAreNone) {
  const Tensor x = floats({5, 3});
  for (const Source source : {Source::memory, Source::computed}) {
    EXPECT_EQ(error_of([&] { return index_select(x, 0, index({4, 0}, source)); }), "");
    EXPECT_EQ(error_of([&] { return index_add(x, 0, index({4, 0}, source), floats({2, 3})); }), "");
    EXPECT_EQ(error_of([&] { return cross_entropy(x, index({0, 1, 2, -100, 0}, source)); }), "");
    EXPECT_EQ(error_of([&] { return nll_loss(x, index({0, 1, 2, -100, 0}, source)); }), "");
    EXPECT_EQ(error_of([&] { return x.index({index({-5, 4}, source), index({-3, 2}, source)}); }), "");
    EXPECT_EQ(error_of([&] { return take(x, index({-15, 14}, source)); }), "");
  }
}

TEST_P(Indices, SpoilWhatIsMadeOfThemAlone) {
  const Tensor x = floats({5, 3});
  const Tensor counter = floats({2});
  flush();
  const Tensor before = x * 2;
  counter.add_(1);
  const Tensor bad = index_select(x, 0, index({9}, Source::computed));
  const Tensor derived = bad + 1;
  const Tensor beside = x * 3;
  const Tensor hurt = x * 4;
  hurt.add_(sum(bad));  // does not happen
  EXPECT_EQ(beside.to_vector<float>(), std::vector<float>(15, 3));
  EXPECT_NE(told(), "");
  EXPECT_EQ(told(), "");  // it has been said
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(error_of([&] { return bad; }), "");
    EXPECT_NE(error_of([&] { return derived; }), "");
  }
  EXPECT_NE(error_of([&] { return derived * 2; }), "");
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(15, 2));
  EXPECT_EQ(counter.to_vector<float>(), std::vector<float>(2, 2));
  EXPECT_EQ(hurt.to_vector<float>(), std::vector<float>(15, 4));
  bad.fill_(4);
  EXPECT_EQ((bad + 1).to_vector<float>(), std::vector<float>(3, 5));
  EXPECT_EQ(told(), "");
}

// As in two tables that the same bad index is looked up in: a loop that catches the first error goes on.
TEST_P(Indices, ThatFailTwiceInOneFlushAreToldOnce) {
  const Tensor x = floats({5, 3});
  const Tensor y = floats({5, 2});
  flush();
  const Tensor bad = index({9}, Source::computed);
  const Tensor first = index_select(x, 0, bad);
  const Tensor second = index_select(y, 0, bad);
  EXPECT_NE(error_of([&] { return first; }), "");
  EXPECT_EQ(told(), "");
  EXPECT_NE(error_of([&] { return second; }), "");
}

// Whoever read something else knows nothing of a failure yet.
TEST_P(Indices, ThatFailWhileSomethingElseIsReadAreToldLater) {
  const Tensor x = floats({5, 3});
  flush();
  const Tensor bad = index_select(x, 0, index({9}, Source::computed));
  EXPECT_EQ((x * 2).to_vector<float>(), std::vector<float>(15, 2));
  const Tensor worse = index_select(x, 0, index({8}, Source::computed));
  EXPECT_NE(error_of([&] { return worse; }), "");
  EXPECT_NE(told(), "");
  EXPECT_NE(error_of([&] { return bad; }), "");
}

TEST_P(Indices, ThatFailedWritesLeaveWhatThereWas) {
  const Tensor x = floats({4});
  x.mul_(2);
  x.mul_(3);
  x.add_(index_select(floats({3}), 0, index({0, 1, 2, 3}, Source::computed)));
  x.mul_(100);  // made of what failed
  EXPECT_NE(told(), "");
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, 6));
  x.add_(1);
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, 7));
  x.index_put_({index({1, 4}, Source::computed)}, floats({2}));
  EXPECT_NE(told(), "");
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, 7));
}

/// Of a write in parts the first may have happened in the memory itself when the second fails.
TEST_P(Indices, ThatFailLeaveEarlierPartsOfAWrite) {
  const Tensor x = floats({4, 2});
  const Tensor two = floats({2, 2}) * 2;
  flush();
  x.narrow(0, 0, 2).copy_(two);
  x.narrow(0, 2, 2).copy_(index_select(two, 0, index({0, 2}, Source::computed)));
  EXPECT_NE(told(), "");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 2, 2, 1, 1, 1, 1}));
}

/// Memory of a value that nobody would miss is not given to another, if somebody would after a failure.
TEST_P(Indices, ThatFailLateFindTheOldValuesInMemory) {
  const Tensor table = floats({3});
  for (const bool in_parts : {false, true}) {
    const Tensor x = floats({1000});
    flush();
    const Tensor y = in_parts ? x.clone() : x * 2;
    if (in_parts) y.narrow(0, 1, 999).fill_(2);
    x.copy_(index_select(table, 0, index(std::vector<std::int64_t>(1000, 3), Source::computed)));
    EXPECT_NE(told(), "");
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(1000, 1));
    EXPECT_EQ(y.to_vector<float>()[999], 2);
  }
}

TEST_P(Indices, AreDividedByNoZero) {
  const auto error_of_division = [](const std::function<Tensor()>& call) -> std::string {
    try {
      const Tensor result = call();
      result.to_vector<double>();
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  const Tensor x = index({6, 7, 8});
  const Tensor divisors = index({2, 0, 2}, Source::computed);
  for (const auto& divide :
       {std::function([](const Tensor&a, const Tensor&b) { return floor_divide(a, b); }),
        std::function([](const Tensor&a, const Tensor&b) { return fmod(a, b); }),
        std::function([](const Tensor&a, const Tensor&b) { return remainder(a, b); }),
        std::function([](const Tensor&a, const Tensor&b) { return div(a, b, RoundingMode::trunc); })}) {
    EXPECT_NE(error_of_division([&] { return divide(x, zeros({3}, {.dtype = DType::int64, .device = device})); }), "");
    const Tensor sum = x + divisors;
    const Tensor quotient = divide(sum, divisors);
    const Tensor beside = sum * 2;
    const std::string error = error_of_division([&] { return quotient * 3; });
    EXPECT_EQ(error == "", compiles_kernels(GetParam())) << error;  // GPUs give 0
    EXPECT_EQ(beside.to_vector<std::int64_t>(), (std::vector<std::int64_t>{16, 14, 20}));
    flush();
  }
  EXPECT_NE(error_of_division([&] { return floor_divide(x, 0); }), "");
  EXPECT_NE(error_of_division([&] { return remainder(x, 0); }), "");
  EXPECT_NE(error_of_division([&] { return fmod(x, 0); }), "");
  EXPECT_NE(error_of_division([&] { return div(x, 0, RoundingMode::trunc); }), "");
  EXPECT_EQ(error_of_division([&] { return floor_divide(x.to(DType::float32), 0); }), "");
}

TEST_P(Indices, OfMasksAreNoPositions) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3}, device);
  const Tensor bytes = Tensor::from<std::uint8_t>({0, 1, 1}, {3}, device);
  EXPECT_EQ(x.index({bytes}).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(x.index({bytes.to(DType::boolean)}).to_vector<float>(), (std::vector<float>{2, 3}));
  x.index_put_({bytes}, Scalar(9));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 9, 9}));
  const Tensor mask = bytes.to(DType::boolean);
  EXPECT_THROW(gather(x, 0, mask), TypeError);
  EXPECT_THROW(index_select(x, 0, mask), TypeError);
  EXPECT_THROW(take(x, mask), TypeError);
  EXPECT_THROW(embedding(mask, x.unsqueeze(1)), TypeError);
  EXPECT_THROW(cross_entropy(x.unsqueeze(0), mask[0].unsqueeze(0)), TypeError);
}

INSTANTIATE_TEST_SUITE_P(Devices, Indices, testing::ValuesIn(tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
