// The pass recompute: what is cheaper to compute again than to store and load is in no memory. What is cheaper is the
// device's to say.
#include <gtest/gtest.h>

#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;

class Costs final : public PlansAlone {
 public:
  explicit Costs(double cost) : cost_(cost) {}
  double cost_of_operations() const override { return cost_; }

 private:
  double cost_;
};

constexpr double of_a_core = 1;
constexpr double of_a_gpu = 0.1;
const Shape square{64, 64};

class Network : public testing::SmallProgram {
 public:
  ValueId matrix(DType dtype = DType::float32) { return leaf(dtype, square); }
  ValueId product(ValueId a) { return add(Op::matmul, DType::float32, square, {a, matrix()}); }
  ValueId zero() { return add(Op::constant, DType::float32, square, {}, ops::Number{}); }

  /// How many values groups store.
  int stores(double cost) const {
    const compile::Plan plan = compile::make_plan(program, Costs(cost));
    int count = 0;
    for (const compile::Step& step : plan.program.steps) {
      const auto* group = std::get_if<compile::Group>(&step);
      if (group == nullptr) continue;
      for (const compile::Instruction& in : group->code) count += in.kind == compile::Instruction::Kind::store;
    }
    return count;
  }
};

// erf(h) is read before a product and after it, where h would have to be loaded.
TEST(Recompute, WeighsOperationsAgainstMemoryAsTheDeviceDoes) {
  Network network;
  const ValueId h = network.product(network.matrix());
  const ValueId e = network.add(Op::erf, DType::float32, square, {h});
  const ValueId y = network.add(Op::mul, DType::float32, square, {h, e});
  network.output(network.add(Op::mul, DType::float32, square, {network.product(y), e}));
  EXPECT_EQ(network.stores(of_a_core), 3);  // e, y and the output
  EXPECT_EQ(network.stores(of_a_gpu), 2);
}

// relu(h) lies in memory for a product. Who loads h computes it again rather than loading it, or where it is zero.
TEST(Recompute, ComputesWhatLiesInMemoryFromWhatIsLoaded) {
  Network network;
  const ValueId h = network.product(network.matrix());
  const ValueId y = network.add(Op::maximum, DType::float32, square, {h, network.zero()});
  const ValueId is_zero = network.add(Op::le, DType::boolean, square, {y, network.zero()});
  const ValueId slope = network.product(network.product(y));
  const ValueId kept = network.add(Op::where, DType::float32, square, {is_zero, network.zero(), slope});
  network.output(network.add(Op::mul, DType::float32, square, {kept, h}));
  EXPECT_EQ(network.stores(of_a_core), 2);  // y and the output
  EXPECT_EQ(network.stores(of_a_gpu), 2);
}

}  // namespace
}  // namespace russet
