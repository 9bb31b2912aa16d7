#pragma once
// How a device picks a kernel for a primitive: ordered lists of implementations, from the specific to the plain. Each
// accepts or says why not; the first that accepts wins, and the log (RUSSET_LOG=kernels) tells what the others said.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "compile/step.h"

namespace russet::compile {

using KernelPtr = std::unique_ptr<Kernel>;

/// An implementation's answer to a primitive: how to make the kernel, or the reason for a refusal.
struct Verdict {
  std::function<KernelPtr()> make;
  std::string reason;
  std::string_view by{};  // the implementation's name, once it has been chosen

  bool accepted() const { return static_cast<bool>(make); }
};

inline Verdict accept(std::function<KernelPtr()> make) { return {std::move(make), {}}; }
inline Verdict decline(std::string reason) { return {nullptr, std::move(reason)}; }

/// `Context`: what a device's implementations know besides the step; nothing on some devices.
template <class... Context>
struct Implementation {
  const char* name;
  Verdict (*judge)(const Primitive& primitive, Context... context);
};

/// The step in words: operator, types and sizes.
std::string describe(const Primitive& primitive);

/// Says in the log that an implementation declined.
void log_refusal(const Primitive& primitive, const char* implementation, const std::string& reason);
/// Says in the log who won.
void log_choice(const Primitive& primitive, const Kernel& kernel);

/// The verdict of the first implementation that accepts; refusals go to the log if `log` is set. Not accepted, with the
/// last reason, if all decline.
template <class... Context>
Verdict choose(std::span<const Implementation<Context...>> implementations, const Primitive& primitive, bool log,
               Context... context) {
  Verdict verdict = decline("there is no implementation");
  for (const Implementation<Context...>& implementation : implementations) {
    verdict = implementation.judge(primitive, context...);
    verdict.by = implementation.name;
    if (verdict.accepted()) break;
    if (log) log_refusal(primitive, implementation.name, verdict.reason);
  }
  return verdict;
}

}  // namespace russet::compile
