#pragma once
// Step: one thing that a device does. A plan is a list of steps over a table of memory slots.
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "compile/group.h"

namespace russet::compile {

/// A strided array in a slot.
struct Operand {
  Access access;
  Shape sizes;
  bool operator==(const Operand&) const = default;
};

/// A primitive that is a step of its own: contraction, indexing, window, ordering, a reduction that no group took.
/// `output` is always dense (a permutation of contiguous strides) for contractions, but may be any region.
struct Primitive {
  ops::Op op = ops::Op::leaf;
  ops::Attributes attributes;
  std::vector<Operand> inputs;
  Operand output;
  std::int32_t argument = -1;
  /// Elementwise work on the result before it is stored; empty code means none. Access 0 stands for the result as the
  /// contraction computed it (float32 for 16-bit types, before rounding); its space is the output's sizes.
  Group epilogue;
  bool operator==(const Primitive&) const = default;
};

/// Elementwise groups with one code that neither read nor write what another one writes: one step runs them all, such
/// as the updates of a model's parameters.
struct Bundle {
  std::vector<Group> groups;
  bool operator==(const Bundle&) const = default;
};

using Step = std::variant<Group, Primitive, Bundle>;

/// Calls visit(access, writes) for each access of a step to a slot.
void for_each_access(const Step& step, base::FunctionRef<void(const Access&, bool)> visit);

/// What a replay hands to a kernel.
struct Bindings {
  std::byte* const* slots = nullptr;
  const std::uint64_t* arguments = nullptr;
  std::byte* scratch = nullptr;  // kernel.scratch_bytes(), 64-byte aligned
};

/// A step that is ready to run. Stateless between runs; scratch comes from the plan's arena.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Bindings& bindings) const = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Which implementation this is: "tiles", "onednn:brgconv:avx512_core_amx", ...
  virtual std::string name() const = 0;
  /// How many kernels a device launches for it.
  virtual int launches() const { return 1; }
  /// Why another device runs the step; empty if its own does.
  virtual std::string fallback_reason() const { return {}; }
};

/// What the compiler asks a device while it makes a plan.
class Target {
 public:
  virtual ~Target() = default;
  /// The first implementation that accepts. Throws TypeError if none does.
  virtual std::unique_ptr<Kernel> compile(const Step& step) const = 0;
  /// Called with all kernels of a plan before it runs for the first time: devices that compile kernels do it here.
  virtual void prepare(std::span<const std::unique_ptr<Kernel>> /*kernels*/) const {}
  /// Whether the device runs groups with generated code; otherwise every primitive is a step (reference).
  virtual bool runs_groups() const { return true; }
  /// How many groups a bundle may hold; 1 if the device runs none.
  virtual std::size_t largest_bundle() const { return 1; }
  /// The longest row that a row group may hold while full instructions follow its reductions.
  virtual std::int64_t longest_row() const { return 16384; }
  /// Whether the device computes with a type itself. Groups hold nothing that it does not beside what it does.
  virtual bool computes(DType /*dtype*/) const { return true; }
  /// The most accesses to memory that a group may have.
  virtual int max_accesses() const { return 1024; }
  /// Whether a contraction takes this epilogue.
  virtual bool accepts_epilogue(const Primitive& /*contraction with epilogue*/) const { return false; }
  /// The dense strides that a contraction would like for its operand (input i, or -1 for the output).
  virtual Strides preferred_strides(const Primitive& contraction, int operand) const {
    return contiguous_strides(operand < 0 ? contraction.output.sizes
                                          : contraction.inputs[static_cast<std::size_t>(operand)].sizes);
  }
  /// Part of the plan's key: thread count, versions of kernel tables.
  virtual std::uint64_t key() const { return 0; }
};

}  // namespace russet::compile
