// The operator table and its rules, against PyTorch's shapes and types.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <set>
#include <string>
#include <vector>

#include "ops/cost.h"
#include "ops/table.h"

namespace russet::ops {
namespace {

constexpr DType f4 = DType::float32;
constexpr DType i8 = DType::int64;
constexpr DType b1 = DType::boolean;

Description infer_of(Op op, const std::vector<Description>& inputs, const Attributes& attributes = {},
                     const Description& given = {f4, {}}) {
  std::vector<const Description*> pointers;
  for (const Description& input : inputs) pointers.push_back(&input);
  return infer(op, pointers, attributes, given);
}

Shape shape_of(Op op, const std::vector<Description>& inputs, const Attributes& attributes = {},
               const Description& given = {f4, {}}) {
  return infer_of(op, inputs, attributes, given).shape;
}

DType type_of(Op op, const std::vector<DType>& types, const Attributes& attributes = {}) {
  std::vector<Description> inputs;
  for (const DType type : types) inputs.push_back({type, {2, 2}});
  return infer_of(op, inputs, attributes).dtype;
}

template <class Kind>
std::string message(Op op, const std::vector<Description>& inputs, const Attributes& attributes = {},
                    const Description& given = {f4, {}}) {
  try {
    infer_of(op, inputs, attributes, given);
  } catch (const Kind& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Table, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const OpRow& row : table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find(row.name), &row);
    EXPECT_EQ(&ops::row(row.op), &row);
    EXPECT_FALSE(row.documentation.empty());
    EXPECT_TRUE(row.documentation.ends_with('.')) << row.name;
    EXPECT_LE(row.inputs, static_cast<int>(max_inputs));
  }
  EXPECT_EQ(table().size(), static_cast<std::size_t>(op_count));
  EXPECT_EQ(find("frobnicate"), nullptr);
}

TEST(Operations, AreCountedAsTheRowSays) {
  const auto count = [](Op op, const std::vector<Shape>& inputs, const Shape& output, const Attributes& attributes = {},
                        const std::vector<Op>& companions = {}) {
    return operations(op, attributes, inputs, output, companions);
  };
  EXPECT_EQ(count(Op::exp, {{3, 4}}, {3, 4}), 12);
  EXPECT_EQ(count(Op::matmul, {{7, 3, 4}, {7, 4, 5}}, {7, 3, 5}), 2 * 7 * 3 * 5 * 4);
  const Shape x{2, 3, 8, 8}, weight{6, 3, 5, 5}, y{2, 6, 4, 4};
  const double convolution = 2 * (2 * 6 * 4 * 4) * (3 * 5 * 5);
  EXPECT_EQ(count(Op::convolution, {x, weight}, y), convolution);
  EXPECT_EQ(count(Op::convolution_input, {y, weight}, x), convolution);
  EXPECT_EQ(count(Op::convolution_weight, {x, y}, weight), convolution);
  const Shape rows{2, 10, 8}, keys{2, 12, 8}, values{2, 12, 16}, gradient{2, 10, 16}, statistics{2, 10, 1};
  const double product = 2 * 2 * 10 * 12;
  EXPECT_EQ(count(Op::attention, {rows, keys, values}, gradient, Attention{}), product * (8 + 16));
  EXPECT_EQ(count(Op::attention, {rows, keys, values}, gradient, Attention{}, {Op::attention_logsumexp}),
            product * (8 + 16));
  EXPECT_EQ(count(Op::attention_logsumexp, {rows, keys}, statistics, Attention{}), product * 8);
  const std::vector<Shape> read{rows, keys, values, gradient, statistics, statistics};
  EXPECT_EQ(count(Op::attention_query_gradient, read, rows, Attention{}), product * (2 * 8 + 16));
  EXPECT_EQ(count(Op::attention_key_gradient, read, keys, Attention{}), product * (2 * 8 + 16));
  EXPECT_EQ(count(Op::attention_key_gradient, read, keys, Attention{}, {Op::attention_value_gradient}),
            product * (2 * 8 + 2 * 16));
  EXPECT_EQ(count(Op::attention_key_gradient, read, keys, Attention{},
                  {Op::attention_value_gradient, Op::attention_query_gradient}),
            product * (3 * 8 + 2 * 16));
  EXPECT_EQ(count(Op::attention_value_gradient, {rows, keys, gradient, statistics}, values, Attention{}),
            product * (8 + 16));
}

TEST(Types, Follow) {
  EXPECT_EQ(type_of(Op::add, {DType::int8, DType::int8}), DType::int8);
  EXPECT_EQ(type_of(Op::lt, {f4, f4}), b1);
  EXPECT_EQ(type_of(Op::where, {b1, DType::float16, DType::float16}), DType::float16);
  EXPECT_EQ(type_of(Op::sum, {b1}, Axes{1}), i8);
  EXPECT_EQ(type_of(Op::sum, {DType::uint8}, Axes{1}), i8);
  EXPECT_EQ(type_of(Op::prod, {DType::bfloat16}, Axes{1}), DType::bfloat16);
  EXPECT_EQ(type_of(Op::cumsum, {DType::int32}, Axes{1}), i8);
  EXPECT_EQ(type_of(Op::amax, {DType::int16}, Axes{1}), DType::int16);
  EXPECT_EQ(type_of(Op::argmin, {f4}, Axes{1}), i8);
  EXPECT_EQ(type_of(Op::argsort, {f4}, Axes{1}), i8);
  EXPECT_EQ(type_of(Op::bitwise_not, {b1}), b1);
  EXPECT_EQ(infer_of(Op::take, {{f4, {3, 2}}, {DType::int32, {4}}}, Indexing{.lead = {4}}).dtype, f4);
  EXPECT_EQ(infer_of(Op::cast, {{f4, {3}}}, {}, {DType::int32, {}}).dtype, DType::int32);
  EXPECT_EQ(infer_of(Op::random_bits, {}, Seed{1}, {f4, {3}}).dtype, i8);
  EXPECT_EQ(infer_of(Op::uniform, {}, Seed{1}, {i8, {3}}).dtype, f4);
  EXPECT_EQ(infer_of(Op::iota, {}, {}, {DType::int32, {3, 2}}).dtype, DType::int32);
  const Window window{.kernel = {2, 2}, .stride = {2, 2}};
  EXPECT_EQ(infer_of(Op::max_pool, {{f4, {1, 1, 4, 4}}, {i8, {1, 1, 4, 4}}}, window).dtype, i8);
}

TEST(Types, AreRefused) {
  EXPECT_EQ(message<TypeError>(Op::add, {{f4, {2, 3}}, {i8, {3}}}),
            "add(float32 [2, 3], int64 [3]): the types differ: float32 and int64. Cast one of them with .to()");
  EXPECT_EQ(message<TypeError>(Op::exp, {{i8, {2}}}),
            "exp(int64 [2]): takes floating types, not int64. Cast with .to()");
  message<TypeError>(Op::neg, {{b1, {2}}});
  message<TypeError>(Op::sub, {{b1, {2}}, {b1, {2}}});
  message<TypeError>(Op::bitwise_and, {{f4, {2}}, {f4, {2}}});
  message<TypeError>(Op::where, {{f4, {2}}, {f4, {2}}, {f4, {2}}});
  message<TypeError>(Op::take, {{f4, {2}}, {f4, {2}}}, Indexing{.lead = {2}});
  message<TypeError>(Op::take, {{f4, {2}}, {b1, {2}}}, Indexing{.lead = {2}});
  message<TypeError>(Op::put, {{f4, {2}}, {DType::float64, {2}}, {i8, {2}}}, Indexing{.lead = {2}});
  message<TypeError>(Op::matmul, {{f4, {2, 2}}, {DType::float16, {2, 2}}});
  message<InternalError>(Op::add, {{f4, {2}}});
}

TEST(Shapes, Broadcast) {
  EXPECT_EQ(shape_of(Op::mul, {{f4, {4, 1}}, {f4, {3}}}), (Shape{4, 3}));
  EXPECT_EQ(shape_of(Op::where, {{b1, {5, 1, 1}}, {f4, {}}, {f4, {1, 0}}}), (Shape{5, 1, 0}));
  EXPECT_EQ(
      message<ShapeError>(Op::add, {{f4, {2, 3}}, {f4, {4}}}),
      "add(float32 [2, 3], float32 [4]): the shapes do not broadcast: [2, 3] and [4] (sizes 3 and 4 of dimension -1)");
  message<ShapeError>(Op::add, {{f4, {2}}, {f4, {0}}});
}

TEST(Shapes, Reductions) {
  EXPECT_EQ(shape_of(Op::sum, {{f4, {2, 3, 4}}}, Axes{0b101}), (Shape{1, 3, 1}));
  EXPECT_EQ(shape_of(Op::sum, {{f4, {2, 0}}}, Axes{0b10}), (Shape{2, 1}));
  EXPECT_EQ(shape_of(Op::sum, {{f4, {}}}, Axes{0}), Shape{});
  EXPECT_EQ(shape_of(Op::amax, {{f4, {0, 3}}}, Axes{0b10}), (Shape{0, 1}));
  EXPECT_EQ(shape_of(Op::argmax, {{f4, {2, 3}}}, Axes{0b11}), (Shape{1, 1}));
  EXPECT_EQ(shape_of(Op::argmax, {{f4, {}}}, Axes{0}), Shape{});
  message<ShapeError>(Op::amax, {{f4, {2, 0}}}, Axes{0b10});
  message<ShapeError>(Op::argmax, {{f4, {2, 3, 4}}}, Axes{0b011});
  message<IndexError>(Op::sum, {{f4, {2, 3}}}, Axes{0b100});
  message<InternalError>(Op::sum, {{f4, {2, 3}}});
}

TEST(Shapes, Matmul) {
  EXPECT_EQ(shape_of(Op::matmul, {{f4, {2, 3}}, {f4, {3, 5}}}), (Shape{2, 5}));
  EXPECT_EQ(shape_of(Op::matmul, {{f4, {7, 1, 2, 3}}, {f4, {1, 4, 3, 5}}}), (Shape{7, 4, 2, 5}));
  EXPECT_EQ(shape_of(Op::matmul, {{f4, {2, 0}}, {f4, {0, 5}}}), (Shape{2, 5}));
  EXPECT_EQ(message<ShapeError>(Op::matmul, {{f4, {64, 128}}, {f4, {256, 128}}}),
            "matmul: the inner sizes differ: [64, 128] x [256, 128] (128 and 256). Transpose the second factor?");
  message<ShapeError>(Op::matmul, {{f4, {3}}, {f4, {3}}});
  message<ShapeError>(Op::matmul, {{f4, {2, 2, 3}}, {f4, {3, 4}}});
  message<ShapeError>(Op::matmul, {{f4, {2, 2, 3}}, {f4, {3, 3, 4}}});
}

TEST(Shapes, Convolution) {
  // torch.nn.Conv2d(3, 64, 7, stride=2, padding=3) on 224 x 224
  const Window stem{.stride = {2, 2}, .padding = {3, 3}, .padding_after = {3, 3}};
  const Description image{f4, {8, 3, 224, 224}};
  const Description weight{f4, {64, 3, 7, 7}};
  const Description gradient{f4, {8, 64, 112, 112}};
  EXPECT_EQ(shape_of(Op::convolution, {image, weight}, stem), gradient.shape);
  EXPECT_EQ(shape_of(Op::convolution_input, {gradient, weight}, stem, image), image.shape);
  EXPECT_EQ(shape_of(Op::convolution_weight, {image, gradient}, stem, weight), weight.shape);
  // torch.nn.Conv2d(6, 4, (3, 2), stride=(1, 2), padding=(2, 0), dilation=(2, 3), groups=2) on 9 x 10
  const Window odd{.stride = {1, 2}, .padding = {2, 0}, .padding_after = {2, 0}, .dilation = {2, 3}, .groups = 2};
  EXPECT_EQ(shape_of(Op::convolution, {{f4, {1, 6, 9, 10}}, {f4, {4, 3, 3, 2}}}, odd), (Shape{1, 4, 9, 4}));
  message<ShapeError>(Op::convolution, {{f4, {1, 5, 9, 10}}, {f4, {4, 3, 3, 2}}}, odd);
  message<ShapeError>(Op::convolution, {{f4, {1, 6, 9, 10}}, {f4, {3, 3, 3, 2}}}, odd);
  message<ShapeError>(Op::convolution, {{f4, {6, 9, 10}}, {f4, {4, 3, 3, 2}}}, odd);
  message<ShapeError>(Op::convolution, {{f4, {1, 1, 2, 2}}, {f4, {1, 1, 3, 3}}}, Window{});
  message<ValueError>(Op::convolution, {image, weight}, Window{.stride = {0, 1}});
  message<ShapeError>(Op::convolution_input, {{f4, {8, 64, 111, 112}}, weight}, stem, image);
}

TEST(Shapes, Pooling) {
  const Window window{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .padding_after = {1, 1}};
  const Description x{f4, {2, 4, 112, 112}};
  const Description y{f4, {2, 4, 56, 56}};
  EXPECT_EQ(shape_of(Op::max_pool, {x, x}, window), y.shape);
  EXPECT_EQ(shape_of(Op::max_unpool, {x, y}, window), x.shape);
  EXPECT_EQ(shape_of(Op::sum_pool, {x}, window), y.shape);
  EXPECT_EQ(shape_of(Op::sum_unpool, {y}, window, x), x.shape);
  message<ShapeError>(Op::max_unpool, {x, x}, window);
  message<ShapeError>(Op::max_pool, {x, y}, window);
  message<ShapeError>(Op::sum_pool, {{f4, {4, 112, 112}}}, window);
}

TEST(Shapes, Views) {
  const Description x{f4, {4, 6}};
  EXPECT_EQ(shape_of(Op::strided, {x}, View{{1, 6}, 2, false}, {f4, {3, 4}}), (Shape{3, 4}));
  EXPECT_EQ(shape_of(Op::strided, {x}, View{{-1}, 23, false}, {f4, {24}}), (Shape{24}));
  EXPECT_EQ(shape_of(Op::strided, {x}, View{{0, 99}, 7, false}, {f4, {5, 0}}), (Shape{5, 0}));
  EXPECT_EQ(shape_of(Op::overwrite, {x, {f4, {4, 2}}}, View{{6, 1}, 4, false}), x.shape);
  message<IndexError>(Op::strided, {x}, View{{1}, 1, false}, {f4, {24}});
  message<IndexError>(Op::strided, {x}, View{{-1}, 22, false}, {f4, {24}});
  message<IndexError>(Op::strided, {x}, View{{2}, 0, true}, {f4, {13}});
  message<ShapeError>(Op::strided, {x}, View{{1}, 0, false}, {f4, {2, 2}});
  message<IndexError>(Op::overwrite, {x, {f4, {4, 2}}}, View{{6, 1}, 5, false});
}

TEST(Shapes, Indexing) {
  constexpr std::int8_t tensor = Indexing::by_tensor;
  EXPECT_EQ(shape_of(Op::take, {{f4, {9, 2, 3}}, {i8, {4, 5}}}, Indexing{.lead = {4, 5}}), (Shape{4, 5, 2, 3}));
  EXPECT_EQ(shape_of(Op::take, {{f4, {9}}, {i8, {}}}, Indexing{}), Shape{});
  EXPECT_EQ(shape_of(Op::put, {{f4, {9, 2}}, {f4, {5, 2}}, {i8, {5}}}, Indexing{.lead = {5}}), (Shape{9, 2}));
  const Indexing on_axis{.lead = {9, 5}, .axes = 2, .sources = {0, tensor}};
  EXPECT_EQ(shape_of(Op::take, {{f4, {9, 2, 3}}, {i8, {5}}}, on_axis), (Shape{9, 5, 3}));
  const Indexing both{.lead = {4, 5}, .axes = 2, .sources = {tensor, tensor}};
  EXPECT_EQ(shape_of(Op::take, {{f4, {9, 2, 3}}, {i8, {5}}, {i8, {4, 1}}}, both), (Shape{4, 5, 3}));
  message<ShapeError>(Op::take, {{f4, {}}, {i8, {4}}}, Indexing{.lead = {4}});
  message<ShapeError>(Op::take, {{f4, {9}}, {i8, {4}}}, Indexing{.lead = {3}});
  message<ShapeError>(Op::take, {{f4, {8, 2, 3}}, {i8, {5}}}, on_axis);
  message<InternalError>(Op::take, {{f4, {9, 2, 3}}, {i8, {5}}}, both);
  message<ShapeError>(Op::put, {{f4, {9, 2}}, {f4, {4, 2}}, {i8, {5}}}, Indexing{.lead = {5}});
  message<ShapeError>(Op::argsort, {{f4, {2, 3}}}, Axes{0b11});
  EXPECT_EQ(shape_of(Op::argsort, {{f4, {2, 3}}}, Axes{0b10, false, 2}), (Shape{2, 2}));
  message<ShapeError>(Op::argsort, {{f4, {2, 3}}}, Axes{0b10, false, 4});
  message<ShapeError>(Op::argsort, {{f4, {}}}, Axes{1, false, 1});
  EXPECT_EQ(shape_of(Op::cumsum, {{f4, {2, 3}}}, Axes{0b10}), (Shape{2, 3}));
  EXPECT_EQ(shape_of(Op::cumprod, {{f4, {2, 3}}}, Axes{0b01}), (Shape{2, 3}));
}

TEST(WindowOutput, Formula) {
  EXPECT_EQ(window_output(224, 7, 2, 3, 3, 1), 112);
  EXPECT_EQ(window_output(5, 3, 1, 0, 0, 2), 1);
  EXPECT_EQ(window_output(2, 3, 1, 0, 0, 1), 0);
  EXPECT_EQ(window_output(2, 3, 1, 0, 1, 1), 1);
}

}  // namespace
}  // namespace russet::ops
