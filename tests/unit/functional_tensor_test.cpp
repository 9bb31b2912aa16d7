// Functions on tensors against values worked out by hand: aliasing, placement, types, errors, printing.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace russet {
namespace {

using List = std::vector<double>;

constexpr Device device{DeviceType::reference};
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor floats(std::initializer_list<float> values, const Shape& shape) { return Tensor::from(values, shape, device); }
Tensor longs(std::initializer_list<std::int64_t> values, const Shape& shape) {
  return Tensor::from(values, shape, device);
}
Tensor count(const Shape& shape) { return arange(numel(shape), {.device = device}).reshape(shape); }
List of(const Tensor& x) { return x.to_vector<double>(); }

TEST(Views, WritesReachEveryAlias) {
  const Tensor x = zeros({2, 3}, {.device = device});
  x[1].add_(2);
  EXPECT_EQ(of(x), (List{0, 0, 0, 2, 2, 2}));
  x.t().reshape({-1}).zero_();  // a copy: the transpose has no view of one axis
  EXPECT_EQ(of(x), (List{0, 0, 0, 2, 2, 2}));
  x.slice(1, {.step = 2}).fill_(7);
  EXPECT_EQ(of(x), (List{7, 0, 7, 7, 2, 7}));
  x.reshape({-1}).zero_();
  EXPECT_EQ(of(x), (List{0, 0, 0, 0, 0, 0}));
  x.diagonal().copy_(floats({1, 2}, {2}));
  EXPECT_EQ(of(x), (List{1, 0, 0, 0, 2, 0}));
}

TEST(Views, SizesAndStridesAreThoseOfPyTorch) {
  const Tensor x = count({2, 3, 4});
  EXPECT_EQ(x.permute({2, 0, 1}).strides(), (Dims{1, 12, 4}));
  EXPECT_EQ(x.transpose(0, -1).sizes(), (Dims{4, 3, 2}));
  EXPECT_EQ(x.slice(2, {.start = 1, .step = 2}).strides(), (Dims{12, 4, 2}));
  EXPECT_EQ(x.slice(2, {.start = 1, .step = 2}).storage_offset(), 1);
  EXPECT_EQ(x.unsqueeze(-1).strides(), (Dims{12, 4, 1, 1}));
  EXPECT_EQ(x.select(1, -1).storage_offset(), 8);
  EXPECT_EQ(x.diagonal(1, 1, 2).sizes(), (Dims{2, 3}));
  EXPECT_EQ(x[0][1].expand({5, 4}).strides(), (Dims{0, 1}));
  EXPECT_EQ(count({7}).unfold(0, 3, 2).sizes(), (Dims{3, 3}));
  EXPECT_EQ(of(count({7}).unfold(0, 3, 2)), (List{0, 1, 2, 2, 3, 4, 4, 5, 6}));
  EXPECT_TRUE(x.view({6, 4}).shares_storage(x));
  EXPECT_THROW(x.transpose(0, 1).view({24}), ShapeError);
  EXPECT_THROW(x.reshape({5, -1}), ShapeError);
  EXPECT_THROW(x.select(0, 2), IndexError);
  EXPECT_THROW(x.slice(0, {.step = -1}), ValueError);
  EXPECT_THROW(x.as_strided({5, 5}, {5, 1}, 1), ShapeError);
}

TEST(Writes, ResultsMustFit) {
  const Tensor integers = longs({1, 2}, {2});
  EXPECT_THROW(integers.add_(0.5), TypeError);
  EXPECT_THROW(integers.div_(2), TypeError);
  EXPECT_THROW(integers.add_(floats({1, 2}, {2})), TypeError);
  EXPECT_THROW(floats({1}, {1}).add_(floats({1, 2}, {2})), ShapeError);
  EXPECT_EQ(of(integers.copy_(floats({1.7F, -1.7F}, {2}))), (List{1, -1}));
  const Tensor bools = full({2}, true, {.device = device});
  EXPECT_THROW(bools.add_(1), TypeError);
  EXPECT_EQ(of(floats({1, 2}, {2}).add_(integers, 3)), (List{4, -1}));
}

TEST(Promotion, CategoriesDecide) {
  const Tensor bytes = zeros({2}, {DType::uint8, device});
  const Tensor half = zeros({2}, {DType::float16, device});
  const Tensor wide_number = zeros({}, {DType::float64, device});
  EXPECT_EQ((bytes + 300).dtype(), DType::uint8);
  EXPECT_EQ((bytes + 1.5).dtype(), DType::float32);
  EXPECT_EQ((half + 1.5).dtype(), DType::float16);
  EXPECT_EQ((half + wide_number).dtype(), DType::float16);
  EXPECT_EQ((bytes + wide_number).dtype(), DType::float64);
  EXPECT_EQ((bytes / bytes).dtype(), DType::float32);
  EXPECT_EQ((1 - bytes).dtype(), DType::uint8);
  EXPECT_EQ((bytes == 1).dtype(), DType::boolean);
  EXPECT_EQ(where(bytes == 1, 1, 0).dtype(), DType::int64);
  EXPECT_EQ(where(bytes == 1, 1.0, bytes).dtype(), DType::float32);
  EXPECT_EQ(cat({bytes, half}).dtype(), DType::float16);
  EXPECT_THROW(add(bytes, bytes, 0.5), TypeError);
}

TEST(Elementwise, Corners) {
  EXPECT_EQ(of(div(longs({7, -7}, {2}), 2, RoundingMode::trunc)), (List{3, -3}));
  EXPECT_EQ(of(div(longs({7, -7}, {2}), 2, RoundingMode::floor)), (List{3, -4}));
  EXPECT_THROW(clamp(floats({1}, {1})), ValueError);
  EXPECT_EQ(of(copysign(floats({1, -2}, {2}), floats({-0.0F, 3}, {2}))), (List{-1, 2}));
  EXPECT_EQ(of(hypot(floats({3e30F, 0}, {2}), floats({4e30F, 0}, {2}))), (List{5e30F, 0}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(of(nan_to_num(floats({static_cast<float>(infinity), static_cast<float>(nan_value)}, {2}))),
            (List{most, 0}));
}

TEST(Indexing, AnIntegerTensorOfNoAxesIsANumber) {
  const Tensor x = zeros({3, 2});
  const Tensor one = scalar_tensor(1);
  const Tensor row = x.index({one});
  row.fill_(5);  // a view, as PyTorch's
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0, 5, 5, 0, 0}));
  EXPECT_THROW(x.index({scalar_tensor(3)}), IndexError);
}

