// Functions that write in place, each on a copy of its first argument.
#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

template <const Tensor& (*F)(const Tensor&)>
Results one(const Call& c) {
  return {F(c.tensor(0).clone())};
}

template <class F>
Results written(const Call& c, F write) {
  const Tensor x = c.tensor(0).clone();
  write(x);
  return {x};
}

void add_arithmetic(Functions& table) {
  table.insert_or_assign("neg_", one<neg_>);
  table.insert({{"exp_", one<exp_>},
                {"sqrt_", one<sqrt_>},
                {"reciprocal_", one<reciprocal_>},
                {"sigmoid_", one<sigmoid_>},
                {"tanh_", one<tanh_>}});
  table["add_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.add_(c.tensor(1), c.scalar(2)); }); };
  table["sub_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.sub_(c.tensor(1), c.scalar(2)); }); };
  table["mul_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.mul_(c.tensor(1)); }); };
  table["div_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.div_(c.tensor(1)); }); };
  table["copy_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.copy_(c.tensor(1)); }); };
  table["fill_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.fill_(c.scalar(1)); }); };
  table["zero_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { x.zero_(); }); };
  table["pow_"] = [](const Call& c) { return written(c, [&](const Tensor& x) { pow_(x, c.scalar(1)); }); };
  table["clamp_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { clamp_(x, c.scalar(1), c.scalar(2)); });
  };
  table["lerp_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { lerp_(x, c.tensor(1), c.scalar(2)); });
  };
  table["addcmul_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { addcmul_(x, c.tensor(1), c.tensor(2), c.scalar(3)); });
  };
  table["addcdiv_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { addcdiv_(x, c.tensor(1), c.tensor(2), c.scalar(3)); });
  };
}

}  // namespace

void add_writes(Functions& table) {
  add_arithmetic(table);
  table["masked_fill_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { masked_fill_(x, c.tensor(1), c.scalar(2)); });
  };
  table["index_add_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { index_add_(x, c.integer(1), c.tensor(2), c.tensor(3)); });
  };
  table["index_put_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { index_put_(x, index_of(c, 1), c.tensor(2), c.flag(3)); });
  };
  table["scatter_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { scatter_(x, c.integer(1), c.tensor(2), c.tensor(3)); });
  };
  table["scatter_add_"] = [](const Call& c) {
    return written(c, [&](const Tensor& x) { scatter_add_(x, c.integer(1), c.tensor(2), c.tensor(3)); });
  };
}

}  // namespace golden
