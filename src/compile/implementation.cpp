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

std::string describe(const Primitive& primitive) {
  std::string text(ops::row(primitive.op).name);
  for (const Operand& input : primitive.inputs) {
    text += fmt::format(" {}{}", name_of(input.access.dtype), to_string(input.sizes));
  }
  return fmt::format("{} -> {}{}", text, name_of(primitive.output.access.dtype), to_string(primitive.output.sizes));
}

void log_refusal(const Primitive& primitive, const char* implementation, const std::string& reason) {
  if (kernel_log().enabled()) kernel_log()("{}: {} declined: {}", describe(primitive), implementation, reason);
}

void log_choice(const Primitive& primitive, const Kernel& kernel) {
  if (kernel_log().enabled()) kernel_log()("{}: {}", describe(primitive), kernel.name());
}

}  // namespace russet::compile
