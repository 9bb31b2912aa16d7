// What a tensor is asked that it cannot do is one error, which names the call; nothing crashes and nothing changes.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn.h>

#include <functional>

namespace russet {
namespace {

TEST(UndefinedTensors, AreRefusedByName) {
  const Tensor none;
  const Tensor x = ones({2}, {.requires_grad = true});
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"backward", [&] { none.backward(); }},
      {"is_leaf", [&] { static_cast<void>(none.is_leaf()); }},
      {"requires_grad_", [&] { Tensor().requires_grad_(); }},
      {"detach", [&] { none.detach(); }},
      {"grad", [&] { none.grad(); }},
      {"retain_grad", [&] { none.retain_grad(); }},
      {"set_grad", [&] { none.set_grad(x.detach()); }},
      {"set_data", [&] { none.set_data(x); }},
      {"set_data", [&] { x.detach().set_data(none); }},
      {"version", [&] { static_cast<void>(none.version()); }},
      {"item", [&] { none.item(); }},
      {"to_bytes", [&] { none.to_bytes(); }},
      {"visit_bytes", [&] { none.visit_bytes(1, [](std::span<const std::byte>) {}); }},
      {"data", [&] { none.data(); }},
      {"add", [&] { none + x; }},
      {"add", [&] { x + none; }},
      {"add_", [&] { x.detach().add_(none); }},
      {"cat",
       [&] {
         cat({x, none});
       }},
      {"autograd::grad", [&] { autograd::grad({none}, {x}); }},
      {"autograd::grad", [&] { autograd::grad({sum(x)}, {none}); }},
      {"index_select", [&] { index_select(x, 0, none); }},
      {"shares_storage", [&] { static_cast<void>(x.shares_storage(none)); }},
  };
  for (const auto& [name, call] : calls) EXPECT_THROW(call(), ValueError) << name;
  EXPECT_EQ(sum(x).item(), 2);
  sum(x * x).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Gradients, AreSetToWhatFits) {
  const Tensor x = ones({2, 3}, {.requires_grad = true});
  EXPECT_THROW(x.set_grad(ones({3, 2})), ValueError);
  EXPECT_THROW(x.set_grad(ones({2, 3}, {.dtype = DType::float64})), ValueError);
  EXPECT_THROW(x.set_grad(ones({2, 3}, {.device = Device("reference")})), ValueError);
  EXPECT_FALSE(x.grad().defined());
  x.set_grad(full({2, 3}, 5.0));
  sum(x).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(6, 6));
}

TEST(Data, IsSetToWhatFits) {
  const Tensor x = ones({2}, {.requires_grad = true});
  EXPECT_THROW(x.set_data(ones({2}, {.dtype = DType::int64})), Error);  // integers have no gradient
  const Tensor result = x * 2;
  EXPECT_THROW(result.set_data(ones({3})), Error);  // its gradient rule knows its shape
  EXPECT_EQ(result.to_vector<float>(), (std::vector<float>{2, 2}));
  x.set_data(full({2}, 3.0));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{3, 3}));
}

// Values and flags by PyTorch 2.11.
TEST(Views, MadeBeforeRequiresGradHaveNoHistory) {
  Tensor x = ones({4});
  const Tensor before = x.slice(0, {0, 2});
  x.requires_grad_();
  EXPECT_FALSE(before.requires_grad());
  EXPECT_TRUE(before.is_leaf());
  const Tensor after = x.slice(0, {0, 2});
  EXPECT_TRUE(after.requires_grad());
  sum(after * 3).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 3, 0, 0}));
  const NoGrad guard;
  before.add_(1);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 2, 1, 1}));
}

}  // namespace
}  // namespace russet
