// Masks of four elements a byte: groups and epilogues that store and read them.
#include <russet/chips.h>

#include "device/gpu/gpu_kernel.h"
#include "run_group.h"
#include "works.h"

namespace russet::test {
namespace {

constexpr std::int64_t rows = 9, columns = 20, elements = rows * columns;

/// Makes the last access that of a packed mask.
void pack_last(Builder& b) { b.group.accesses.back().packed = true; }

void expect_reference(Builder& b, const char* what) {
  MachineDriver driver;
  Memory wanted = b.memory;
  run_reference(b.group, wanted, {});
  EXPECT_FALSE(wanted == b.memory) << what;
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  EXPECT_TRUE(b.memory == wanted) << what;
}

/// A slot of numbers, about half of them below zero.
int numbers(Builder& b, std::int64_t count) {
  const int slot = b.memory.add(static_cast<std::size_t>(count) * 4);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7919 % 211 - 100));
  write(b.memory, slot, values);
  return slot;
}

int packed_mask(Memory& memory, std::int64_t count) {
  const int slot = memory.add(static_cast<std::size_t>(count) / 4);
  std::vector<std::uint8_t> fours;
  for (std::int64_t i = 0; i < count / 4; ++i) fours.push_back(static_cast<std::uint8_t>(i * 37 % 101 % 16));
  write(memory, slot, fours);
  return slot;
}

int results(Builder& b, std::int64_t count) { return b.memory.add(static_cast<std::size_t>(count) * 4); }

TEST(PackedMasks, AreStored) {
  for (const std::int64_t gap : {0, 4}) {  // behind the rows of what is read
    Builder b(Group::Kind::elementwise, {rows, columns}, 2);
    const auto x = b.load(numbers(b, rows * (columns + gap)), DType::float32, {columns + gap, 1});
    const auto zero = b.constant(DType::float32, 0, 0);
    b.store(b.compute(Op::maximum, DType::float32, x, zero), results(b, elements), {columns, 1});
    b.store(b.compute(Op::lt, DType::boolean, zero, x), b.memory.add(elements / 4), {columns, 1});
    pack_last(b);
    expect_reference(b, gap == 0 ? "one line" : "lines");
  }
}

/// Elements that a mask chooses, over rows of the mask's own length or, from a place that is no multiple of four, one
/// at a time; the mask as it lies or transposed, of one row for all, and of one column.
TEST(PackedMasks, AreReadByElementwiseGroups) {
  const auto expect = [](const Shape& space, const Strides& mask, std::int64_t offset, const char* what) {
    Builder b(Group::Kind::elementwise, space, 2);
    const auto x = b.load(numbers(b, elements + 4), DType::float32, {space[1], 1}, Extent::full, offset);
    const auto chosen = b.load(packed_mask(b.memory, elements), DType::boolean, mask);
    pack_last(b);
    const auto zero = b.constant(DType::float32, 0, 0);
    b.store(b.compute(Op::where, DType::float32, chosen, x, zero), results(b, elements), {space[1], 1});
    expect_reference(b, what);
  };
  expect({rows, columns}, {columns, 1}, 0, "vectors");
  expect({rows, columns}, {columns, 1}, 1, "elements");
  expect({columns, rows}, {1, columns}, 0, "transposed");
  expect({rows, columns}, {0, 1}, 0, "one row");
  expect({rows, columns}, {columns, 0}, 0, "one column");
}

/// Sums of what a mask chooses: of columns by rounds of several rows in vectors, by single columns, and of rows.
TEST(PackedMasks, AreReadByReductions) {
  const auto expect = [](Group::Kind kind, const Shape& space, const char* what) {
    Builder b(kind, space, 1);
    const std::int64_t count = space[0] * space[1];
    const auto x = b.load(numbers(b, count), DType::float32, {space[1], 1});
    const auto chosen = b.load(packed_mask(b.memory, count), DType::boolean, {space[1], 1});
    pack_last(b);
    const auto zero = b.constant(DType::float32, 0, 0);
    const auto sum = b.reduce(Op::sum, DType::float32, b.compute(Op::where, DType::float32, chosen, x, zero));
    const bool is_row = kind == Group::Kind::row;
    b.store(sum, results(b, space[is_row ? 0 : 1]), is_row ? Strides{1, 0} : Strides{0, 1}, Extent::reduced);
    expect_reference(b, what);
  };
  expect(Group::Kind::column, {300, 40}, "columns in vectors");
  expect(Group::Kind::column, {60, 12}, "few columns");
  expect(Group::Kind::column, {36, 33}, "columns of an odd number");
  expect(Group::Kind::row, {9, 300}, "rows");
  expect(Group::Kind::row, {12, 33}, "rows of an odd length");
}

