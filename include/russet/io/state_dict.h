#pragma once
// StateDict: named tensors in the order in which they were added.
#include <russet/tensor.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace russet {

class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;
  using Iterator = std::vector<Entry>::const_iterator;

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) insert(entry.first, entry.second);
  }

  /// Adds a tensor, or replaces the one of that name in its place.
  void insert(std::string name, Tensor tensor) {
    const auto [found, added] = places_.try_emplace(name, entries_.size());
    if (added) {
      entries_.emplace_back(std::move(name), std::move(tensor));
    } else {
      entries_[found->second].second = std::move(tensor);
    }
  }
  /// Adds all of `other`, each name behind `prefix`.
  void insert(const StateDict& other, std::string_view prefix = {}) {
    for (const auto& [name, tensor] : other) insert(std::string(prefix) + name, tensor);
  }
  /// The tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const {
    const auto found = places_.find(std::string(name));
    return found == places_.end() ? nullptr : &entries_[found->second].second;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws IndexError if there is none.
  const Tensor& at(std::string_view name) const {
    if (const Tensor* tensor = find(name)) return *tensor;
    throw IndexError("there is no tensor named \"" + std::string(name) + "\"");
  }
  /// The tensors whose names begin with `prefix`, without it.
  StateDict below(std::string_view prefix) const {
    StateDict chosen;
    for (const auto& [name, tensor] : entries_) {
      if (name.starts_with(prefix)) chosen.insert(name.substr(prefix.size()), tensor);
    }
    return chosen;
  }
  std::size_t size() const { return entries_.size(); }
  /// By place, in the order of insertion.
  const Entry& operator[](std::size_t place) const { return entries_[place]; }
  bool empty() const { return entries_.empty(); }
  Iterator begin() const { return entries_.begin(); }
  Iterator end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace russet
