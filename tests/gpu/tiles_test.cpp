// Whatever tile a contraction takes, on whatever GPU: the bits are the same. And which tile that is.
#include <gtest/gtest.h>

#include <set>

#include "device/gpu/templates/tiles.h"
#include "gpu/kernel_cases.h"

namespace russet::gputest {
namespace {

using gpu::Tile;
using gpu::TileProblem;
using gpu::TileShape;

constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16};

/// Every tile that a case may take gives what the reference does, and the same bits as the others.
void expect_equal_bits(const std::vector<Case>& cases) {
  std::vector<Case> variants;
  for (const Case& one : cases) {
    const std::vector<Tile> tiles = tiles_of(one);
    EXPECT_GE(tiles.size(), 2U) << one.name;
    for (const Tile& tile : tiles) {
      variants.push_back(one);
      variants.back().tile = tile;
    }
  }
  const std::vector<Outcome> outcomes = run(variants);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].complaint, "") << outcomes[i].name << " by " << outcomes[i].kernel;
    if (i == 0 || outcomes[i].name != outcomes[i - 1].name) continue;
    EXPECT_TRUE(outcomes[i].bits == outcomes[i - 1].bits) << outcomes[i].name << " by " << outcomes[i].kernel;
  }
}

TEST(Tiles, ProductsOfOddSizesInBatches) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    cases.push_back(product(type, {75, 70}, {70, 67}, {75, 67}, Layout::contiguous, Layout::reversed));
    cases.push_back(product(type, {3, 65, 96}, {1, 96, 35}, {3, 65, 35}, Layout::reversed, Layout::contiguous));
  }
  cases.push_back(product(DType::float32, {33, 1}, {1, 34}, {33, 34}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(DType::float32, {33, 32}, {32, 34}, {33, 34}, Layout::flipped, Layout::spaced));
  expect_equal_bits(cases);
}

TEST(Tiles, SplitDepths) {
  std::vector<Case> cases;
  for (const std::int64_t depth : {1500, 1504, 1536}) {
    cases.push_back(
        product(DType::float32, {70, depth}, {depth, 40}, {70, 40}, Layout::contiguous, Layout::contiguous));
  }
  expect_equal_bits(cases);
}

TEST(Tiles, ProloguesAndEpilogues) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    cases.push_back(product(type, {70, 47}, {47, 67}, {70, 67}, Layout::contiguous, Layout::contiguous));
    cases.back().prologues = true;
    cases.back().bias_axis = 1;
  }
  expect_equal_bits(cases);
}

TEST(Tiles, SumsOfColumns) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    for (const std::int64_t rows : {33, 96, 300}) {
      cases.push_back(product(type, {rows, 30}, {30, 75}, {rows, 75}, Layout::contiguous, Layout::contiguous));
      cases.back().column_sums = true;
    }
    cases.back().prologues = true;
  }
  cases.push_back(product(DType::float32, {130, 30}, {30, 20}, {130, 20}, Layout::contiguous, Layout::contiguous));
  cases.back().column_sums = true;
  expect_equal_bits(cases);
}

TEST(Tiles, Convolutions) {
  std::vector<Case> cases;
  const ops::Window window{.stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 1}};
  add_convolutions(cases, DType::float32, {2, 33, 9, 8, 40, 3, 3, window}, Layout::channels_last);
  ops::Window grouped{.padding = {1, 1}, .padding_after = {1, 1}};
  grouped.groups = 2;
  add_convolutions(cases, DType::bfloat16, {2, 66, 7, 6, 70, 3, 2, grouped}, Layout::channels_last);
  expect_equal_bits(cases);
}

// Where a slice of 32 would add products of zeros to a sum of -0, it is no candidate.
TEST(Tiles, SumsThatVanishKeepTheirSign) {
  std::vector<Case> cases;
  for (const std::int64_t depth : {1, 16, 20, 48}) {
    cases.push_back(
        product(DType::float32, {40, depth}, {depth, 40}, {40, 40}, Layout::contiguous, Layout::contiguous));
    cases.back().inputs[0].fill = {1e-30, 2e-30};
    cases.back().inputs[1].fill = {-2e-30, -1e-30};
  }
  expect_equal_bits(cases);
}

TEST(Tiles, ShapesAreClassifiedByWhatFillsTiles) {
  const auto shape = [](std::int64_t rows, std::int64_t columns, std::int64_t batches = 1, std::int64_t splits = 1) {
    return gpu::shape_of({rows, columns, 64, batches, splits, 64});
  };
  EXPECT_EQ(shape(512, 512), TileShape::large);
  EXPECT_EQ(shape(512, 448), TileShape::few);
  EXPECT_EQ(shape(512, 448, 2), TileShape::large);
  EXPECT_EQ(shape(64, 512, 1, 8), TileShape::large);
  EXPECT_EQ(shape(4096, 32), TileShape::tall);
  EXPECT_EQ(shape(32, 4096), TileShape::wide);
  EXPECT_EQ(shape(4032, 32), TileShape::few);
  EXPECT_EQ(shape(32, 32, 1000), TileShape::few);
}

TEST(Tiles, EveryFamilyHasTilesThatFit) {
  const TileProblem problems[] = {{20, 20, 100, 1, 1, 112},   {4096, 20, 40, 1, 1, 48},  {20, 4096, 512, 1, 2, 256},
                                  {4096, 4096, 64, 1, 1, 64}, {64, 64, 2000, 1, 7, 288}, {33, 33, 0, 1, 1, 16}};
  for (const char* const family : {"apple7", "apple8", "apple9", "apple10", "apple99"}) {
    for (const TileProblem& problem : problems) {
      const auto tiles = gpu::candidate_tiles(family, 32768, problem);
      EXPECT_EQ(tiles.front(), gpu::preferred_tile(family, problem));
      std::set<std::string> names;
      for (const Tile& tile : tiles) {
        names.insert(to_string(tile));
        EXPECT_TRUE(problem.rows > 32 || tile.rows == 32);
        EXPECT_TRUE(problem.columns > 32 || tile.columns == 32);
      }
      EXPECT_EQ(names.size(), tiles.size());
    }
  }
}

}  // namespace
}  // namespace russet::gputest