/// Once for each column.
TEST(PackedMasks, AreReadAfterReductions) {
  Builder b(Group::Kind::column, {rows, columns}, 1);
  const auto sum = b.reduce(Op::sum, DType::float32, b.load(numbers(b, elements), DType::float32, {columns, 1}));
  const auto chosen = b.load(packed_mask(b.memory, columns), DType::boolean, {0, 1}, Extent::reduced);
  pack_last(b);
  const auto zero = b.constant(DType::float32, 0, 0);
  b.store(b.compute(Op::where, DType::float32, chosen, sum, zero, Extent::reduced), results(b, columns), {0, 1},
          Extent::reduced);
  expect_reference(b, "after a reduction");
}

/// Elements of a product that a mask chooses.
compile::Primitive chosen_product(Works& works, std::int64_t width, int mask) {
  works.product(40, width, 64, false, true);
  auto product = std::get<compile::Primitive>(works.list.back());
  compile::Group& after = product.epilogue;
  after.space = product.output.sizes;
  after.split = 2;
  Access sums = product.output.access;
  sums.slot = -1;
  after.accesses = {sums, {mask, DType::boolean, 0, -1, {width, 1}}, product.output.access};
  after.code = {{.kind = Kind::load, .dtype = DType::float32, .access = 0},
                {.kind = Kind::load, .dtype = DType::boolean, .access = 1},
                {.kind = Kind::constant, .dtype = DType::float32},
                {.kind = Kind::compute, .op = Op::where, .dtype = DType::float32, .inputs = {1, 0, 2}},
                {.kind = Kind::store, .dtype = DType::float32, .inputs = {3, -1, -1}, .access = 2}};
  return product;
}

void expect_the_same_product(MachineDriver& driver, std::int64_t width, const char* kernel) {
  Works works;
  const int packed = packed_mask(works.memory, 40 * width);
  const int plain = works.memory.add(static_cast<std::size_t>(40 * width));
  std::vector<std::uint8_t> mask;
  for (std::int64_t i = 0; i < 40 * width; ++i) {
    mask.push_back(std::to_integer<std::uint8_t>(works.memory.slot(packed)[i / 4] >> i % 4 & std::byte{1}));
  }
  write(works.memory, plain, mask);
  compile::Primitive product = chosen_product(works, width, plain);
  std::vector<std::byte> results[2];
  for (const bool is_packed : {false, true}) {
    Access& access = product.epilogue.accesses[1];
    if (is_packed) access = {packed, DType::boolean, 0, -1, {width, 1}, true};
    const auto compiled = driver.target().compile(product);
    EXPECT_EQ(compiled->name().find(kernel), 0U) << compiled->name();
    run_on(driver, *compiled, works.memory, {});
    const std::byte* const from = works.memory.slot(product.output.access.slot);
    results[is_packed ? 1 : 0].assign(from, from + 40 * width * 4);
  }
  EXPECT_EQ(results[0], results[1]) << width;
  EXPECT_NE(results[0], std::vector<std::byte>(results[0].size()));
}

TEST(PackedMasks, AreReadByEpilogues) {
  MachineDriver plain;
  expect_the_same_product(plain, 36, "tiles");
  MachineDriver warpgroups;
  warpgroups.adjust = [](gpu::Properties& properties) { properties.has_warpgroups = true; };
  expect_the_same_product(warpgroups, 36, "split product");  // four columns at once
}

TEST(PackedMasks, TakeAQuarterOfTheBytes) {
  const gpu::Region region = gpu::place({0, DType::boolean, 0, -1, {columns, 1}, true}, {rows, columns}, false).region;
  EXPECT_EQ(region.offset, 0);
  EXPECT_EQ(region.bytes, elements / 4);
}

TEST(PackedMasks, AreTakenWhereTheDeviceStoresThem) {
  const auto stored = [](std::int64_t length, std::int64_t offset) {
    Builder b(Group::Kind::elementwise, {rows, length}, 2);
    const auto x = b.load(0, DType::float32, {length, 1}, Extent::full, offset);
    b.store(b.compute(Op::lt, DType::boolean, x, x), 1, {length, 1});
    pack_last(b);
    return b.group;
  };
  MachineDriver packs;
  packs.adjust = [](gpu::Properties& properties) { properties.packs_masks = true; };
  EXPECT_TRUE(packs.target().packs_masks(stored(columns, 0)));
  EXPECT_FALSE(packs.target().packs_masks(stored(columns, 1)));  // an element a thread
  EXPECT_FALSE(packs.target().packs_masks(stored(7, 0)));
  EXPECT_FALSE(MachineDriver().target().packs_masks(stored(columns, 0)));
  Builder sums(Group::Kind::column, {rows, columns}, 1);
  const auto x = sums.load(0, DType::float32, {columns, 1});
  sums.store(sums.compute(Op::lt, DType::boolean, x, x), 1, {columns, 1});
  pack_last(sums);
  sums.store(sums.reduce(Op::sum, DType::float32, x), 2, {0, 1}, Extent::reduced);
  EXPECT_FALSE(packs.target().packs_masks(sums.group));  // rows, not vectors, may be a thread's
  sums.group.accesses[1].packed = false;
  EXPECT_TRUE(packs.target().packs_masks(sums.group));
}

}  // namespace
}  // namespace russet::test
