#include "functional/progression.h"

#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

#include <algorithm>
#include <cmath>

#include "functional/build.h"

namespace russet::functional {
namespace {

/// A number in units of 2^-bits: the nearest integer, and what is left.
struct Fixed {
  Fixed(double value, int bits)
      : whole(std::llround(std::ldexp(value, bits))), rest(std::ldexp(value, bits) - static_cast<double>(whole)) {}
  std::int64_t whole;
  double rest;
};

}  // namespace

TwoParts progression(double first, double step, const Tensor& positions, double bound) {
  int exponent = 0;
  std::frexp(bound, &exponent);
  const int bits = 61 - exponent;
  const Fixed start(first, bits), increment(step, bits);
  const Device device = positions.device();
  const auto whole = [&](std::int64_t value) { return number(value, DType::int64, device); };
  const auto real = [&](double value) { return number(value, DType::float32, device); };
  const Tensor units = whole(start.whole) + positions * whole(increment.whole);
  const Tensor head = cast(units, DType::float32);
  const Tensor left = cast(units - cast(head, DType::int64), DType::float32);
  const Tensor rest = left + (real(start.rest) + cast(positions, DType::float32) * real(increment.rest));
  // Where terms cancel, as in -1 + 10 * 0.1, what is left below float64's last digit is the error of `step`.
  const Tensor counts = logical_or(abs(head + rest) > 1024, positions == 0);
  // The unit as two factors: by itself it may lie outside of float32's range where the numbers do not.
  const int unit = std::clamp(-bits, -252, 252);
  const Tensor coarse = where(counts, real(std::ldexp(1.0, unit / 2)), real(0));
  const Tensor fine = real(std::ldexp(1.0, unit - unit / 2));
  return {head * coarse * fine, rest * coarse * fine};
}

}  // namespace russet::functional
