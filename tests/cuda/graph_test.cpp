// Which launches of a graph wait for which, and when two lists of launches are one graph. No GPU is needed.
#include "device/gpu/cuda/graph.h"

#include <gtest/gtest.h>
#include <russet/error.h>

#include <cstring>
#include <optional>
#include <set>

#include "device/gpu/cuda/graph_cache.h"

namespace russet::cuda {
namespace {

class NoBlock final : public gpu::Block {
  using Block::Block;
};

/// Runs nothing.
class NoPipeline final : public Pipeline {
 public:
  void start(const Grid& /*grid*/, std::span<void*> /*arguments*/, CUstream /*stream*/) const override {}
  CUgraphNode add_to(CUgraph /*graph*/, std::span<const CUgraphNode> /*before*/, const Grid& /*grid*/,
                     std::span<void*> /*arguments*/) const override {
    return nullptr;
  }
};

/// Grants addresses behind which nothing lies.
class NoMemory final : public gpu::BlockSource {
 public:
  std::string limit_name() const override { return "a test's limit"; }
  std::size_t limit() const override { return std::size_t{1} << 30; }
  std::size_t most_of_cut_block() const override { return limit(); }
  std::unique_ptr<gpu::Block> grant(std::size_t bytes) override {
    next_ += std::size_t{1} << 30;
    return std::make_unique<NoBlock>(reinterpret_cast<std::byte*>(next_), bytes);
  }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 40;
};

class Launches : public testing::Test {
 protected:
  gpu::Binding part(std::size_t first, std::size_t count, bool writes) const {
    return {memory_ + first, count, writes};
  }
  /// A launch that reads and writes bytes of the memory.
  void add(LaunchList& list, const std::vector<gpu::Binding>& buffers, std::vector<std::byte> values = {},
           bool change = false, bool is_further_part = false) const {
    gpu::Launch launch;
    launch.pipeline = pipeline_.get();
    launch.buffers = buffers;
    launch.parameters = values;
    launch.parameters_change = change;
    launch.is_further_part = is_further_part;
    list.add(launch, blocks_);
  }

