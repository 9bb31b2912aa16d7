// Random tensors. Each random primitive takes the next offset of a generator; the offset is a run-time argument.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/ordering.h>
#include <russet/functional/random.h>
#include <russet/functional/reduction.h>
#include <russet/random_part.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "functional/build.h"
#include "functional/write.h"
#include "graph/capture.h"

namespace russet {

using functional::cast;
using functional::constant;
using ops::Op;

namespace {

/// float32 for uniform and normal, int64 for random_bits.
Tensor random(Op op, const Shape& sizes, Device device, Generator* generator) {
  if (graph::Capture* const capture = graph::Capture::current();
      capture && generator && generator != &default_generator(device.type)) {
    capture->decline("it draws from a generator of its own");
  }
  Generator& source = generator ? *generator : default_generator(device.type);
  const Generator::State state = source.next();
  graph::NodeInfo given;
  given.dtype = op == Op::random_bits ? DType::int64 : DType::float32;
  given.device = device;
  given.shape = sizes;
  given.attributes = ops::Seed{state.seed, RandomPart::numbers_before(sizes)};
  given.argument = state.offset;
  return graph::wrap(graph::record(op, graph::NodeRefs{}, std::move(given)));
}

void require_floating_type(const char* function, DType dtype) {
  if (is_floating(dtype)) return;
  throw TypeError(fmt::format("{}: gives floating types, not {}", function, name_of(dtype)));
}

Tensor with_options(Tensor result, bool requires_grad) {
  if (requires_grad) result.requires_grad_();
  return result;
}

/// In [0, 1) in the type: types of few bits keep that many, or rounding would reach 1.
Tensor uniform(const Shape& sizes, DType dtype, Device device, Generator* generator) {
  const Tensor u = random(Op::uniform, sizes, device, generator);
  if (dtype == DType::float32 || dtype == DType::float64) return cast(u, dtype);
  const double steps = dtype == DType::float16 ? 2048 : 256;
  return cast(floor(u * constant(steps, u)) * constant(1 / steps, u), dtype);
}

TensorOptions options_like(const Tensor& x, const InferredOptions& options) {
  return {options.dtype.value_or(x.dtype()), options.device.value_or(x.device()), options.requires_grad};
}

Tensor made_like(const Tensor& x, const Tensor& made, const InferredOptions& options) {
  return with_options(functional::laid_out_like(x, made), options.requires_grad);
}

Tensor number_like(double value, const Tensor& x) { return functional::number(value, x.dtype(), x.device()); }

/// -log(1 - u): exponential numbers of rate 1, never infinite.
Tensor exponential(const Shape& sizes, Device device, Generator* generator) {
  return neg(log1p(neg(random(Op::uniform, sizes, device, generator))));
}

}  // namespace

Tensor rand(const Shape& sizes, const TensorOptions& options, Generator* generator) {
  require_floating_type("rand", options.dtype);
  return with_options(uniform(sizes, options.dtype, options.device, generator), options.requires_grad);
}
Tensor rand_like(const Tensor& x, const InferredOptions& options, Generator* generator) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, rand(x.sizes(), {known.dtype, known.device}, generator), options);
}

Tensor randn(const Shape& sizes, const TensorOptions& options, Generator* generator) {
  require_floating_type("randn", options.dtype);
  return with_options(cast(random(Op::normal, sizes, options.device, generator), options.dtype), options.requires_grad);
}
Tensor randn_like(const Tensor& x, const InferredOptions& options, Generator* generator) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, randn(x.sizes(), {known.dtype, known.device}, generator), options);
}

Tensor normal(double mean, double deviation, const Shape& sizes, const TensorOptions& options, Generator* generator) {
  if (!(deviation >= 0)) throw ValueError(fmt::format("normal: the standard deviation is {}", deviation));
  require_floating_type("normal", options.dtype);
  const Tensor z = random(Op::normal, sizes, options.device, generator);
  return with_options(cast(z * number_like(deviation, z) + number_like(mean, z), options.dtype), options.requires_grad);
}

// The rest of 63 random bits: a bias below range / 2^63.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& sizes, const InferredOptions& options,
               Generator* generator) {
  if (low >= high) throw ValueError(fmt::format("randint: there is no integer in [{}, {})", low, high));
  if (low < 0 && high > INT64_MAX + low) throw ValueError(fmt::format("randint: [{}, {}) is too wide", low, high));
  const DType dtype = options.dtype.value_or(DType::int64);
  for (const std::int64_t bound : {low, high - 1}) functional::require_held("randint", bound, dtype);
  const Tensor bits = random(Op::random_bits, sizes, options.device.value_or(Device()), generator);
  const auto integer = [&](std::int64_t value) { return functional::number(value, DType::int64, bits.device()); };
  const Tensor value = autograd::apply(Op::fmod, {bits, integer(high - low)}) + integer(low);
  return with_options(cast(value, dtype), options.requires_grad);
}
Tensor randint(std::int64_t high, const Shape& sizes, const InferredOptions& options, Generator* generator) {
  return randint(0, high, sizes, options, generator);
}

