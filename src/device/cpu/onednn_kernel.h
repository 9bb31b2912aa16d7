#pragma once
// A chain of oneDNN primitives as one kernel: everything is made when the plan is, a run only sets addresses.
#include <string>
#include <vector>

#include "device/cpu/onednn.h"
#include "device/cpu/operand.h"

namespace russet::cpu::onednn {

/// Where a memory object of a primitive lies at run time: an operand of the step, or scratch space.
struct Location {
  compile::Access access{};        // if slot >= 0
  std::size_t scratch_offset = 0;  // otherwise

  static Location operand(const compile::Access& access) { return {access, 0}; }
};

class Kernel final : public compile::Kernel {
 public:
  explicit Kernel(std::string name) : name_(std::move(name)) {}

  /// Scratch space for an array; oneDNN reads and writes no more than that.
  Location reserve(const Desc& desc);
  /// Appends a primitive. Its own scratch space is `scratchpad`.
  struct Argument {
    int id;
    Desc desc;
    Location location;
  };
  void add(dnnl::primitive primitive, std::vector<Argument> arguments, const Desc& scratchpad);
  /// Appends a copy from one layout to another.
  void add_reorder(const Desc& from, const Location& source, const Desc& to, const Location& target);

  void run(const compile::Bindings& bindings) const override;
  std::size_t scratch_bytes() const override { return bytes_; }
  std::string name() const override { return name_; }

 private:
  struct Bound {
    dnnl::memory memory;
    Location location;
    mutable void* address = nullptr;
  };
  struct Execution {
    dnnl::primitive primitive;
    std::vector<Bound> bound;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  std::string name_;
  std::vector<Execution> executions_;
  std::size_t bytes_ = 0;
};

/// Attributes with which a primitive takes its scratch space from us.
dnnl::primitive_attr attributes();

/// oneDNN's type; only float32 and bfloat16 are used.
dnnl::memory::data_type type_of(DType dtype);

}  // namespace russet::cpu::onednn
