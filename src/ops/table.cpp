// The rows of the operator table. Names are PyTorch's where it has an operator of the same meaning.
#include "ops/table.h"

namespace russet::ops {
namespace {

using enum Family;

constexpr Tolerance exact{0, 0};
// Chains of library calls or long sums lose a few bits in float32.
constexpr Tolerance loose{4e-6, 1e-12};
constexpr Tolerance contracted{1e-5, 1e-12};
constexpr Tolerance factored{5e-5, 1e-12};  // condition numbers of the samples

constexpr auto given = TypeRule::given;
constexpr auto same = TypeRule::same;
constexpr auto numeric = TypeRule::numeric;
constexpr auto floating = TypeRule::floating;
constexpr auto integral = TypeRule::integral;
constexpr auto comparison = TypeRule::comparison;
constexpr auto widen = TypeRule::widen;
constexpr auto index_type = TypeRule::index;

constexpr auto stated = ShapeRule::given;
constexpr auto like_first = ShapeRule::same;
constexpr auto broadcast_all = ShapeRule::broadcast;
constexpr auto reduced = ShapeRule::reduced;

constexpr auto none = Autocast::none;
constexpr auto lower = Autocast::lower;
constexpr auto single = Autocast::float32;
constexpr auto widest = Autocast::widest;

constexpr auto simple = Cost::simple;
constexpr auto root = Cost::root;
constexpr auto series = Cost::series;
constexpr auto chain = Cost::chain;
constexpr auto remainder = Cost::remainder;
constexpr auto draw = Cost::draw;
constexpr auto draw_more = Cost::draw_more;

constexpr bool argument = true;

constexpr OpRow rows[] = {
    {Op::leaf, "leaf", source, 0, given, stated, none, simple, "A value that is in memory.", false, exact},
    {Op::scalar, "scalar", source, 0, given, stated, none, simple, "A number known at run time only, at every element.",
     argument, exact},
    {Op::constant, "constant", source, 0, given, stated, none, simple,
     "A number known at compile time, at every element.", false, exact},
    {Op::empty, "empty", source, 0, given, stated, none, simple, "Memory whose elements have no value yet.", false,
     exact},
    {Op::iota, "iota", source, 0, given, stated, none, simple, "0, 1, 2, ... in row-major order.", false, exact},

    {Op::uniform, "uniform", random, 0, given, stated, none, draw, "Random float32 numbers, uniform in [0, 1).",
     argument, exact},
    {Op::normal,
     "normal",
     random,
     0,
     given,
     stated,
     none,
     draw_more,
     "Random float32 numbers of the standard normal distribution.",
     argument,
     {3e-7, 1e-13}},
    {Op::random_bits, "random_bits", random, 0, given, stated, none, draw_more, "Random int64 numbers in [0, 2^63).",
     argument, exact},

    {Op::neg, "neg", elementwise, 1, numeric, like_first, none, simple, "Each element with its sign changed.", false,
     exact},
    {Op::abs, "abs", elementwise, 1, numeric, like_first, none, simple, "Absolute value of each element.", false,
     exact},
    {Op::sign, "sign", elementwise, 1, same, like_first, none, simple, "-1, 0 or 1 by each element's sign; 0 for NaN.",
     false, exact},
    {Op::floor, "floor", elementwise, 1, numeric, like_first, none, simple,
     "The largest integer not above each element.", false, exact},
    {Op::ceil, "ceil", elementwise, 1, numeric, like_first, none, simple,
     "The smallest integer not below each element.", false, exact},
    {Op::round, "round", elementwise, 1, numeric, like_first, none, simple,
     "The nearest integer; halves go to the even one.", false, exact},
    {Op::trunc, "trunc", elementwise, 1, numeric, like_first, none, simple, "Each element without its fraction.", false,
     exact},
    {Op::exp, "exp", elementwise, 1, floating, like_first, single, series, "e to the power of each element."},
    {Op::expm1, "expm1", elementwise, 1, floating, like_first, single, chain, "exp(x) - 1, exact near 0."},
    {Op::log, "log", elementwise, 1, floating, like_first, single, series, "Natural logarithm of each element."},
    {Op::log1p, "log1p", elementwise, 1, floating, like_first, single, chain, "log(1 + x), exact near 0."},
    {Op::sqrt, "sqrt", elementwise, 1, floating, like_first, none, root, "Square root of each element."},
    {Op::rsqrt, "rsqrt", elementwise, 1, floating, like_first, single, root, "1 / sqrt(x)."},
    {Op::sin, "sin", elementwise, 1, floating, like_first, none, series, "Sine of each element, in radians."},
    {Op::cos, "cos", elementwise, 1, floating, like_first, none, series, "Cosine of each element, in radians."},
    {Op::tan, "tan", elementwise, 1, floating, like_first, single, chain, "Tangent of each element, in radians.", false,
     loose},
    {Op::asin, "asin", elementwise, 1, floating, like_first, single, chain, "Inverse sine, in [-pi/2, pi/2]."},
    {Op::acos, "acos", elementwise, 1, floating, like_first, single, chain, "Inverse cosine, in [0, pi]."},
    {Op::atan, "atan", elementwise, 1, floating, like_first, none, chain, "Inverse tangent, in [-pi/2, pi/2]."},
    {Op::sinh, "sinh", elementwise, 1, floating, like_first, single, chain, "Hyperbolic sine of each element."},
    {Op::cosh, "cosh", elementwise, 1, floating, like_first, single, chain, "Hyperbolic cosine of each element."},
    {Op::tanh, "tanh", elementwise, 1, floating, like_first, none, series, "Hyperbolic tangent of each element."},
    {Op::erf, "erf", elementwise, 1, floating, like_first, none, series, "Error function of each element."},
    {Op::ndtr, "ndtr", elementwise, 1, floating, like_first, none, series,
     "Distribution function of the standard normal distribution, in float32 within 1e-7 and, down to -5.5, 4e-6 of "
     "itself."},
    {Op::normal_density, "normal_density", elementwise, 1, floating, like_first, none, series,
     "Density of the standard normal distribution, in float32 within 1e-7 and, from -5.5 to 5.5, 4e-6 of itself."},
    {Op::sigmoid, "sigmoid", elementwise, 1, floating, like_first, none, series, "1 / (1 + exp(-x))."},
    {Op::bitwise_not, "bitwise_not", elementwise, 1, integral, like_first, none, simple,
     "All bits changed; logical not of boolean elements.", false, exact},
    {Op::cast, "cast", elementwise, 1, given, like_first, none, simple,
     "Each element in another type: floating to integer drops the fraction, anything but 0 is true.", false, exact},

    {Op::add, "add", elementwise, 2, same, broadcast_all, widest, simple,
     "Sum of two tensors; logical or of boolean ones."},
    {Op::sub, "sub", elementwise, 2, numeric, broadcast_all, widest, simple, "Difference of two tensors."},
    {Op::mul, "mul", elementwise, 2, same, broadcast_all, widest, simple,
     "Product of two tensors; logical and of boolean ones."},
    {Op::div, "div", elementwise, 2, floating, broadcast_all, widest, root, "Quotient of two tensors."},
    {Op::floor_divide, "floor_divide", elementwise, 2, numeric, broadcast_all, widest, remainder,
     "Quotient rounded toward minus infinity. Integers divided by 0: ValueError; on GPUs 0."},
    {Op::fmod, "fmod", elementwise, 2, numeric, broadcast_all, widest, remainder,
     "Remainder of the division rounded toward 0, with the dividend's sign. Of integers by 0: ValueError; on GPUs 0.",
     false, exact},
    {Op::pow, "pow", elementwise, 2, numeric, broadcast_all, single, chain,
     "The first to the power of the second; integers wrap, and of negative powers only those of 1 and -1 are not 0.",
     false, loose},
    {Op::atan2, "atan2", elementwise, 2, floating, broadcast_all, widest, chain,
     "Angle of the point (second, first), in [-pi, pi]."},
    {Op::maximum, "maximum", elementwise, 2, same, broadcast_all, widest, simple, "The larger of two elements, or NaN.",
     false, exact},
    {Op::minimum, "minimum", elementwise, 2, same, broadcast_all, widest, simple,
     "The smaller of two elements, or NaN.", false, exact},
    {Op::eq, "eq", elementwise, 2, comparison, broadcast_all, widest, simple, "Whether elements are equal.", false,
     exact},
    {Op::ne, "ne", elementwise, 2, comparison, broadcast_all, widest, simple, "Whether elements differ.", false, exact},
    {Op::lt, "lt", elementwise, 2, comparison, broadcast_all, widest, simple,
     "Whether the first is less than the second.", false, exact},
    {Op::le, "le", elementwise, 2, comparison, broadcast_all, widest, simple,
     "Whether the first is less than the second or equal.", false, exact},
    {Op::bitwise_and, "bitwise_and", elementwise, 2, integral, broadcast_all, none, simple, "Bits that both have.",
     false, exact},
    {Op::bitwise_or, "bitwise_or", elementwise, 2, integral, broadcast_all, none, simple, "Bits that one or both have.",
     false, exact},
    {Op::bitwise_xor, "bitwise_xor", elementwise, 2, integral, broadcast_all, none, simple, "Bits that only one has.",
     false, exact},
    {Op::shift_left, "bitwise_left_shift", elementwise, 2, integral, broadcast_all, none, simple,
     "Bits moved up by the second; 0 when it is negative or not below the number of bits.", false, exact},
    {Op::shift_right, "bitwise_right_shift", elementwise, 2, integral, broadcast_all, none, simple,
     "Bits moved down by the second, the sign repeated; a negative count, or a large one, leaves only signs.", false,
     exact},

    {Op::where, "where", elementwise, 3, same, broadcast_all, widest, simple,
     "The second input's element where the condition holds, else the third's.", false, exact},

    {Op::sum, "sum", reduction, 1, widen, reduced, single, simple, "Sum over the given axes, which stay with size 1."},
    {Op::prod, "prod", reduction, 1, widen, reduced, single, simple,
     "Product over the given axes, which stay with size 1.", false, contracted},
    {Op::amax, "amax", reduction, 1, same, reduced, none, simple, "The largest element along the given axes, or NaN.",
     false, exact},
    {Op::amin, "amin", reduction, 1, same, reduced, none, simple, "The smallest element along the given axes, or NaN.",
     false, exact},
    {Op::argmax, "argmax", reduction, 1, index_type, reduced, none, simple,
     "Position of the first largest element along one axis, or among all; NaN counts as largest.", false, exact},
    {Op::argmin, "argmin", reduction, 1, index_type, reduced, none, simple,
     "Position of the first smallest element along one axis, or among all; NaN counts as smallest.", false, exact},
    {Op::squared_deviations, "squared_deviations", reduction, 1, floating, reduced, single, simple,
     "Sum of the squared distances from the mean along the given axes."},

    {Op::matmul, "matmul", contraction, 2, numeric, ShapeRule::matmul, lower, Cost::product,
     "Matrix products over the last two axes; axes before them broadcast.", false, contracted},
    {Op::convolution, "convolution", contraction, 2, numeric, ShapeRule::convolution, lower, Cost::convolution,
     "Cross-correlation of [n, c, h, w] with a weight [o, c / groups, kh, kw].", false, contracted},
    {Op::convolution_input, "convolution_input", contraction, 2, numeric, stated, lower, Cost::convolution_input,
     "Gradient of a convolution for its input, from the result's gradient and the weight.", false, contracted},
    {Op::convolution_weight, "convolution_weight", contraction, 2, numeric, stated, lower, Cost::convolution_weight,
     "Gradient of a convolution for its weight, from the input and the result's gradient.", false, contracted},

    {Op::strided, "strided", movement, 1, same, stated, none, simple,
     "Element (i, j, ...) is element offset + i * strides[0] + ... of the input in row-major order.", argument, exact},
    {Op::overwrite, "overwrite", movement, 2, same, like_first, none, simple,
     "The first input with a strided part of it replaced by the second.", argument, exact},

    {Op::take, "take", indexing, 9, same, ShapeRule::take, none, simple,
     "Elements, or sub-arrays, of the first input, named by an index for each of its first axes.", false, exact, 7},
    {Op::put,
     "put",
     indexing,
     10,
     same,
     like_first,
     widest,
     simple,
     "The first input with the elements that an index names replaced by the second's (the last one wins), or with the "
     "second's added.",
     false,
     {},
     7},

    {Op::max_pool, "max_pool", window, 2, same, ShapeRule::pool, none, simple,
     "The second input at the position of the first's first maximum in each window; padding never wins.", false, exact},
    {Op::max_unpool, "max_unpool", window, 2, same, like_first, none, simple,
     "Adds the second input's elements to the positions that max_pool chooses in the first."},
    {Op::sum_pool, "sum_pool", window, 1, numeric, ShapeRule::pool, none, simple,
     "Sum over each window; padding counts as 0."},
    {Op::sum_unpool, "sum_unpool", window, 1, numeric, stated, none, simple,
     "Adds each element to all positions of its window: the transpose of sum_pool."},

    {Op::argsort, "argsort", ordering, 1, index_type, like_first, none, simple,
     "Indices that sort along an axis, or the first of them; equal elements in their order, NaN counts as largest.",
     false, exact},
    {Op::cumsum, "cumsum", ordering, 1, widen, like_first, single, simple, "Running sum along an axis.", false,
     contracted},
    {Op::cumprod, "cumprod", ordering, 1, widen, like_first, single, simple, "Running product along an axis.", false,
     contracted},

    {Op::attention, "attention", Family::attention, 5, floating, ShapeRule::attention, none, Cost::attention,
     "softmax(scale * query key^T, masked) value: query, key, value, a mask and random numbers for dropout.", false,
     contracted, 2},
    {Op::attention_logsumexp, "attention_logsumexp", Family::attention, 3, TypeRule::wide, ShapeRule::attention, none,
     Cost::attention,
     "Logarithm of the sum of the exponentials of each row's scores: query, key, mask; infinity if it sees nothing.",
     false, contracted, 1},
    {Op::attention_query_gradient, "attention_query_gradient", Family::attention, 8, floating, ShapeRule::attention,
     none, Cost::attention_gradient,
     "Gradient of attention for the query: query, key, value, the result's gradient, logsumexp, delta, mask, random "
     "numbers.",
     false, contracted, 2},
    {Op::attention_key_gradient, "attention_key_gradient", Family::attention, 8, floating, ShapeRule::attention, none,
     Cost::attention_gradient, "Gradient of attention for the key, from what that for the query reads.", false,
     contracted, 2},
    {Op::attention_value_gradient, "attention_value_gradient", Family::attention, 6, floating, ShapeRule::attention,
     none, Cost::attention,
     "Gradient of attention for the value: query, key, the result's gradient, logsumexp, mask, random numbers.", false,
     contracted, 2},

    {Op::cholesky, "cholesky", linalg, 1, TypeRule::precise, ShapeRule::linalg, none, Cost::factorisation,
     "L with L L^T = (A + A^T) / 2, lower triangular. LinAlgError if that is not positive definite.", false, factored},
    {Op::lu, "lu", linalg, 1, TypeRule::precise, ShapeRule::linalg, none, Cost::factorisation,
     "[n + 1, n]: L without its unit diagonal and U in one matrix, A[p] = L U, and below them the row p.", false,
     factored},
    {Op::qr, "qr", linalg, 1, TypeRule::precise, ShapeRule::linalg, none, Cost::factorisation,
     "[m + n, min(m, n)]: Q with orthonormal columns, and below it R^T, A = Q R, by Householder's reflections.", false,
     factored},
    {Op::eigh, "eigh", linalg, 1, TypeRule::precise, ShapeRule::linalg, none, Cost::factorisation,
     "[n + 1, n]: eigenvectors of (A + A^T) / 2 as columns, and below them the eigenvalues in ascending order.", false,
     factored},
    {Op::svd, "svd", linalg, 1, TypeRule::precise, ShapeRule::linalg, none, Cost::factorisation,
     "[m + 1 + n, min(m, n)]: left singular vectors as columns, the singular values in descending order, right ones.",
     false, factored},
    {Op::solve_triangular, "solve_triangular", linalg, 2, TypeRule::precise, ShapeRule::linalg, none,
     Cost::substitution, "X with A X = B for a triangular A; zeros on its diagonal give infinities.", false, factored},
};

constexpr bool lists_each_once(std::span<const OpRow> all) {
  if (all.size() != static_cast<std::size_t>(op_count)) return false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (static_cast<std::size_t>(all[i].op) != i) return false;
  }
  return true;
}
static_assert(lists_each_once(rows), "the rows are those of Op, each once and in its order");

}  // namespace

std::span<const OpRow> table() { return rows; }

const OpRow& row(Op op) { return rows[static_cast<std::size_t>(op)]; }

const OpRow* find(std::string_view name) {
  for (const OpRow& candidate : rows) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

}  // namespace russet::ops
