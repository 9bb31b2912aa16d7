// Modules of modules.
#include <fmt/format.h>
#include <russet/nn/containers.h>

namespace russet::nn {
namespace {

const AnyModule& child_at(const char* what, const NamedModules& children, std::size_t place) {
  if (place < children.size()) return children[place].second;
  throw IndexError(fmt::format("{}: there is no module {} among {}", what, place, children.size()));
}

}  // namespace

Sequential::Sequential(std::initializer_list<std::pair<std::string, AnyModule>> modules) {
  for (const auto& [name, module] : modules) push_back(name, module);
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& [name, module] : named_children()) y = module.get()(y);
  return y;
}

void Sequential::push_back(const AnyModule& module) { push_back(std::to_string(size()), module); }
void Sequential::push_back(const std::string& name, const AnyModule& module) { register_module(name, module); }

const AnyModule& Sequential::operator[](std::size_t place) const {
  return child_at("Sequential", named_children(), place);
}

ModuleList::ModuleList(std::initializer_list<AnyModule> modules) {
  for (const AnyModule& module : modules) push_back(module);
}

void ModuleList::push_back(const AnyModule& module) { register_module(std::to_string(size()), module); }

const AnyModule& ModuleList::operator[](std::size_t place) const {
  return child_at("ModuleList", named_children(), place);
}

}  // namespace russet::nn