TEST(Indexing, PlacesFollowPyTorch) {
  const Tensor x = count({2, 3, 4});
  const Tensor two = longs({1, 0}, {2});
  EXPECT_EQ(x.index({Slice{}, two}).sizes(), (Dims{2, 2, 4}));
  EXPECT_EQ(x.index({two, Slice{}, two}).sizes(), (Dims{2, 3}));  // apart: in front
  EXPECT_EQ(x.index({Slice{}, two, two}).sizes(), (Dims{2, 2}));  // adjacent: in place
  EXPECT_EQ(x.index({1, Slice{}, two}).sizes(), (Dims{3, 2}));    // an integer is no tensor
  EXPECT_EQ(x.index({NewAxis{}, Ellipsis{}, two}).sizes(), (Dims{1, 2, 3, 2}));
  EXPECT_EQ(of(x.index({two, Slice{}, two})), (List{13, 17, 21, 0, 4, 8}));
  EXPECT_EQ(of(x.index({Slice{}, longs({-1}, {1}), longs({0, -1}, {2})})), (List{8, 11, 20, 23}));
  EXPECT_EQ(of(x.index({x > 20})), (List{21, 22, 23}));
  EXPECT_EQ(of(x.index({longs({1}, {}), 0, 0})), (List{12}));
  EXPECT_THROW(x.index({0, 0, 0, 0}), IndexError);
  EXPECT_THROW(x.index({Ellipsis{}, Ellipsis{}}), IndexError);
  EXPECT_THROW(x.index({floats({1}, {1})}), TypeError);
  EXPECT_THROW(x.index({count({3}) > 1}), IndexError);
  EXPECT_THROW(x.index({longs({2}, {1})}).to_bytes(), IndexError);
}

