// The numbers that a walk gives to nodes, and their record order: nodes within the table's window and older ones alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/node_order.h"
#include "graph/recorder.h"

namespace russet::graph {
namespace {

std::vector<NodeRef> recorded(int count) {
  std::vector<NodeRef> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back(constant(Scalar(i), DType::float32, Device{}));
  return nodes;
}

/// The positions among `nodes` in the order that list() gives after every second node was met, the latest first.
std::vector<std::size_t> listed(NodeOrder& order, const std::vector<NodeRef>& nodes, std::size_t window) {
  order.start(nodes.back()->sequence(), window);
  std::vector<std::size_t> met;
  for (std::size_t i = nodes.size(); i >= 2; i -= 2) {
    EXPECT_EQ(order.number_of(*nodes[i - 1]), static_cast<std::int32_t>(met.size()));
    EXPECT_EQ(order.number_of(*nodes[i - 1]), static_cast<std::int32_t>(met.size()));
    met.push_back(i - 1);
  }
  for (std::size_t i = 0; i < met.size(); ++i) EXPECT_EQ(order.find(*nodes[met[i]]), static_cast<std::int32_t>(i));
  for (std::size_t i = 0; i < nodes.size(); i += 2) EXPECT_EQ(order.find(*nodes[i]), -1);
  std::vector<std::int32_t> numbers;
  order.list(numbers);
  std::vector<std::size_t> positions;
  for (const std::int32_t number : numbers) positions.push_back(met[static_cast<std::size_t>(number)]);
  return positions;
}

TEST(NodeOrder, ListsRecordOrderWhateverTheWindow) {
  const std::vector<NodeRef> nodes = recorded(40);
  std::vector<std::size_t> expected;
  for (std::size_t i = 1; i < nodes.size(); i += 2) expected.push_back(i);
  NodeOrder order;
  // The table that a large walk leaves behind is larger than the window of the walks after it.
  for (const std::size_t window :
       {std::size_t{1000}, std::size_t{7}, std::size_t{0}, std::size_t{40}, std::size_t{1}}) {
    EXPECT_EQ(listed(order, nodes, window), expected) << "window " << window;
  }
}

}  // namespace
}  // namespace russet::graph
