#pragma once
// How the CPU picks a kernel for a primitive: ordered lists of implementations, each of which accepts or says why not.
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "compile/step.h"

namespace russet::cpu {

using KernelPtr = std::unique_ptr<compile::Kernel>;

/// An implementation's answer to a primitive: how to make the kernel, or the reason for a refusal.
struct Verdict {
  std::function<KernelPtr()> make;
  std::string reason;

  bool accepted() const { return static_cast<bool>(make); }
};

inline Verdict accept(std::function<KernelPtr()> make) { return {std::move(make), {}}; }
inline Verdict decline(std::string reason) { return {nullptr, std::move(reason)}; }

struct Implementation {
  const char* name;
  Verdict (*judge)(const compile::Primitive& primitive);
};

/// The implementations of an operator, from the specific to the plain; the last accepts everything.
std::span<const Implementation> implementations(ops::Op op);

/// The verdict of the first implementation that accepts; refusals go to the log if `log` is set. Not accepted, with the
/// last reason, if all decline.
Verdict choose(const compile::Primitive& primitive, bool log);

}  // namespace russet::cpu
