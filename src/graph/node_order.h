#pragma once
// NodeOrder: numbers the nodes that a walk meets, and lists them in record order. Nodes themselves carry no marks, so
// threads walk one graph side by side.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/numbering.h"
#include "graph/node.h"

namespace russet::graph {

/// Most nodes of a flush were recorded shortly before it: those have a place in a table by their sequence number, which
/// needs no hashing, and no sorting afterwards. The others, such as parameters that were set long ago, are hashed.
class NodeOrder {
 public:
  /// Starts a walk. `latest`: the largest sequence number that it meets; `recent`: how many numbers up to that one are
  /// looked up in the table.
  void start(std::uint64_t latest, std::size_t recent) {
    std::fill_n(recent_.begin(), used_, nobody);
    if (recent_.size() < recent) recent_.resize(recent, nobody);
    window_ = recent;
    older_.clear();
    numbers_of_older_.clear();
    latest_ = latest;
    used_ = 0;
    count_ = 0;
  }

  /// The node's number: 0, 1, 2, ... in the order in which nodes are met.
  std::int32_t number_of(const Node& node) {
    const std::uint64_t age = latest_ - node.sequence();
    if (age >= window_) return number_of_older(node);
    std::int32_t& number = recent_[age];
    if (number == nobody) {
      number = count_++;
      used_ = std::max<std::size_t>(used_, age + 1);
    }
    return number;
  }
  /// Likewise, or -1 for a node that was not met. Its sequence number is not above the latest.
  std::int32_t find(const Node& node) const {
    const std::uint64_t age = latest_ - node.sequence();
    if (age < window_) return recent_[age];
    const std::int32_t place = older_.find(&node);
    return place < 0 ? nobody : numbers_of_older_[static_cast<std::size_t>(place)].second;
  }

  /// The numbers of all nodes in record order.
  void list(std::vector<std::int32_t>& order) {
    order.clear();
    std::sort(numbers_of_older_.begin(), numbers_of_older_.end());
    for (const auto& [sequence, number] : numbers_of_older_) order.push_back(number);
    for (std::size_t age = used_; age-- > 0;) {
      if (recent_[age] != nobody) order.push_back(recent_[age]);
    }
  }

 private:
  static constexpr std::int32_t nobody = -1;

  std::int32_t number_of_older(const Node& node) {
    const auto place = static_cast<std::size_t>(older_.number_of(&node));
    if (place == numbers_of_older_.size()) numbers_of_older_.emplace_back(node.sequence(), count_++);
    return numbers_of_older_[place].second;
  }

  std::vector<std::int32_t> recent_;  // numbers by age; as long as the longest walk so far asked for
  std::size_t window_ = 0;            // of recent_, what this walk uses
  base::Numbering<Node> older_;
  std::vector<std::pair<std::uint64_t, std::int32_t>> numbers_of_older_;  // sequence and number
  std::uint64_t latest_ = 0;
  std::size_t used_ = 0;  // of recent_
  std::int32_t count_ = 0;
};

}  // namespace russet::graph
