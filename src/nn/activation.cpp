// Modules with a check or a parameter among activations and dropout.
#include <fmt/format.h>
#include <russet/nn/activation.h>
#include <russet/nn/dropout.h>

#include "new_parameters.h"

namespace russet::nn {
namespace {

double probability(const char* name, double p) {
  if (p >= 0 && p <= 1) return p;
  throw ValueError(fmt::format("{}: {} is no probability", name, p));
}

}  // namespace

PReLU::PReLU(std::int64_t channels, double initial) {
  if (channels < 1) throw ValueError(fmt::format("PReLU: {} channels", channels));
  const Tensor made = empty({channels}, NewModules::options());
  init::constant_(made, initial);
  weight = register_parameter("weight", made);
}

Dropout::Dropout(double p) : p_(probability("Dropout", p)) {}
Dropout2d::Dropout2d(double p) : p_(probability("Dropout2d", p)) {}
StochasticDepth::StochasticDepth(double p, StochasticDepthMode mode)
    : p_(probability("StochasticDepth", p)), mode_(mode) {}

}  // namespace russet::nn
