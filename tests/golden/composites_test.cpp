// Functions against PyTorch: names, defaults, values, types, shapes, gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calls/call.h"
#include "calls/function_table.h"

namespace golden {
namespace {

using russet::Device;
using russet::DType;

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float64: return 1e-9;
    case DType::float32: return 2e-5;
    case DType::float16: return 2e-3;
    case DType::bfloat16: return 1e-2;
    default: return 0;
  }
}

/// The sum of result * cotangent over all results that take part in a gradient, as the golden script makes it.
Tensor cotangent_sum(const Results& results, std::uint64_t offset) {
  Tensor total;
  for (const Tensor& result : results) {
    ++offset;
    if (!result.requires_grad()) continue;
    const Tensor cotangent = real(Call::seed, offset, result.sizes(), -1, 1, result.dtype(), result.device());
    const Tensor part = sum(result * cotangent);
    total = total.defined() ? total + part : part;
  }
  return total;
}

std::string compare_result(const Tensor& found, const Json& expected, DType floating) {
  const DType dtype = dtype_of(expected.at("t"), floating);
  if (found.dtype() != dtype) {
    return fmt::format("the type is {}, not {}", russet::name_of(found.dtype()), russet::name_of(dtype));
  }
  const russet::Shape shape = shape_of(expected.at("s"));
  if (found.sizes() != shape) return fmt::format("the shape is {}, not {}", to_string(found.sizes()), to_string(shape));
  return difference(found.to_vector<double>(), numbers(expected.at("v")), tolerance_of(dtype));
}

std::string compare_gradient(const Tensor& leaf, const Json& expected, DType floating) {
  const Tensor found = leaf.grad();
  const std::vector<double> zeros(static_cast<std::size_t>(leaf.numel()), 0.0);
  const std::vector<double> wanted = expected.is_null() ? zeros : numbers(expected);
  if (!found.defined()) return difference(zeros, wanted, 0);
  if (found.sizes() != leaf.sizes()) return fmt::format("its shape is {}", to_string(found.sizes()));
  return difference(found.to_vector<double>(), wanted, 5 * tolerance_of(floating));
}

void check(const Json& record, Function function, DType floating, Device device) {
  const Call call(record, floating, device);
  const Results results = function(call);
  const Json& expected = record.at("r");
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(compare_result(results[i], expected[i], floating), "") << "result " << i;
  }
  if (!record.contains("g")) return;
  const Tensor total = cotangent_sum(results, call.offset());
  ASSERT_TRUE(total.defined()) << "no result depends on an input";
  total.backward();
  for (std::size_t i = 0; i < call.leaves().size(); ++i) {
    EXPECT_EQ(compare_gradient(call.leaves()[i], record.at("g")[i], floating), "") << "gradient " << i;
  }
}

class Composites : public testing::TestWithParam<const char*> {
 protected:
  void run(const std::string& family) {
    for (const std::string& line : read_lines("composites_" + family + ".jsonl.gz")) {
      const Json record = Json::parse(line);
      const std::string name = record.at("f");
      const bool floats = line.find("\"float\"") != std::string::npos;
      for (const DType floating : {DType::float64, DType::float32}) {
        if (!floats && floating == DType::float64) continue;
        SCOPED_TRACE(fmt::format("{}{} in {} on {}", name, record.at("a").dump().substr(0, 400),
                                 russet::name_of(floating), GetParam()));
        try {
          check(record, function_named(name), floating, Device(GetParam()));
        } catch (const std::exception& error) {
          ADD_FAILURE() << "it throws: " << error.what();
        }
      }
    }
  }
};

TEST_P(Composites, Elementwise) { run("elementwise"); }
TEST_P(Composites, Reduction) { run("reduction"); }
TEST_P(Composites, Movement) { run("movement"); }
TEST_P(Composites, Indexing) { run("indexing"); }
TEST_P(Composites, Contraction) { run("contraction"); }
TEST_P(Composites, LinearAlgebra) { run("linalg"); }
TEST_P(Composites, Layers) { run("nn"); }
TEST_P(Composites, Warps) { run("warp"); }
TEST_P(Composites, Losses) { run("losses"); }
TEST_P(Composites, Creation) { run("creation"); }
TEST_P(Composites, Promotion) { run("promotion"); }
INSTANTIATE_TEST_SUITE_P(Devices, Composites, testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Composites, RefusesWhatPyTorchRefuses) {
  for (const std::string& line : read_lines("composites_errors.jsonl.gz")) {
    const Json record = Json::parse(line);
    SCOPED_TRACE(line);
    const Function function = function_named(record.at("f").get<std::string>());
    try {
      for (const Tensor& result : function(Call(record, DType::float64, {}))) result.to_bytes();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const russet::InternalError& error) {
      ADD_FAILURE() << "an internal error: " << error.what();
    } catch (const russet::Error&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not an error of russet: " << error.what();
    }
  }
}

}  // namespace
}  // namespace golden
