#include "functions.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#define RUSSET_SIMULATOR_HOST
#include "device/gpu/kernels/prelude/simulator/trampolines.h"

namespace russet::simulator {
namespace {

using Exact1 = double (*)(double);
using Exact2 = double (*)(double, double);

double exp10_exact(double x) { return std::pow(10.0, x); }
float exp10_plain(float x) { return std::pow(10.0f, x); }

/// From -1 to 1, by the bits of the arguments: neighbours have nothing in common.
double error_of(float x, float y) {
  std::uint64_t bits = std::bit_cast<std::uint32_t>(x) * 0x9e3779b97f4a7c15U + std::bit_cast<std::uint32_t>(y);
  bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
  return static_cast<double>(static_cast<std::int64_t>(bits ^ bits >> 31)) * 0x1p-63;
}

/// The distance of the two floats that x lies between.
double ulp_of(double x) {
  const int exponent = std::ilogb(x);
  return std::ldexp(1.0, std::max(exponent, -126) - 23);
}

/// At most `ulps` from x, rounding included, which is up to one of them where their size changes. Zeros, infinities and
/// NaN are what they are, and nothing changes its sign.
float off_by(double x, double ulps, double error) {
  if (x == 0 || !std::isfinite(static_cast<float>(x))) return static_cast<float>(x);
  const double moved = x + (ulps - 1) * error * ulp_of(x);
  return (moved < 0) == (x < 0) ? static_cast<float>(moved) : static_cast<float>(x);
}

template <int ulps, Exact1 exact>
float coarse1(float x) {
  return off_by(exact(static_cast<double>(x)), ulps, error_of(x, 0));
}
template <int ulps, Exact2 exact>
float coarse2(float x, float y) {
  return off_by(exact(static_cast<double>(x), static_cast<double>(y)), ulps, error_of(x, y));
}

struct Row {
  std::string_view name;
  void* plain;
  void* coarse;
};

template <int ulps, Exact1 exact>
Row row(std::string_view name, float (*plain)(float)) {
  return {name, reinterpret_cast<void*>(plain), reinterpret_cast<void*>(coarse1<ulps, exact>)};
}
template <int ulps, Exact2 exact>
Row row(std::string_view name, float (*plain)(float, float)) {
  return {name, reinterpret_cast<void*>(plain), reinterpret_cast<void*>(coarse2<ulps, exact>)};
}

/// Errors: Metal Shading Language Specification, version 4, 8.4, table 8.1 (fast math is off). What is missing here
/// (square roots, quotients, fma) is correctly rounded there.
const Row functions[] = {
    row<4, std::exp>("russet_exp", std::exp),         row<4, std::exp2>("russet_exp2", std::exp2),
    row<4, exp10_exact>("russet_exp10", exp10_plain), row<4, std::log>("russet_log", std::log),
    row<4, std::log2>("russet_log2", std::log2),      row<4, std::log10>("russet_log10", std::log10),
    row<4, std::sin>("russet_sin", std::sin),         row<4, std::cos>("russet_cos", std::cos),
    row<6, std::tan>("russet_tan", std::tan),         row<4, std::asin>("russet_asin", std::asin),
    row<4, std::acos>("russet_acos", std::acos),      row<5, std::atan>("russet_atan", std::atan),
    row<6, std::atan2>("russet_atan2", std::atan2),   row<4, std::sinh>("russet_sinh", std::sinh),
    row<4, std::cosh>("russet_cosh", std::cosh),      row<5, std::tanh>("russet_tanh", std::tanh),
    row<4, std::asinh>("russet_asinh", std::asinh),   row<4, std::acosh>("russet_acosh", std::acosh),
    row<5, std::atanh>("russet_atanh", std::atanh),   row<16, std::pow>("russet_pow", std::pow),
};

void* function_of(std::string_view name, bool coarse) {
  for (const Row& row : functions) {
    if (row.name == name) return coarse ? row.coarse : row.plain;
  }
  throw InternalError(fmt::format("simulated GPU: no function is named {}", name));
}

}  // namespace

void fill_functions(void** table, bool coarse) {
#define RUSSET_FILL(name, index) table[index] = function_of(#name, coarse);
  RUSSET_FUNCTIONS(RUSSET_FILL)
#undef RUSSET_FILL
}

}  // namespace russet::simulator