TEST(Indexing, WritesFollowTheSameRules) {
  Tensor x = count({2, 3});
  x.index_put_({x > 3}, -1);
  EXPECT_EQ(of(x), (List{0, 1, 2, 3, -1, -1}));
  x.index_put_({longs({1, 0}, {2}), longs({0, 2}, {2})}, longs({10, 20}, {2}));
  EXPECT_EQ(of(x), (List{0, 1, 20, 10, -1, -1}));
  x.index_put_({0}, longs({1, 1, 1}, {3}), true);
  EXPECT_EQ(of(x), (List{1, 2, 21, 10, -1, -1}));
  x.index_put_({longs({0, 0}, {2})}, longs({5}, {1}), true);  // repeated: added twice
  EXPECT_EQ(of(x), (List{11, 12, 31, 10, -1, -1}));
  x.index_put_({Ellipsis{}, Slice{.start = 1}}, 0);
  EXPECT_EQ(of(x), (List{11, 0, 0, 10, 0, 0}));
  const Tensor rows = x.index({Slice{}, 0}) > 10;
  x.index_put_({rows}, longs({7, 8, 9}, {3}));  // a row for each place of the mask
  EXPECT_EQ(of(x), (List{7, 8, 9, 10, 0, 0}));
  x.index_put_({x > 8}, longs({1, 2}, {2}));  // a value for each: the mask is read
  EXPECT_EQ(of(x), (List{7, 8, 1, 2, 0, 0}));
  EXPECT_THROW(x.index_put_({0}, longs({1, 2}, {2})), ShapeError);
  EXPECT_THROW(x.index_put_({0}, floats({1, 2, 3}, {3})), TypeError);
}

TEST(Indexing, ReadsRefuseTheNullDevice) {
  const Tensor x = zeros({3}, {.device = DeviceType::null});
  EXPECT_THROW(nonzero(x), DeviceError);
  EXPECT_THROW(unique(x), DeviceError);
}

TEST(Einsum, Forms) {
  const Tensor a = count({2, 3});
  EXPECT_EQ(of(einsum("ij->j", {a})), (List{3, 5, 7}));
  EXPECT_EQ(of(einsum("ii", {count({3, 3})})), (List{12}));
  EXPECT_EQ(of(einsum("ij,kj", {a, a})), (List{5, 14, 14, 50}));
  EXPECT_EQ(of(einsum("...i,i->...", {a, longs({1, 0, 2}, {3})})), (List{4, 13}));
  EXPECT_EQ(of(einsum("ij,jk,k->i", {a, count({3, 2}), longs({1, 1}, {2})})), (List{23, 68}));
  EXPECT_EQ(of(einsum("i,j->ji", {longs({1, 2}, {2}), longs({3, 4}, {2})})), (List{3, 6, 4, 8}));
  EXPECT_THROW(einsum("ij,jk", {a}), ValueError);
  EXPECT_THROW(einsum("ij,jk->ik", {a, a}), ShapeError);
  EXPECT_THROW(einsum("i1->i", {a}), ValueError);
  EXPECT_THROW(einsum("ij->ik", {a}), ValueError);
}

TEST(Matmul, SaysWhatDoesNotFit) {
  const Tensor a = zeros({64, 128}, {.device = device});
  const Tensor b = zeros({10, 128}, {.device = device});
  try {
    matmul(a, b);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "matmul: the inner sizes differ: [64, 128] x [10, 128] (128 and 10). Transpose the second factor?");
  }
  EXPECT_THROW(matmul(a, zeros({}, {.device = device})), ShapeError);
  EXPECT_THROW(matmul(a, zeros({128, 2}, {DType::float64, device})), TypeError);
}

TEST(Ordering, TiesNanAndCounts) {
  const auto x = floats({2, static_cast<float>(nan_value), 1, 2}, {4});
  EXPECT_EQ(of(argsort(x)), (List{2, 0, 3, 1}));
  EXPECT_THROW(topk(x, 5), ValueError);
  EXPECT_EQ(of(bincount(longs({0, 2, 2}, {3}), {}, 5)), (List{1, 0, 2, 0, 0}));
  EXPECT_THROW(bincount(longs({-1}, {1})), ValueError);
}

/// Where std::lower_bound or std::upper_bound says, NaN counting as largest.
std::vector<std::int64_t> found_places(const std::vector<float>& sorted, const std::vector<float>& values, bool right) {
  const auto before = [](float a, float b) { return a < b || (!std::isnan(a) && std::isnan(b)); };
  std::vector<std::int64_t> places;
  for (const float value : values) {
    const auto place = right ? std::upper_bound(sorted.begin(), sorted.end(), value, before)
                             : std::lower_bound(sorted.begin(), sorted.end(), value, before);
    places.push_back(place - sorted.begin());
  }
  return places;
}