Tensor randperm(std::int64_t n, const InferredOptions& options, Generator* generator) {
  if (n < 0) throw ValueError(fmt::format("randperm: n is {}", n));
  const DType dtype = options.dtype.value_or(DType::int64);
  functional::require_held("randperm", std::max<std::int64_t>(n - 1, 0), dtype);
  const Tensor keys = random(Op::random_bits, {n}, options.device.value_or(Device()), generator);
  return with_options(cast(argsort(keys), dtype), options.requires_grad);
}

namespace {

/// Whether there are values that a check can look at.
bool is_readable(const Tensor& x) { return x.numel() > 0 && x.device().type != DeviceType::null; }

void require_probabilities(const Tensor& p) {
  if (!is_readable(p)) return;
  const NoGrad guard;
  if (all(logical_and(ge(p, constant(0, p)), le(p, constant(1, p)))).item<bool>()) return;
  throw ValueError("bernoulli: the tensor holds numbers outside of [0, 1], which are no probabilities");
}

/// Throws unless each row of weights allows that many different draws.
void require_weights(const Tensor& w, std::int64_t draws) {
  if (!is_readable(w)) return;
  const NoGrad guard;
  const Tensor zero = constant(0, w);
  const Tensor sound = all(logical_and(ge(w, zero), lt(w, constant(INFINITY, w))));
  const Tensor fewest = amin(sum(gt(w, zero), -1));
  if (!sound.item<bool>()) throw ValueError("multinomial: there are weights that are negative, infinite or NaN");
  const auto possible = fewest.item<std::int64_t>();
  if (possible == 0) throw ValueError("multinomial: no weight of a row is above 0");
  if (possible < draws) {
    throw ValueError(
        fmt::format("multinomial: {} draws without replacement from a row with {} weight(s) above 0", draws, possible));
  }
}

}  // namespace

Tensor bernoulli(const Tensor& p, Generator* generator) {
  functional::require_floating("bernoulli", p);
  require_probabilities(p);
  const Tensor u = random(Op::uniform, p.sizes(), p.device(), generator);
  return cast(lt(u, cast(p.detach(), DType::float32)), p.dtype());
}

// With replacement: places of uniform numbers among running sums. Without: the smallest of exponential numbers /
// weight, which orders like a draw one after another (Efraimidis and Spirakis, 2006). A weight of 0 gives infinity or
// NaN: last.
Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement, Generator* generator) {
  functional::require_floating("multinomial", weights);
  if (weights.dim() != 1 && weights.dim() != 2) {
    throw ShapeError(
        fmt::format("multinomial: takes a vector or a matrix of weights, not {}", to_string(weights.sizes())));
  }
  const std::int64_t classes = weights.size(-1);
  if (count < 1 || classes < 1 || (!replacement && count > classes)) {
    throw ValueError(fmt::format("multinomial: {} draws of {} classes{}", count, classes,
                                 replacement ? "" : " without replacement"));
  }
  const Tensor w = functional::wide(weights.detach());
  require_weights(w, replacement ? 1 : count);
  if (!replacement) return topk(exponential(w.sizes(), w.device(), generator) / w, count, -1, false).indices;
  Shape sizes = w.sizes();
  sizes[sizes.rank() - 1] = count;
  const Tensor sums = cumsum(w, -1);
  const Tensor draw = random(Op::uniform, sizes, w.device(), generator) * sums.narrow(-1, classes - 1, 1);
  const Tensor place = searchsorted(sums, draw, true);
  return minimum(place, constant(classes - 1, place));
}

const Tensor& Tensor::uniform_(double from, double to, Generator* generator) const {
  if (!(from <= to)) throw ValueError(fmt::format("uniform_: there is no number in [{}, {})", from, to));
  require_floating_type("uniform_", dtype());
  const Tensor u = uniform(sizes(), dtype(), device(), generator);
  return functional::write("uniform_", *this, u * number_like(to - from, u) + number_like(from, u));
}

const Tensor& Tensor::normal_(double mean, double std, Generator* generator) const {
  return functional::write("normal_", *this, normal(mean, std, sizes(), {dtype(), device()}, generator));
}

const Tensor& Tensor::bernoulli_(double p, Generator* generator) const {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("bernoulli_: {} is no probability", p));
  const Tensor u = random(Op::uniform, sizes(), device(), generator);
  autograd::assign(*this, cast(u < number_like(p, u), dtype()));
  return *this;
}

const Tensor& Tensor::exponential_(double lambd, Generator* generator) const {
  if (!(lambd > 0)) throw ValueError(fmt::format("exponential_: lambd is {}", lambd));
  require_floating_type("exponential_", dtype());
  const Tensor e = exponential(sizes(), device(), generator);
  return functional::write("exponential_", *this, cast(e * number_like(1 / lambd, e), dtype()));
}

}  // namespace russet
