// The table of gradients. Formulas and corner cases are those of PyTorch's derivatives.yaml.
#include "autograd/rules.h"

#include <algorithm>
#include <numbers>

#include "autograd/rules_detail.h"

namespace russet::autograd {
namespace {

using ops::Op;
using C = const Context&;
using T = const Tensor&;

// The gradients of both inputs, each made only if it is needed.
template <auto first, auto second>
Gradients each(C c, T g) {
  return both(
      c, [&] { return first(c, g); }, [&] { return second(c, g); });
}

constexpr GradientRow rows[] = {
    // elementwise, one input
    {Op::neg, nothing, [](C, T g) { return one(-g); }},
    {Op::abs, reads(in0), [](C c, T g) { return one(g * sign(c.in0())); }},
    {Op::sign, nothing, zero_gradient},
    {Op::floor, nothing, zero_gradient},
    {Op::ceil, nothing, zero_gradient},
    {Op::round, nothing, zero_gradient},
    {Op::trunc, nothing, zero_gradient},
    {Op::exp, reads(out), [](C c, T g) { return one(g * c.out()); }},
    {Op::expm1, reads(out), [](C c, T g) { return one(g * (c.out() + constant(g, 1))); }},
    {Op::log, reads(in0), [](C c, T g) { return one(g / c.in0()); }},
    {Op::log1p, reads(in0), [](C c, T g) { return one(g / (c.in0() + constant(g, 1))); }},
    {Op::sqrt, reads(out), [](C c, T g) { return one(g / (c.out() * constant(g, 2))); }},
    {Op::rsqrt, reads(out), [](C c, T g) { return one(g * (c.out() * c.out()) * (c.out() * constant(g, -0.5))); }},
    {Op::sin, reads(in0), [](C c, T g) { return one(g * cos(c.in0())); }},
    {Op::cos, reads(in0), [](C c, T g) { return one(-(g * sin(c.in0()))); }},
    {Op::tan, reads(out), [](C c, T g) { return one(g * (c.out() * c.out() + constant(g, 1))); }},
    {Op::asin, reads(in0), [](C c, T g) { return one(g / sqrt(constant(g, 1) - c.in0() * c.in0())); }},
    {Op::acos, reads(in0), [](C c, T g) { return one(-(g / sqrt(constant(g, 1) - c.in0() * c.in0()))); }},
    {Op::atan, reads(in0), [](C c, T g) { return one(g / (c.in0() * c.in0() + constant(g, 1))); }},
    {Op::sinh, reads(in0), [](C c, T g) { return one(g * cosh(c.in0())); }},
    {Op::cosh, reads(in0), [](C c, T g) { return one(g * sinh(c.in0())); }},
    {Op::tanh, reads(out), [](C c, T g) { return one(g * (constant(g, 1) - c.out() * c.out())); }},
    {Op::erf, reads(in0),
     [](C c, T g) { return one(g * (exp(-(c.in0() * c.in0())) * constant(g, 2 * std::numbers::inv_sqrtpi))); }},
    {Op::ndtr, reads(in0), [](C c, T g) { return one(g * apply(Op::normal_density, {c.in0()})); }},
    {Op::normal_density, reads(in0, out), [](C c, T g) { return one(-(g * (c.in0() * c.out()))); }},
    {Op::sigmoid, reads(out), [](C c, T g) { return one(g * (c.out() * (constant(g, 1) - c.out()))); }},
    {Op::cast, nothing, [](C, T g) { return one(g); }},
    // elementwise, two inputs
    {Op::add, nothing, each<[](C, T g) { return g; }, [](C, T g) { return g; }>},
    {Op::sub, nothing, each<[](C, T g) { return g; }, [](C, T g) { return -g; }>},
    {Op::mul, reads(in0, in1), each<[](C c, T g) { return g * c.in1(); }, [](C c, T g) { return g * c.in0(); }>},
    {Op::div, reads(in1, out),
     each<[](C c, T g) { return g / c.in1(); }, [](C c, T g) { return -(g / c.in1() * c.out()); }>},
    {Op::floor_divide, nothing, zero_gradient},
    {Op::fmod, reads(in0, in1),
     each<[](C, T g) { return g; }, [](C c, T g) { return -(g * trunc(c.in0() / c.in1())); }>},
    {Op::pow, reads(in0, in1, out), pow_gradient},
    {Op::atan2, reads(in0, in1), atan2_gradient},
    {Op::maximum, reads(in0, in1), maximum_gradient},
    {Op::minimum, reads(in0, in1), minimum_gradient},
    // elementwise, three inputs
    {Op::where, reads(in0), where_gradient},
    // reduction
    {Op::sum, nothing, [](C c, T g) { return one(g.expand(c.shape_of(0))); }},
    {Op::prod, reads(in0), prod_gradient},
    {Op::amax, reads(in0, out), extremum_gradient},
    {Op::amin, reads(in0, out), extremum_gradient},
    {Op::squared_deviations, reads(in0), deviations_gradient},
    // contraction
    {Op::matmul, reads(in0, in1), matmul_gradient},
    {Op::convolution, reads(in0, in1), convolution_gradient},
    {Op::convolution_input, reads(in0, in1), convolution_input_gradient},
    {Op::convolution_weight, reads(in0, in1), convolution_weight_gradient},
    // movement
    {Op::strided, nothing, strided_gradient},
    {Op::overwrite, nothing, overwrite_gradient},
    // indexing
    {Op::take, reads(from_in1), take_gradient},
    {Op::put, reads(from_in2), put_gradient},
    // window
    {Op::max_pool, reads(in0), max_pool_gradient},
    {Op::max_unpool, reads(in0), max_unpool_gradient},
    {Op::sum_pool, nothing, sum_pool_gradient},
    {Op::sum_unpool, nothing, sum_unpool_gradient},
    // ordering
    {Op::cumsum, nothing, cumsum_gradient},
    {Op::cumprod, reads(in0, out), cumprod_gradient},
    // attention
    {Op::attention, all, attention_gradient},
    {Op::attention_logsumexp, all, attention_logsumexp_gradient},
    {Op::attention_query_gradient, all, attention_backward_gradient},
    {Op::attention_key_gradient, all, attention_backward_gradient},
    {Op::attention_value_gradient, all, attention_backward_gradient},
    // linalg
    {Op::cholesky, reads(out), cholesky_gradient},
    {Op::lu, reads(out), lu_gradient},
    {Op::qr, reads(out), qr_gradient},
    {Op::eigh, reads(in0, out), eigh_gradient},
    {Op::svd, reads(in0, out), svd_gradient},
    {Op::solve_triangular, reads(in0, out), solve_triangular_gradient},
};

// Values without inputs, and results that are no smooth function of any input.
constexpr Op no_gradient[] = {
    Op::leaf,        Op::scalar,      Op::constant,   Op::empty,       Op::iota,   Op::uniform, Op::normal,
    Op::random_bits, Op::bitwise_not, Op::eq,         Op::ne,          Op::lt,     Op::le,      Op::bitwise_and,
    Op::bitwise_or,  Op::bitwise_xor, Op::shift_left, Op::shift_right, Op::argmax, Op::argmin,  Op::argsort,
};

/// The position of each operator's row, -1 for those without a gradient, -2 for one that is listed nowhere or twice.
constexpr auto positions = [] {
  std::array<int, ops::op_count> position{};
  position.fill(-2);
  const auto place = [&](Op op, int where) {
    int& entry = position[static_cast<std::size_t>(op)];
    if (entry != -2) throw "an operator is listed twice";
    entry = where;
  };
  for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) place(rows[i].op, i);
  for (const Op op : no_gradient) place(op, -1);
  return position;
}();
static_assert(std::find(positions.begin(), positions.end(), -2) == positions.end(),
              "every operator has a gradient rule or stands in no_gradient");

}  // namespace

std::span<const GradientRow> gradient_table() { return rows; }

const GradientRow* gradient_of(ops::Op op) {
  const int position = positions[static_cast<std::size_t>(op)];
  return position < 0 ? nullptr : &rows[position];
}

}  // namespace russet::autograd