TEST(Ordering, SearchesFindEveryPlace) {
  const auto nan = static_cast<float>(nan_value);
  for (const std::int64_t size : {1, 3, 64, 128, 129, 255, 256, 1000}) {
    std::vector<float> sorted;
    for (std::int64_t i = 0; i < size; ++i) sorted.push_back(std::floor(static_cast<float>(i) / 3));
    sorted.back() = nan;
    std::vector<float> values = {nan, -INFINITY, INFINITY, -1};
    for (std::int64_t i = 0; i < 200; ++i) values.push_back(static_cast<float>(i * size % 701) / 2);
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor table = Tensor::from(sorted, {size}, device);
    for (const bool right : {false, true}) {
      const auto expected = found_places(sorted, values, right);
      EXPECT_EQ(searchsorted(table, Tensor::from(values, {count}, device), right).to_vector<std::int64_t>(), expected)
          << size;
      const Tensor rows = searchsorted(table.expand({4, size}), Tensor::from(values, {4, count / 4}, device), right);
      EXPECT_EQ(rows.to_vector<std::int64_t>(), expected) << size;
      EXPECT_EQ(rows.dtype(), DType::int64);
    }
    EXPECT_EQ(searchsorted(table, zeros({2, 0, 3}, {.device = device})).sizes(), (Shape{2, 0, 3}));
  }
}

TEST(Ordering, TheFirstAreThoseOfTheWholeOrder) {
  const Tensor x = floats({2, 1, static_cast<float>(nan_value), 1, 7, 2, 1, 0, 7, 3, -1, 4}, {12});
  for (const bool largest : {false, true}) {
    const Tensor order = argsort(x, -1, largest);
    for (std::int64_t k = 0; k <= 12; ++k) {
      const ValuesIndices first = topk(x, k, -1, largest);
      EXPECT_EQ(of(first.indices), of(order.narrow(0, 0, k))) << k;
      EXPECT_TRUE(allclose(first.values, index_select(x, 0, first.indices), 0, 0, true)) << k;
      if (largest || k == 0) continue;
      EXPECT_EQ(of(kthvalue(x, k).indices), of(order[k - 1])) << k;
    }
  }
}

TEST(Comparison, CloseAndEqual) {
  EXPECT_TRUE(allclose(floats({1, 2}, {2}), floats({1, 2.00001F}, {2})));
  EXPECT_FALSE(allclose(floats({1, 2}, {2}), floats({1, 2.001F}, {2})));
  const Tensor broken = floats({static_cast<float>(nan_value)}, {1});
  EXPECT_FALSE(allclose(broken, broken));
  EXPECT_TRUE(allclose(broken, broken, 1e-5, 1e-8, true));
  EXPECT_TRUE(equal(longs({1}, {1}), longs({1}, {1})));
  EXPECT_FALSE(equal(longs({1}, {1}), longs({1, 1}, {2})));
}

TEST(Print, AsPyTorch) {
  EXPECT_EQ(to_string(Tensor::from({1.0F, 2.0F, 3.5F}, {3})), "tensor([1.0000, 2.0000, 3.5000])");
  EXPECT_EQ(to_string(Tensor::from({1.0F, -2.0F}, {2, 1})), "tensor([[ 1.],\n        [-2.]])");
  EXPECT_EQ(to_string(Tensor::from({true, false}, {2})), "tensor([ True, False])");
  EXPECT_EQ(to_string(Tensor::from({1e-5F, 3.0F}, {2})), "tensor([1.0000e-05, 3.0000e+00])");
  EXPECT_EQ(to_string(Tensor::from<std::int64_t>({7}, {})), "tensor(7)");
  EXPECT_EQ(to_string(Tensor::from<std::int64_t>({9007199254740993, -9223372036854775807}, {2})),
            "tensor([    9007199254740993, -9223372036854775807])");
  EXPECT_EQ(to_string(Tensor::from({1.0F}, {1}, {}, true)), "tensor([1.], requires_grad=True)");
  EXPECT_EQ(to_string(zeros({0, 2})), "tensor([], size=(0, 2))");
  EXPECT_EQ(to_string(arange(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
}

}  // namespace
}  // namespace russet