  NoMemory source_;
  gpu::MemoryBlocks blocks_{source_, "cuda"};
  std::byte* memory_ = blocks_.allocate(1000);
  std::shared_ptr<const Pipeline> pipeline_ = std::make_shared<NoPipeline>();
};

using Dependencies = std::vector<std::vector<std::size_t>>;

TEST_F(Launches, WaitForThoseThatConflict) {
  LaunchList list;
  add(list, {part(0, 10, true)});                       // 0
  add(list, {part(10, 10, true)});                      // 1: elsewhere
  add(list, {part(0, 20, false), part(20, 10, true)});  // 2: reads what 0 and 1 wrote
  add(list, {part(5, 1, false), part(40, 10, true)});   // 3: reads what 0 wrote
  add(list, {part(0, 10, true)});                       // 4: writes what 2 and 3 read
  add(list, {part(9, 1, false), part(20, 1, false)});   // 5: reads what 4 and 2 wrote; 4 waited for 2
  EXPECT_EQ(dependencies_of(list), (Dependencies{{}, {}, {1, 0}, {0}, {3, 2}, {4}}));
}

TEST_F(Launches, ThatOnlyReadOrTouchNothingWaitForNothing) {
  LaunchList list;
  add(list, {part(0, 10, false)});
  add(list, {part(0, 10, false), part(0, 0, true)});
  EXPECT_EQ(dependencies_of(list), (Dependencies{{}, {}}));
}

TEST_F(Launches, ThatNeedNoneRunFourAtATime) {
  LaunchList list;
  for (std::size_t i = 0; i < 6; ++i) add(list, {part(10 * i, 10, true)});
  add(list, {part(0, 10, false), part(40, 10, false)});  // 6: reads what 0 and 4 wrote, which waited for 0
  add(list, {part(70, 10, true)});                       // 7: waits for the fourth last of those, not for 6
  EXPECT_EQ(dependencies_of(list), (Dependencies{{}, {}, {}, {}, {0}, {1}, {4}, {2}}));
}

TEST_F(Launches, DoNotWaitForOtherPartsOfTheirOwn) {
  LaunchList list;
  const std::vector<gpu::Binding> parts{part(0, 10, false), part(10, 10, true)};
  add(list, {part(0, 1, true)});      // 0
  add(list, parts);                   // 1: reads what 0 wrote
  add(list, parts, {}, false, true);  // 2
  add(list, parts, {}, false, true);  // 3
  add(list, {part(10, 10, false)});   // 4: reads what they wrote
  add(list, parts);                   // 5: writes what 4 read
  EXPECT_EQ(dependencies_of(list), (Dependencies{{}, {0}, {0}, {0}, {3, 2, 1}, {4}}));
}

TEST_F(Launches, AreTheSameButForWhatChanges) {
  const std::vector<std::byte> one(8, std::byte{1});
  const std::vector<std::byte> two(8, std::byte{2});
  const auto list_of = [&](std::size_t first, const std::vector<std::byte>& fixed, const std::vector<std::byte>& live) {
    LaunchList list;
    add(list, {part(first, 10, true)}, fixed);
    add(list, {part(0, 10, true)}, live, true);
    return list;
  };
  const LaunchList list = list_of(0, one, one);
  for (const LaunchList& same : {list_of(0, one, one), list_of(0, one, two)}) {
    EXPECT_TRUE(list.same_launches(same));
    EXPECT_EQ(list.digest(), same.digest());
  }
  for (const LaunchList& other : {list_of(1, one, one), list_of(0, two, one)}) {
    EXPECT_FALSE(list.same_launches(other));
    EXPECT_NE(list.digest(), other.digest());
  }
  EXPECT_EQ(list_of(0, one, two).changing()[0], std::byte{2});
}

TEST_F(Launches, TakeOtherRunTimeArgumentsInWhatChanges) {
  LaunchList list;
  add(list, {part(0, 10, true)}, std::vector<std::byte>(8, std::byte{7}), true);
  const std::vector<std::byte> values(16, std::byte{1});
  const gpu::Patch patches[] = {{8, 1, gpu::Patch::Form::bits}, {4, 0, gpu::Patch::Form::int32}};
  const std::vector<gpu::Binding> buffers{part(0, 10, true)};
  gpu::Launch launch;
  launch.pipeline = pipeline_.get();
  launch.buffers = buffers;
  launch.parameters = values;
  launch.parameters_change = true;
  launch.patches = patches;
  list.add(launch, blocks_);
  EXPECT_TRUE(list.takes_other_arguments());
  std::vector<std::byte> changing(list.changing().begin(), list.changing().end());
  std::vector<std::byte> wanted = changing;
  const std::size_t second = changing.size() - values.size();  // where its values begin
  const std::uint64_t arguments[] = {0x0102, 0x0304050607080910};
  std::memcpy(wanted.data() + second + 8, &arguments[1], 8);
  const std::uint32_t word = 0x0102;
  std::memcpy(wanted.data() + second + 4, &word, 4);
  list.put_arguments(arguments, changing);
  EXPECT_EQ(changing, wanted);
  launch.buffers_move = true;
  list.add(launch, blocks_);
  EXPECT_FALSE(list.takes_other_arguments());
}

TEST_F(Launches, PointAtTheirArguments) {
  LaunchList list;
  add(list, {part(3, 1, true)}, std::vector<std::byte>(8, std::byte{7}));
  add(list, {part(5, 1, true), part(0, 0, false)}, std::vector<std::byte>(8, std::byte{9}), true);
  const std::vector<void*> first = list.arguments_of(0, nullptr);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(*static_cast<std::byte**>(first[0]), memory_ + 3);
  EXPECT_EQ(*static_cast<std::byte*>(first[1]), std::byte{7});
  std::byte* const changing = memory_ + 256;
  const std::vector<void*> second = list.arguments_of(1, changing);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(*static_cast<std::byte**>(second[0]), memory_ + 5);
  EXPECT_EQ(*static_cast<const std::byte**>(second[1]), blocks_.anywhere());
  EXPECT_EQ(*static_cast<std::byte**>(second[2]), changing);
}

// A stand-in for CUDA's driver writes the address alone into what it makes of a matrix.
TEST_F(Launches, TellOfMatricesInTheirValues) {
  try {
    api();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr std::size_t first = 64;
  constexpr std::size_t second = 192;
  const std::vector<std::byte> values(320, std::byte{7});
  const std::vector<gpu::Binding> buffers{part(0, 512, false), part(512, 256, true)};
  std::vector<gpu::TensorMap> maps{{first, 1, 32, 64, 4, 128, 64, 4}, {second, 0, 0, 64, 4, 128, 64, 4}};
  gpu::Launch launch;
  launch.pipeline = pipeline_.get();
  launch.buffers = buffers;
  launch.parameters = values;
  launch.maps = maps;
  LaunchList list;
  add(list, {part(0, 10, false)}, std::vector<std::byte>(12, std::byte{1}));  // values before them
  list.add(launch, blocks_);
  const std::vector<void*> arguments = list.arguments_of(1, nullptr);
  const auto* const bytes = static_cast<const std::byte*>(arguments.back());
  const auto address_at = [&](std::size_t place) {
    const std::byte* address = nullptr;
    std::memcpy(&address, bytes + place, sizeof(address));
    return address;
  };
  EXPECT_EQ(address_at(first), memory_ + 512 + 32);
  EXPECT_EQ(address_at(second), memory_);
  EXPECT_EQ(bytes[first - 1], std::byte{7});
  maps[0].offset = 8;  // no multiple of 16
  launch.maps = maps;
  EXPECT_THROW(list.add(launch, blocks_), DeviceError);
}

/// A launch that reaches two buffers through a table.
LaunchList list_with_table(const Pipeline& pipeline, const gpu::MemoryBlocks& blocks,
                           const std::vector<gpu::Binding>& buffers) {
  const std::vector<std::byte> table(32);
  const std::vector<std::uint32_t> places{8, 24};
  gpu::Launch launch;
  launch.pipeline = &pipeline;
  launch.buffers = buffers;
  launch.parameters = table;
  launch.parameters_change = true;
  launch.places = places;
  LaunchList list;
  list.add(launch, blocks);
  return list;
}

TEST_F(Launches, WriteAddressesIntoTables) {
  const std::vector<gpu::Binding> buffers{part(7, 1, true), part(100, 1, false)};
  const LaunchList list = list_with_table(*pipeline_, blocks_, buffers);
  EXPECT_EQ(list.arguments_of(0, memory_).size(), 1U);  // the table
  for (const std::size_t i : {0U, 1U}) {
    const std::byte* address = nullptr;
    std::memcpy(&address, list.changing().data() + 8 + i * 16, sizeof(address));
    EXPECT_EQ(address, buffers[i].address);
  }
}

// A plan that runs again may reach other places, for which its graph serves.
TEST_F(Launches, AreTheSameWhereTablesReachOtherPlacesOfABlock) {
  std::byte* const elsewhere = blocks_.allocate(std::size_t{1} << 28);
  const LaunchList one = list_with_table(*pipeline_, blocks_, {part(7, 1, true), part(100, 1, false)});
  const LaunchList near = list_with_table(*pipeline_, blocks_, {part(7, 1, true), part(101, 1, false)});
  const LaunchList far = list_with_table(*pipeline_, blocks_, {part(7, 1, true), {elsewhere, 1, false}});
  EXPECT_TRUE(one.same_launches(near));
  EXPECT_EQ(one.digest(), near.digest());
  EXPECT_FALSE(one.same_launches(far));
  EXPECT_NE(one.digest(), far.digest());
}

// A stand-in for CUDA's driver makes graphs of nothing.
TEST_F(Launches, WhoseContentsComeInTurnHaveAGraphForEach) {
  std::optional<Context> context;
  try {
    context.emplace();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  GraphCache graphs(*context, blocks_);
  std::set<const Graph*> used;
  const auto sends = [&](std::size_t first, int content) {
    LaunchList list;
    for (std::size_t i = 0; i < 4; ++i) {
      add(list, {part(first + i, 1, true)}, std::vector<std::byte>(8, std::byte(content)), true);
    }
    Graph* const graph = graphs.find(list, list.changing(), nullptr);
    used.insert(graph);
    if (graph == nullptr || graph->holds(list.changing())) return false;
    graph->note_sent(list.changing());
    return true;
  };
  EXPECT_FALSE(sends(0, 1));  // seen once: no graph yet
  EXPECT_TRUE(sends(0, 1));
  EXPECT_FALSE(sends(0, 1));
  EXPECT_TRUE(sends(0, 2));
  EXPECT_TRUE(sends(0, 1));  // comes again: from now on it has a graph
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(sends(0, 2));
    EXPECT_FALSE(sends(0, 1));
  }
  EXPECT_EQ(used.size(), 3U);  // with none for the first
  for (int content = 3; content < 20; ++content) EXPECT_TRUE(sends(0, content));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(sends(0, 3 + i % 3));  // three of them: there are no more graphs
  EXPECT_EQ(used.size(), 3U);
  EXPECT_FALSE(sends(50, 1));  // other launches
  EXPECT_TRUE(sends(50, 1));
  EXPECT_EQ(used.size(), 4U);
  for (int content = 2; content < 8; ++content) EXPECT_TRUE(sends(50, content));
  EXPECT_TRUE(sends(50, 1));  // comes again, but too late for a graph of its own
  EXPECT_EQ(used.size(), 4U);
}

}  // namespace
}  // namespace russet::cuda
