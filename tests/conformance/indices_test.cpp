// An index that names no row is an IndexError on every device: where the operator runs, or on a device of its own pace
// for the first one who waits or reads anything, and for whoever reads its result or what was made of that.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <functional>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

class Indices : public testing::TestWithParam<std::string> {
 protected:
  Tensor floats(const Shape& sizes) const { return ones(sizes, {.device = device}); }
  Tensor rows(const std::vector<std::int64_t>& numbers) const {
    return Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())}, device);
  }
  /// Whether whoever waited was told.
  static bool waits_in_vain() {
    try {
      synchronize();
    } catch (const IndexError&) {
      return true;
    }
    return false;
  }

  const Device device{GetParam()};
  /// Whether flushes do not wait.
  const bool late = compiles_kernels(GetParam());
};

/// What the error of a call says when its result is read; empty if there is none.
template <class Expected = IndexError, class Call>
std::string error_of(const Call& call) {
  try {
    const Tensor result = call();
    result.to_vector<double>();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

TEST_P(Indices, ThatNameNoRowAreErrors) {
  const Tensor x = floats({5, 3});
  const Tensor index = rows({4, 5, 1, -1});
  const Tensor source = floats({4, 3});
  const std::vector<std::pair<const char*, std::function<Tensor()>>> calls = {
      {"index_select", [&] { return index_select(x, 0, index); }},
      {"take",
       [&] {
         return take(x.flatten(), rows({3, 15}));
       }},
      {"gather", [&] { return gather(x, 0, index.unsqueeze(1)); }},
      {"embedding", [&] { return embedding(index, x); }},
      {"index_add", [&] { return index_add(x, 0, index, source); }},
      {"index_copy", [&] { return index_copy(x, 0, index, source); }},
      {"scatter",
       [&] {
         return scatter(x, 0, rows({7}).unsqueeze(1), floats({1, 1}));
       }},
      {"scatter_add",
       [&] {
         return scatter_add(x, 0, rows({7}).unsqueeze(1), floats({1, 1}));
       }},
      {"one_hot",
       [&] {
         return one_hot(rows({2, 3}), 3);
       }},
      {"cross_entropy",
       [&] {
         return cross_entropy(x, rows({0, 1, 2, 3, 0}));
       }},
      {"nll_loss",
       [&] {
         return nll_loss(x, rows({0, 1, 2, -1, 0}));
       }},
  };
  flush();
  for (const auto& [name, call] : calls) {
    const std::string error = error_of(call);
    EXPECT_NE(error.find(" is out of range for "), std::string::npos) << name << ": " << error;
    EXPECT_TRUE(error.starts_with("take: index") || error.starts_with("put: index")) << name << ": " << error;
    EXPECT_FALSE(waits_in_vain()) << name;  // it has been said
  }
  const std::string error = error_of(calls[0].second);
  EXPECT_NE(error.find("number 1 of 4"), std::string::npos) << error;
  EXPECT_NE(error.find(" is out of range for 5 rows"), std::string::npos) << error;
}

/// Of as many that several threadgroups look at them, and several launches where launches are cut.
TEST_P(Indices, AmongManyAreFound) {
  const Tensor x = floats({5, 3});
  const Tensor source = floats({700, 3});
  flush();
  for (const std::size_t wrong : {0, 600}) {
    std::vector<std::int64_t> numbers(700, 4);
    numbers[wrong] = 5;
    numbers[650] = 9;
    const Tensor index = rows(numbers);
    const std::string error = error_of([&] { return index_select(x, 0, index); });
    EXPECT_NE(error.find("number " + std::to_string(wrong) + " of 700"), std::string::npos) << error;
    EXPECT_NE(error_of([&] { return index_add(x, 0, index, source); }), "");
    numbers[wrong] = numbers[650] = 4;
    EXPECT_EQ(error_of([&] { return index_select(x, 0, rows(numbers)); }), "");
  }
}

TEST_P(Indices, ThatNameRowsAreNone) {
  const Tensor x = floats({5, 3});
  EXPECT_EQ(error_of([&] { return index_select(x, 0, rows({4, 0})); }), "");
  EXPECT_EQ(error_of([&] { return index_add(x, 0, rows({4, 0}), floats({2, 3})); }), "");
  EXPECT_EQ(error_of([&] { return cross_entropy(x, rows({0, 1, 2, -100, 0})); }), "");
}

TEST_P(Indices, SpoilWhatIsMadeOfThemAlone) {
  if (!late) GTEST_SKIP() << "the flush itself throws";
  const Tensor x = floats({5, 3});
  const Tensor before = x * 2;
  flush();
  const Tensor bad = index_select(x, 0, rows({9}));
  flush();
  const Tensor beside = x * 3;
  flush();
  const Tensor derived = bad + 1;
  EXPECT_TRUE(waits_in_vain());
  EXPECT_FALSE(waits_in_vain());  // it has been said
  EXPECT_NE(error_of<Error>([&] { return derived; }), "");
  EXPECT_NE(error_of([&] { return bad; }), "");
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(15, 2));
  EXPECT_EQ(beside.to_vector<float>(), std::vector<float>(15, 3));
  bad.fill_(4);
  EXPECT_EQ((bad + 1).to_vector<float>(), std::vector<float>(3, 5));
  EXPECT_FALSE(waits_in_vain());
}

INSTANTIATE_TEST_SUITE_P(Devices, Indices, testing::ValuesIn(tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
