#include "compile/implementation.h"

#include <fmt/format.h>

#include "base/log.h"
#include "ops/table.h"

namespace russet::compile {
namespace {

const base::Log& kernel_log() {
  static const base::Log log("kernels");
  return log;
}

}  // namespace

namespace {

/// Type and sizes, and strides where they are not row-major.
std::string describe(const Operand& operand) {
  std::string text = fmt::format("{}{}", name_of(operand.access.dtype), to_string(operand.sizes));
  if (operand.access.strides != contiguous_strides(operand.sizes)) {
    text += fmt::format(" by {}", to_string(operand.access.strides));
  }
  return text;
}

}  // namespace

std::string describe(const Primitive& primitive) {
  std::string text(ops::row(primitive.op).name);
  for (const Operand& input : primitive.inputs) text += " " + describe(input);
  return fmt::format("{} -> {}", text, describe(primitive.output));
}

void log_refusal(const Primitive& primitive, const char* implementation, const std::string& reason) {
  if (kernel_log().enabled()) kernel_log()("{}: {} declined: {}", describe(primitive), implementation, reason);
}

void log_choice(const Primitive& primitive, const Kernel& kernel) {
  if (kernel_log().enabled()) kernel_log()("{}: {}", describe(primitive), kernel.name());
}

}  // namespace russet::compile
