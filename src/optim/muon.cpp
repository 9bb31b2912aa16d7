// Muon.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/matmul.h>
#include <russet/functional/movement.h>
#include <russet/functional/reduction.h>
#include <russet/optim/muon.h>

#include <algorithm>
#include <cmath>

namespace russet::optim {
namespace {

/// a x + b y of bfloat16 matrices, rounded once.
Tensor combined(double a, const Tensor& x, double b, const Tensor& y) {
  return (x.to(DType::float32) * a + y.to(DType::float32) * b).to(DType::bfloat16);
}

/// U V^T of the singular value decomposition of a matrix, roughly: Newton-Schulz iteration on its short side.
Tensor orthogonal_factor(const Tensor& matrix, const MuonOptions& o) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = matrix.to(DType::bfloat16);
  if (tall) x = x.t();
  x = x / clamp_min(norm(x), o.eps);
  const auto [a, b, c] = o.ns_coefficients;
  for (std::int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(x, x.t());
    x = combined(a, x, 1, matmul(combined(b, gram, c, matmul(gram, gram)), x));
  }
  return tall ? x.t() : x;
}

double scale_of(const Shape& shape, const MuonOptions& o) {
  const auto rows = static_cast<double>(shape[0]);
  const auto columns = static_cast<double>(shape[1]);
  if (o.adjust_lr_fn == AdjustLr::match_rms_adamw) return 0.2 * std::sqrt(std::max(rows, columns));
  return std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

void MuonOptions::check(const std::vector<Tensor>& parameters) const {
  if (ns_steps < 0 || ns_steps >= 100) throw ValueError(fmt::format("Muon: ns_steps is {}, not in [0, 100)", ns_steps));
  for (const Tensor& parameter : parameters) {
    if (!parameter.defined() || parameter.dim() == 2) continue;
    throw ValueError(fmt::format("Muon: takes matrices, not {}", to_string(parameter.sizes())));
  }
}

std::span<const char* const> Muon::state_names() const {
  static constexpr const char* names[] = {"momentum_buffer"};
  return names;
}

void Muon::update(std::size_t group, ParameterState& state, const Tensor& given) {
  enum : std::size_t { share = own, inertia };
  const MuonOptions& o = group_options(group);
  const Tensor mean = average(kept(state, 0), given, coefficient(share, state, [&] { return 1 - o.momentum; }));
  const Tensor direction =
      o.nesterov ? given + (mean - given) * coefficient(inertia, state, [&] { return o.momentum; }) : mean;
  const Tensor update = orthogonal_factor(direction, o).to(state.parameter.dtype());
  const Tensor parameter =
      state.parameter.detach() * coefficient(decay, state, [&] { return 1 - o.lr * o.weight_decay; });
  state.parameter.copy_(
      parameter - update * (coefficient(rate, state, [&] { return o.lr; }) * scale_of(state.parameter.sizes(), o)));
}

}  // namespace russet::optim
