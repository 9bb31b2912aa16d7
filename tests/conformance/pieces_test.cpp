// Arrays that are put together: a device computes the pieces where they belong, and nothing else is written or read
// there. Products that share a factor, which a device may make one of, give what they give alone.
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

double bound_of(DType type) { return type == DType::float32 ? 1e-5 : 3e-2; }

class Pieces : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  /// On the simulator each kernel is compiled; kernels of other types differ in nothing but the type.
  std::vector<DType> types() const {
    if (device.type == DeviceType::mps) return {DType::float32};
    return {DType::float32, DType::bfloat16};
  }

  /// Expects the results of `program` to be the reference's, in float32 and bfloat16.
  template <class Program>
  void expect_as_reference(const Program& program) {
    for (const DType type : types()) {
      const auto run = [&](Device on) {
        restart();
        const Tensor x = numbers({96, 50}, on, type);
        const Tensor y = numbers({96, 50}, on, type);
        flush();
        return program(x, y);
      };
      EXPECT_EQ(difference(run(device), run(reference), bound_of(type)), "") << name_of(type);
    }
  }

  const Device device{GetParam()};
};

TEST_P(Pieces, AreRowsColumnsAndBlocks) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    const Tensor columns = cat({exp(x), relu(y), softmax(x, 1)}, 1);
    const Tensor rows = cat({tanh(x), softmax(y, 1)}, 0);
    const Tensor products = cat({matmul(x, y.t()), tanh(x), matmul(y, x.t())}, 1);
    const Tensor transposed = cat({exp(x).t(), tanh(y).t()}, 1);
    const Tensor blocks = stack({exp(x).reshape({2, 48, 50}), tanh(y).reshape({2, 48, 50})}, 2);
    return Results{columns, rows, products, transposed, blocks, sum(columns, 0), sum(rows, 1)};
  });
}

TEST_P(Pieces, AreReadByOthersToo) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    const Tensor piece = softmax(x, 1);
    const Tensor whole = cat({tanh(y), piece}, 1);
    return Results{whole, sum(piece, 0), sum(piece.reshape({48, 100}), 1), softmax(piece.t(), 0), matmul(piece, y.t())};
  });
}

// Random numbers are not drawn twice, so the sums read them where they lie: some views have strides there, some not.
TEST_P(Pieces, AreReadThroughViews) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    manual_seed(3);
    const Tensor piece = rand({96, 50}, {.dtype = DType::float32, .device = x.device()}).to(x.dtype());
    const Tensor other = rand({96, 50}, {.dtype = DType::float32, .device = x.device()}).to(x.dtype());
    const Tensor whole = cat({tanh(y), piece, relu(x), other}, 1);
    return Results{whole, sum(piece.t(), 1), sum(piece.reshape({96, 25, 2}), {0, 1}), sum(other.reshape({48, 100}), 1)};
  });
}

// What reads a piece goes along its memory, whose axes lie the other way round in the whole.
TEST_P(Pieces, AreReadWhereTheWholeIsTransposed) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    manual_seed(3);
    const Tensor piece = rand({96, 50}, {.dtype = DType::float32, .device = x.device()}).to(x.dtype());
    Tensor whole = empty({60, 96}, {.dtype = x.dtype(), .device = x.device()});
    whole.narrow(0, 0, 50).t().copy_(piece);
    whole.narrow(0, 50, 10).t().copy_(tanh(y.narrow(1, 0, 10)));
    return Results{whole, softmax(piece, 0), softmax(piece, 1), sum(piece, 0), sum(piece, 1)};
  });
}

TEST_P(Pieces, KeepTheirValuesWhenTheWholeIsWrittenTo) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    const Tensor piece = exp(x);
    Tensor whole = cat({piece, tanh(y)}, 1);
    whole.narrow(1, 20, 50).mul_(3);
    return Results{whole, piece, sum(piece, 0), piece.t() * y.t()};
  });
}

