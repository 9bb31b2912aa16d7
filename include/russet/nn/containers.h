#pragma once
// Modules of modules.
#include <russet/nn/module.h>
#include <initializer_list>

namespace russet::nn {

/// Modules one after another, named "0", "1", ... unless names are given:
/// Sequential(Linear(784, 10), ReLU()) or Sequential({{"fc", Linear(784, 10)}, {"relu", ReLU()}}).
class Sequential : public Module {
 public:
  Sequential() = default;
  template <std::derived_from<Module>... M>
  requires(sizeof...(M) > 1) explicit Sequential(M... modules) { (push_back(std::move(modules)), ...); }
  template <std::derived_from<Module> M>
  requires(!std::derived_from<M, Sequential>) explicit Sequential(M module) { push_back(std::move(module)); }
  explicit Sequential(std::initializer_list<std::pair<std::string, AnyModule>> modules);

  Tensor forward(const Tensor& x) override;
  void push_back(const AnyModule& module);
  void push_back(const std::string& name, const AnyModule& module);
  std::size_t size() const { return named_children().size(); }
  /// Throws IndexError.
  const AnyModule& operator[](std::size_t place) const;
};

/// Modules in a list, named "0", "1", ...; who holds it calls them.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  explicit ModuleList(std::initializer_list<AnyModule> modules);
  void push_back(const AnyModule& module);
  std::size_t size() const { return named_children().size(); }
  /// Throws IndexError.
  const AnyModule& operator[](std::size_t place) const;
  /// The module at `place` if it is an M. Throws TypeError if it is not.
  template <class M>
  M& at(std::size_t place) const {
    if (M* module = (*this)[place].template as<M>()) return *module;
    throw TypeError("ModuleList: the module at " + std::to_string(place) + " is of another type");
  }
};

}  // namespace russet::nn
