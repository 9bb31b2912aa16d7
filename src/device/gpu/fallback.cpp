#include "device/gpu/fallback.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>

#include "base/log.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/host_view.h"
#include "graph/counters.h"
#include "ops/table.h"
#include "runtime/device.h"

namespace russet::gpu {
namespace {

class Fallback final : public compile::Kernel {
 public:
  Fallback(compile::KernelPtr kernel, std::string reason, std::vector<Region> regions, Stream& stream)
      : kernel_(std::move(kernel)), reason_(std::move(reason)), regions_(std::move(regions)), stream_(stream) {}

  void run(const compile::Bindings& bindings) const override {
    HostView view(stream_, regions_, bindings, kernel_->scratch_bytes());
    kernel_->run(view.bindings());
    view.write_back();
    graph::engine_counters().fallbacks.fetch_add(1, std::memory_order_relaxed);
  }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string name() const override { return "cpu:" + kernel_->name(); }
  std::string fallback_reason() const override { return reason_; }

 private:
  compile::KernelPtr kernel_;
  std::string reason_;
  std::vector<Region> regions_;  // that the kernel touches
  Stream& stream_;
};

std::vector<Region> touched_by(const compile::Step& step) {
  std::vector<Region> regions;
  if (const auto* primitive = std::get_if<compile::Primitive>(&step)) {
    for (const compile::Operand& input : primitive->inputs) {
      if (input.access.slot >= 0) regions.push_back(place(input, false).region);
    }
    regions.push_back(place(primitive->output, true).region);
    for (const compile::Companion& companion : primitive->companions) {
      regions.push_back(place(companion.output, true).region);
    }
    return regions;
  }
  const auto& group = std::get<compile::Group>(step);
  for (const compile::Instruction& in : group.code) {
    const bool writes = in.kind == compile::Instruction::Kind::store;
    if (!writes && in.kind != compile::Instruction::Kind::load) continue;
    const compile::Access& access = group.accesses[static_cast<std::size_t>(in.access)];
    if (access.slot >= 0) regions.push_back(place(access, group.space, writes).region);
  }
  return regions;
}

/// What an announcement names: the operators and the type.
std::string subject_of(const compile::Step& step) {
  if (const auto* primitive = std::get_if<compile::Primitive>(&step)) {
    const DType dtype = primitive->inputs.empty() ? primitive->output.access.dtype : primitive->inputs[0].access.dtype;
    return fmt::format("{} of {}", ops::row(primitive->op).name, name_of(dtype));
  }
  const auto& group = std::get<compile::Group>(step);
  std::set<std::string> types;
  std::string operators;
  for (const compile::Instruction& in : group.code) {
    types.emplace(name_of(in.dtype));
    if (in.op == ops::Op::leaf) continue;
    if (!operators.empty()) operators += " ";
    operators += ops::row(in.op).name;
  }
  std::string list;
  for (const std::string& type : types) list += (list.empty() ? "" : ", ") + type;
  return fmt::format("{} of {}", operators.empty() ? "copies" : operators, list);
}

void announce(const std::string& subject, const std::string& reason, DeviceType type) {
  static std::mutex mutex;
  static std::set<std::string> announced;
  const std::lock_guard lock(mutex);
  if (!announced.insert(subject).second) return;
  base::log_line(to_string(Device(type)), fmt::format("{} runs on the cpu: {}", subject, reason));
}

}  // namespace

compile::KernelPtr make_fallback(const compile::Step& step, const std::string& reason, Stream& stream,
                                 DeviceType type) {
  const char* const wish = std::getenv("RUSSET_FALLBACK");
  const std::string subject = subject_of(step);
  if (wish != nullptr && std::string_view(wish) == "error") {
    throw DeviceError(fmt::format("{}: no kernel for {}: {}. RUSSET_FALLBACK=error forbids running it on the cpu.",
                                  to_string(Device(type)), subject, reason));
  }
  const runtime::DeviceDriver* const cpu = runtime::driver_of(DeviceType::cpu);
  if (cpu == nullptr) {
    throw DeviceError(fmt::format("{}: no kernel for {}: {}, and there is no cpu device to run it on",
                                  to_string(Device(type)), subject, reason));
  }
  compile::KernelPtr kernel = cpu->target().compile(step);
  announce(subject, reason, type);
  return std::make_unique<Fallback>(std::move(kernel), reason, touched_by(step), stream);
}

}  // namespace russet::gpu
