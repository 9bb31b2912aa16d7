// Loading a state dict into a module: all or nothing.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/nn/module.h>
#include <russet/runtime.h>

namespace russet::nn {
namespace {

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

/// Batch norm counts its batches since PyTorch 0.4.1. Weights from before lack the count, which then stays as it is.
bool may_be_missing(std::string_view name) { return name.ends_with("num_batches_tracked"); }

}  // namespace

LoadResult Module::load_state_dict(const StateDict& state, bool strict) {
  const StateDict own = state_dict();
  LoadResult result;
  std::vector<std::string> misshaped;
  for (const auto& [name, target] : own) {
    const Tensor* source = state.find(name);
    if (!source || !source->defined()) {
      if (!may_be_missing(name)) result.missing.push_back(name);
    } else if (source->sizes() != target.sizes()) {
      misshaped.push_back(fmt::format("{} ({} in the state dict, {} in the module)", name,
                                      russet::to_string(source->sizes()), russet::to_string(target.sizes())));
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) result.unexpected.push_back(name);
  }
  std::string message;
  if (strict && !result.missing.empty()) message += "\n  missing: " + listed(result.missing);
  if (strict && !result.unexpected.empty()) message += "\n  unexpected: " + listed(result.unexpected);
  if (!misshaped.empty()) message += "\n  of another shape: " + listed(misshaped);
  if (!message.empty()) throw ValueError("load_state_dict: the state dict does not fit the module:" + message);
  const NoGrad guard;
  for (const auto& [name, target] : own) {
    if (const Tensor* source = state.find(name)) target.copy_(*source);
  }
  flush();
  return result;
}

}  // namespace russet::nn
