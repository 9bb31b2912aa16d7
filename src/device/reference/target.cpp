#include "device/reference/target.h"

#include <fmt/format.h>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using Run = void (*)(const PrimitiveRun&);

/// In the order of ops::Family.
constexpr Run by_family[] = {run_source,   run_random, run_elementwise, run_reduction, run_contraction, run_movement,
                             run_indexing, run_window, run_ordering,    run_attention, run_linalg};

class Interpreted final : public compile::Kernel {
 public:
  explicit Interpreted(const compile::Primitive& step)
      : step_(step), run_(by_family[static_cast<int>(ops::row(step.op).family)]) {}

  void run(const compile::Bindings& bindings) const override { run_(PrimitiveRun(step_, bindings)); }
  std::string name() const override { return fmt::format("reference:{}", ops::row(step_.op).name); }

 private:
  compile::Primitive step_;
  Run run_;
};

class Interpreter final : public compile::Target {
 public:
  std::unique_ptr<compile::Kernel> compile(const compile::Step& step) const override {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    if (primitive == nullptr) throw TypeError("the reference device runs primitives, not groups");
    const ops::OpRow& row = ops::row(primitive->op);
    if (!primitive->epilogue.code.empty()) {
      throw TypeError(fmt::format("{}: the reference device takes no epilogues", row.name));
    }
    if (static_cast<int>(primitive->inputs.size()) < row.inputs - row.optional_inputs) {
      throw InternalError(
          fmt::format("{}: the step has {} of {} inputs", row.name, primitive->inputs.size(), row.inputs));
    }
    return std::make_unique<Interpreted>(*primitive);
  }
  bool runs_groups() const override { return false; }
};

}  // namespace

const compile::Target& target() {
  static const auto* const interpreter = new Interpreter;  // for flushes while the process exits
  return *interpreter;
}

}  // namespace russet::reference