/// Memory for rows of 70 numbers.
Tensor rows_of_70(const Tensor& like) { return empty({96, 70}, {.dtype = like.dtype(), .device = like.device()}); }

TEST_P(Pieces, AreWrittenInTheirOrderWhereTheyOverlap) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    const Tensor last = tanh(y);
    const Tensor first = exp(x);
    Tensor whole = rows_of_70(x);
    whole.narrow(1, 0, 50).copy_(first);
    whole.narrow(1, 20, 50).copy_(last);
    return Results{whole};
  });
}

TEST_P(Pieces, KeepTheirValuesForOthersWhereTheWholeIsWrittenOver) {
  expect_as_reference([](const Tensor& x, const Tensor& y) {
    const Tensor piece = softmax(x, 1);
    Tensor whole = rows_of_70(x);
    whole.narrow(1, 0, 50).copy_(piece);
    whole.narrow(1, 20, 50).copy_(tanh(y));
    return Results{whole, sum(piece, 0)};
  });
}

// The gradients of query, key and value are pieces of the gradient of what one product made.
TEST_P(Pieces, AreGradientsOfAnAttention) {
  for (const DType type : types()) {
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers({4 * 40, 32}, on, type).requires_grad_();
      const Tensor w = (numbers({32, 96}, on, type) * 0.2).detach().requires_grad_();
      flush();
      in_one_plan([&] {
        std::vector<Tensor> heads;
        for (const Tensor& part : chunk(matmul(x, w), 3, 1)) {
          heads.push_back(part.reshape({4, 40, 2, 16}).permute({0, 2, 1, 3}));
        }
        const Tensor y = scaled_dot_product_attention(heads[0], heads[1], heads[2]);
        sum(y * y).backward();
      });
      return Results{x.grad(), w.grad(), sum(w.grad(), 0)};
    };
    EXPECT_EQ(difference(run(device), run(reference), type == DType::float32 ? 1e-4 : 5e-2), "") << name_of(type);
  }
}

// On a GPU of NVIDIA's these are large enough to become one.
TEST_P(Pieces, AreFactorsOfProductsThatAreOne) {
  const std::int64_t rows = device.type == DeviceType::cuda ? 1024 : 24;
  const std::int64_t depth = device.type == DeviceType::cuda ? 768 : 16;
  for (const DType type : {DType::float32, DType::bfloat16}) {
    for (const bool has_bias : {true, false}) {
      const auto run = [&](bool in_one) {
        restart();
        const Tensor x = numbers({rows, depth}, device).requires_grad_();
        std::vector<Tensor> weights, biases, results;
        for (int i = 0; i < 3; ++i) {
          weights.push_back((numbers({depth, depth}, device) * 0.05).detach().requires_grad_());
          biases.push_back(numbers({depth}, device).requires_grad_());
        }
        flush();
        const auto forward = [&] {
          for (std::size_t i = 0; i < 3; ++i) {
            results.push_back(tanh(linear(x.to(type), weights[i].to(type), has_bias ? biases[i].to(type) : Tensor())));
            if (!in_one) synchronize();
          }
        };
        if (in_one) {
          in_one_plan([&] {
            forward();
            sum((results[0] * results[1] * results[2]).to(DType::float32)).backward();
          });
        } else {
          forward();
          sum((results[0] * results[1] * results[2]).to(DType::float32)).backward();
        }
        Results all = results;
        for (const Tensor& weight : weights) all.push_back(weight.grad());
        if (has_bias) {
          for (const Tensor& bias : biases) all.push_back(bias.grad());
        }
        all.push_back(x.grad());
        Results kept;
        for (const Tensor& one : all) kept.push_back(one.detach().to(reference));
        return kept;
      };
      EXPECT_EQ(difference(run(true), run(false), type == DType::float32 ? 1e-4 : 5e-2), "") << name_of(type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Pieces, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace russet
