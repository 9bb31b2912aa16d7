#pragma once
// What gradients reach from the tensors that a backward pass starts at.
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/history.h"
#include "base/numbering.h"

namespace russet::autograd {

/// A leaf, or an entry of the tape and which of its results.
using Place = std::pair<const void*, std::uint32_t>;
Place place_of(const Edge& edge);

/// Where gradients that the caller asked for are kept.
using Wanted = std::map<Place, Tensor>;

/// The entries of the tape that gradients have to reach for what is wanted.
class Leading {
 public:
  Leading(std::span<const Edge> starts, const Wanted& wanted);
  /// Whether the gradient of one of the entry's results is wanted, or leads to what is.
  bool leads(const TapeEntry* entry) const { return ways_.at(entry) != Way::none; }
  /// Whether a gradient of one of its inputs does: otherwise there is no need to compute them.
  bool leads_on(const TapeEntry* entry) const { return ways_.at(entry) == Way::on; }

 private:
  enum class Way : std::uint8_t { none, ends, on };
  std::unordered_map<const TapeEntry*, Way> ways_;
};

/// Leaves that have hooks: the hooks see the gradient as soon as all of it has arrived, as in PyTorch.
class HookedLeaves {
 public:
  struct Arriving {
    Ref<History> leaf;
    std::shared_ptr<LeafHooks> hooks;
    int edges_left = 0;  // that may bring some of the gradient
    Tensor gradient;     // what has arrived so far
  };

  /// Counts the edges to such leaves; `leading`: entries that do not lead are left out, nullptr if there are none.
  void find(std::span<const Edge> starts, const Leading* leading);
  /// nullptr for a leaf without hooks.
  Arriving* at(const Edge& edge) {
    if (!edge.leaf || leaves_.empty()) return nullptr;
    const std::int32_t number = numbers_.find(edge.leaf.get());
    return number < 0 ? nullptr : &leaves_[static_cast<std::size_t>(number)];
  }
  std::vector<Arriving>& all() { return leaves_; }

 private:
  void count(const Edge& edge);

  base::Numbering<History> numbers_;
  std::vector<Arriving> leaves_;  // by number
};

}  // namespace russet::autograd
