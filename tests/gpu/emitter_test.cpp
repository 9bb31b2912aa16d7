// What the text of emitted kernels depends on, and where launches are divided by barriers.
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <span>

#include "device/gpu/compilations.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/gpu_kernel.h"
#include "run_group.h"

namespace russet::test {
namespace {

/// exp(x) * constant + scalar, [rows, columns] with a row of its own for each row of x or one for all.
Builder scaled(std::int64_t rows, std::int64_t columns, double constant, bool broadcast) {
  Builder b(Group::Kind::elementwise, {rows, columns}, 2);
  b.arguments = {std::bit_cast<std::uint64_t>(0.5)};
  for (int i = 0; i < 2; ++i) b.memory.add(static_cast<std::size_t>(rows * columns) * 4);
  const auto x = b.load(0, DType::float32, {broadcast ? 0 : columns, 1});
  const auto e = b.compute(Op::exp, DType::float32, x);
  const auto c = b.constant(DType::float32, constant, 0);
  const auto s = b.push({.kind = Kind::scalar, .dtype = DType::float32, .argument = 0});
  b.store(b.compute(Op::add, DType::float32, b.compute(Op::mul, DType::float32, e, c), s), 1, {columns, 1});
  return b;
}

/// x / sum(x) along rows.
Builder normalised(std::int64_t rows, std::int64_t columns) {
  Builder b(Group::Kind::row, {rows, columns}, 1);
  for (int i = 0; i < 2; ++i) b.memory.add(static_cast<std::size_t>(rows * columns) * 4);
  const auto x = b.load(0, DType::float32, {columns, 1});
  const auto total = b.reduce(Op::sum, DType::float32, x);
  b.store(b.compute(Op::div, DType::float32, x, total), 1, {columns, 1});
  return b;
}

std::vector<const gpu::Function*> functions_of(const compile::Kernel& kernel) {
  std::vector<const gpu::Function*> functions;
  for (const gpu::Call& call : dynamic_cast<const gpu::GpuKernel&>(kernel).calls()) {
    functions.push_back(call.function.get());
  }
  return functions;
}

TEST(EmittedText, IsTheSameForOtherSizesAndNumbers) {
  MachineDriver driver;
  const auto first = driver.target().compile(scaled(8, 64, 2, false).group);
  const auto batch = driver.target().compile(scaled(96, 64, 3, false).group);
  EXPECT_EQ(functions_of(*first), functions_of(*batch));
  const auto row = driver.target().compile(normalised(64, 100).group);
  const auto rows = driver.target().compile(normalised(640, 120).group);
  EXPECT_EQ(functions_of(*row), functions_of(*rows));
}

/// exp(x) over a space that memory of these strides does not allow to be walked four elements at a time.
Builder over(const Shape& space, const Strides& strides) {
  Builder b(Group::Kind::elementwise, space, space.rank());
  for (int i = 0; i < 2; ++i) b.memory.add(4096);
  const auto x = b.load(0, DType::float32, strides);
  b.store(b.compute(Op::exp, DType::float32, x), 1, contiguous_strides(space));
  return b;
}

TEST(EmittedText, IsTheSameForAllLayouts) {
  MachineDriver driver;
  const auto transposed = driver.target().compile(over({4, 3, 5}, {1, 4, 12}).group);
  const auto sliced = driver.target().compile(over({4, 3, 5}, {60, 11, 2}).group);
  const auto broadcast = driver.target().compile(over({4, 3, 5}, {0, 5, 0}).group);
  const auto other_rank = driver.target().compile(over({2, 4, 3, 5}, {100, 1, 4, 12}).group);
  EXPECT_EQ(functions_of(*transposed), functions_of(*sliced));
  EXPECT_EQ(functions_of(*transposed), functions_of(*broadcast));
  EXPECT_EQ(functions_of(*transposed), functions_of(*other_rank));
  const auto flat = driver.target().compile(over({35}, {1}).group);
  const auto spaced = driver.target().compile(over({4, 5}, {20, 4}).group);
  EXPECT_EQ(functions_of(*flat), functions_of(*driver.target().compile(over({20}, {3}).group)));
  EXPECT_EQ(functions_of(*flat), functions_of(*spaced));  // one axis after all
}

TEST(EmittedText, DiffersWhereTheStructureDoes) {
  MachineDriver driver;
  const auto plain = driver.target().compile(scaled(8, 64, 2, false).group);
  const auto broadcast = driver.target().compile(scaled(8, 64, 2, true).group);
  const auto odd = driver.target().compile(scaled(7, 63, 2, false).group);
  EXPECT_NE(functions_of(*plain), functions_of(*broadcast));
  EXPECT_EQ(functions_of(*plain).front()->source().text.find("float4") == std::string::npos, false);
  EXPECT_EQ(functions_of(*odd).front()->source().text.find("float4"), std::string::npos);
}

/// Selects from x and a constant, with a copy of x besides, and all that is in `memory` for it.
Builder selection(DType type) {
  Builder b(Group::Kind::elementwise, {7, 9}, 2);
  const std::size_t size = size_of(type);
  for (const std::size_t bytes : {std::size_t{63}, 63 * size, 63 * size, 63 * size}) b.memory.add(bytes);
  std::vector<std::uint8_t> numbers;
  for (std::size_t i = 0; i < 63; ++i) numbers.push_back(i % 3 == 0 ? 1 : 0);
  write(b.memory, 0, numbers);
  numbers.clear();
  for (std::size_t i = 0; i < 63 * size; ++i)
    numbers.push_back(static_cast<std::uint8_t>(type == DType::boolean ? i % 2 : i * 37 % 97));
  write(b.memory, 1, numbers);
  const auto condition = b.load(0, DType::boolean, {9, 1});
  const auto x = b.load(1, type, {1, 7});
  b.store(b.compute(Op::where, type, condition, x, b.constant(type, -2.5, -3)), 2, {9, 1});
  b.store(x, 3, {9, 1});
  return b;
}

void expect_reference(MachineDriver& driver, Builder& b, const char* what) {
  Memory expected = b.memory;
  run_reference(b.group, expected, b.arguments);
  run_on(driver, *driver.target().compile(b.group), b.memory, b.arguments);
  EXPECT_TRUE(b.memory == expected) << what;
}

TEST(EmittedText, OfWhatMovesIsTheSameForTypesOfOneSize) {
  MachineDriver driver;
  const std::vector<std::vector<DType>> alike = {{DType::boolean, DType::int8, DType::uint8},
                                                 {DType::int16, DType::float16, DType::bfloat16},
                                                 {DType::int32, DType::float32},
                                                 {DType::int64}};
  std::set<const gpu::Function*> functions;
  std::vector<std::unique_ptr<compile::Kernel>> kernels;  // which functions live as long as
  for (const std::vector<DType>& types : alike) {
    for (const DType type : types) {
      Builder b = selection(type);
      kernels.push_back(driver.target().compile(b.group));
      functions.insert(functions_of(*kernels.back()).front());
      expect_reference(driver, b, std::string(name_of(type)).c_str());
    }
  }
  EXPECT_EQ(functions.size(), alike.size());
}

/// What is computed with keeps its type, and so does all that is read through the same access.
TEST(EmittedText, OfWhatIsComputedKeepsItsType) {
  MachineDriver driver;
  Builder b = selection(DType::float32);
  b.memory.add(63 * 4);
  const auto again = b.push({.kind = Kind::load, .dtype = DType::float32, .access = b.group.code[1].access});
  b.store(b.compute(Op::neg, DType::float32, again), 4, {9, 1});
  expect_reference(driver, b, "another load");

  Builder selected = selection(DType::float32);
  selected.memory.add(63 * 4);
  selected.store(selected.compute(Op::neg, DType::float32, 3), 4, {9, 1});
  expect_reference(driver, selected, "a selection");
}

/// Sums of x, or of its absolute values, over many rows; what is stored of them is divided by a number.
Builder mean(bool absolute) {
  Builder b(Group::Kind::column, {1000, 40}, 1);
  for (const std::size_t bytes : {std::size_t{160000}, std::size_t{160}, std::size_t{160}}) b.memory.add(bytes);
  std::vector<float> numbers;
  for (int i = 0; i < 40000; ++i) numbers.push_back(static_cast<float>(i * 7919 % 211 - 100));
  write(b.memory, 0, numbers);
  auto x = b.load(0, DType::float32, {40, 1});
  if (absolute) x = b.compute(Op::abs, DType::float32, x);
  const auto sum = b.reduce(Op::sum, DType::float32, x);
  const auto count = b.constant(DType::float32, 1.0 / 1024, 0);
  b.store(b.compute(Op::mul, DType::float32, sum, count, -1, Extent::reduced), 1, {0, 1}, Extent::reduced);
  b.store(sum, 2, {0, 1}, Extent::reduced);
  return b;
}

TEST(EmittedText, OfSecondLaunchesSaysNothingOfTheFirst) {
  MachineDriver driver;
  Builder plain = mean(false);
  Builder absolute = mean(true);
  const auto first = driver.target().compile(plain.group);
  const auto second = driver.target().compile(absolute.group);
  ASSERT_EQ(functions_of(*first).size(), 2U);
  EXPECT_NE(functions_of(*first)[0], functions_of(*second)[0]);
  EXPECT_EQ(functions_of(*first)[1], functions_of(*second)[1]);
  expect_reference(driver, plain, "sums");
  expect_reference(driver, absolute, "sums of absolute values");
}

/// The opposite of each element; the sum of each column and what is added to it, the largest element and where it is.
Builder columns_of(std::int64_t rows, std::int64_t columns) {
  Builder b(Group::Kind::column, {rows, columns}, 1);
  const auto whole = static_cast<std::size_t>(rows * columns);
  const auto row = static_cast<std::size_t>(columns);
  for (const std::size_t bytes : {whole * 4, row * 4, row * 4, row * 4, row * 4, whole * 4}) b.memory.add(bytes);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < whole; ++i) numbers.push_back(static_cast<float>(i * 7919 % 211) - 100);
  write(b.memory, 0, numbers);
  numbers.resize(row);
  write(b.memory, 1, numbers);
  const auto x = b.load(0, DType::float32, {columns, 1});
  const auto given = b.load(1, DType::float32, {0, 1}, Extent::reduced);
  const auto sum = b.reduce(Op::sum, DType::float32, x);
  b.store(b.compute(Op::add, DType::float32, sum, given, -1, Extent::reduced), 2, {0, 1}, Extent::reduced);
  b.store(b.reduce(Op::amax, DType::float32, x), 3, {0, 1}, Extent::reduced);
  const auto place = b.reduce(Op::argmax, DType::int64, x);  // elements of 8 bytes are none of vectors
  b.store(b.compute(Op::cast, DType::int32, place, -1, -1, Extent::reduced), 4, {0, 1}, Extent::reduced);
  b.store(b.compute(Op::neg, DType::float32, x), 5, {columns, 1});
  return b;
}

TEST(Columns, EqualTheReferenceHoweverTheyAreDivided) {
  struct Case {
    std::int64_t rows, columns;
    const char* what;
  };
  for (const auto& [rows, columns, what] :
       {Case{11000, 96, "rows that begin at any lane"}, Case{7370, 144, "rows that are longer than a simdgroup"},
        Case{300, 144, "rows of too few elements for that"}, Case{300, 272, "rows that leave few lanes idle"},
        Case{21, 128 * 128, "results in the same launch, of vectors"},
        Case{21, 128 * 128 + 4, "likewise, and the last ones are few"},
        Case{21, 96, "results in the same launch, of elements"}}) {
    MachineDriver driver;
    Builder b = columns_of(rows, columns);
    expect_reference(driver, b, what);
  }
}

// Numbers that differ by the last bit of their mean, which lies between two of them: what the mean is too coarse for
// must be kept from block to block.
TEST(Columns, DeviationsFarFromZeroKeepWhatTheMeanIsTooCoarseFor) {
  constexpr std::int64_t rows = 512 * 544, columns = 8;  // so many that a thread has several blocks
  constexpr float base = 8192;
  const float step = std::nextafter(base, 2 * base) - base;
  MachineDriver driver;
  Builder b(Group::Kind::column, {rows, columns}, 1);
  std::vector<float> x(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / columns;
    const std::size_t column = i % columns;
    x[i] = base + step * static_cast<float>((row * (column + 1) / 3 + row / 700) % (column + 2));
  }
  for (const std::size_t bytes : {x.size() * 4, std::size_t{columns * 4}}) b.memory.add(bytes);
  write(b.memory, 0, x);
  const auto squares = b.reduce(Op::squared_deviations, DType::float32, b.load(0, DType::float32, {columns, 1}));
  b.store(squares, 1, {0, 1}, Extent::reduced);
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  const std::vector<float> got = read<float>(b.memory, 1, columns);
  for (std::size_t column = 0; column < columns; ++column) {
    double mean = 0;
    for (std::size_t i = column; i < x.size(); i += columns) mean += x[i] / static_cast<double>(rows);
    double wanted = 0;
    for (std::size_t i = column; i < x.size(); i += columns) wanted += (x[i] - mean) * (x[i] - mean);
    EXPECT_NEAR(got[column], wanted, 1e-4 * wanted) << column;
  }
}

// A scalar that is added up is read where elements are, though no element is computed from it.
TEST(Columns, AddUpAScalar) {
  MachineDriver driver;
  Builder b(Group::Kind::column, {5000, 4}, 1);
  b.memory.add(16);
  b.store(b.reduce(Op::sum, DType::float32, b.constant(DType::float32, 0.5, 0)), 0, {0, 1}, Extent::reduced);
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  EXPECT_EQ(read<float>(b.memory, 0, 4), std::vector<float>(4, 2500.0F));
}

/// Twice an array of [rows, columns, taps], in the order [rows, taps, columns] whose lines are `pitch` long and, if
/// `both`, in its own order as well.
Builder turned(std::int64_t rows, std::int64_t taps, std::int64_t columns, std::int64_t pitch, bool both) {
  Builder b(Group::Kind::elementwise, {rows, taps, columns}, 3);
  const auto elements = static_cast<std::size_t>(rows * taps * pitch);
  for (int i = 0; i < 3; ++i) b.memory.add(elements * 4);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(i % 1009);
    std::memcpy(b.memory.slot(0) + i * 4, &value, 4);
  }
  const Strides own{columns * taps, 1, taps};
  const auto x = b.load(0, DType::float32, own);
  const auto twice = b.compute(Op::add, DType::float32, x, x);
  b.store(twice, 1, {taps * pitch, pitch, 1});
  if (both) b.store(twice, 2, own);
  return b;
}

// Whole fours of columns, gathered; lines that are longer than the columns; results in two orders; few elements;
// columns that are no fours; more taps than threads take side by side.
TEST(Elementwise, GathersWhatLiesInAnotherOrder) {
  MachineDriver driver;
  for (const Builder& group :
       {turned(32, 9, 512, 512, false), turned(32, 9, 512, 520, false), turned(32, 9, 512, 512, true),
        turned(2, 9, 16, 16, false), turned(33, 9, 510, 512, false), turned(8, 48, 512, 512, false)}) {
    Memory wanted = group.memory;
    Memory found = group.memory;
    run_reference(group.group, wanted, {});
    run_on(driver, *driver.target().compile(group.group), found, {});
    EXPECT_TRUE(found == wanted) << to_string(group.group);
  }
}

/// An image of `channels` planes, `pitch` apart, times a factor of each, with channels side by side in bfloat16.
Builder interleaved(std::int64_t images, std::int64_t pixels, std::int64_t channels, std::int64_t pitch) {
  Builder b(Group::Kind::elementwise, {images, pixels, channels}, 3);
  const auto elements = static_cast<std::size_t>(images * channels * pitch);
  for (const std::size_t bytes : {elements * 4, static_cast<std::size_t>(channels) * 4, elements * 2}) {
    b.memory.add(bytes);
  }
  std::vector<float> x(elements);
  for (std::size_t i = 0; i < elements; ++i) x[i] = static_cast<float>(i % 1009);
  write(b.memory, 0, x);
  std::vector<float> factors{1, 0.5F, -1, 2, 3};
  factors.resize(static_cast<std::size_t>(channels));
  write(b.memory, 1, factors);
  const auto value = b.compute(Op::mul, DType::float32, b.load(0, DType::float32, {channels * pitch, 1, pitch}),
                               b.load(1, DType::float32, {0, 0, 1}));
  b.store(b.compute(Op::cast, DType::bfloat16, value), 2, {pixels * channels, channels, 1});
  return b;
}

// Whole fours of pixels; planes that begin anywhere; pixels that are no fours; channels that are one vector, or more
// than that; one channel; few elements.
TEST(Elementwise, PutsPlanesSideBySide) {
  MachineDriver driver;
  for (const Builder& group :
       {interleaved(4, 16384, 3, 16384), interleaved(4, 16384, 3, 16387), interleaved(4, 16382, 3, 16384),
        interleaved(3, 16384, 4, 16384), interleaved(2, 16384, 5, 16384), interleaved(8, 16384, 1, 16384),
        interleaved(2, 64, 3, 64)}) {
    Memory wanted = group.memory;
    Memory found = group.memory;
    run_reference(group.group, wanted, {});
    run_on(driver, *driver.target().compile(group.group), found, {});
    EXPECT_TRUE(found == wanted) << to_string(group.group);
  }
}

/// What is passed on as it is may be rounded where it is stored; what is compared or computed with is rounded before.
TEST(Elementwise, RoundsOnceWhatIsPassedOnToAStore) {
  constexpr std::int64_t count = 512;
  MachineDriver driver;
  const auto rounds = [&](const auto& compute) {
    Builder b(Group::Kind::elementwise, {count}, 1);
    for (int slot = 0; slot < 3; ++slot) b.memory.add(static_cast<std::size_t>(count) * 2);
    for (int slot = 0; slot < 2; ++slot) {
      std::vector<bfloat16> numbers;
      for (int i = 0; i < count; ++i) numbers.emplace_back(static_cast<float>((i * (slot + 5)) % 101 - 50) * 0.37F);
      write(b.memory, slot, numbers);
    }
    const auto x = b.load(0, DType::bfloat16, {1});
    const auto y = b.load(1, DType::bfloat16, {1});
    b.store(compute(b, b.compute(Op::add, DType::bfloat16, x, y), y), 2, {1});
    Memory wanted = b.memory;
    run_reference(b.group, wanted, {});
    const auto kernel = driver.target().compile(b.group);
    run_on(driver, *kernel, b.memory, {});
    EXPECT_TRUE(b.memory == wanted) << to_string(b.group);
    return functions_of(*kernel)[0]->source().text.find("rounded_bfloat") != std::string::npos;
  };
  const DType type = DType::bfloat16;
  EXPECT_FALSE(rounds([&](Builder& b, auto sum, auto y) { return b.compute(Op::maximum, type, sum, y); }));
  EXPECT_FALSE(rounds([&](Builder& b, auto sum, auto y) {
    return b.compute(Op::neg, type, b.compute(Op::minimum, type, b.compute(Op::abs, type, sum), y));
  }));
  EXPECT_FALSE(rounds([&](Builder& b, auto sum, auto y) {
    return b.compute(Op::where, type, b.compute(Op::lt, DType::boolean, y, y), sum, y);
  }));
  EXPECT_TRUE(rounds([&](Builder& b, auto sum, auto y) {
    return b.compute(Op::where, type, b.compute(Op::lt, DType::boolean, sum, y), sum, y);
  }));
  EXPECT_TRUE(rounds(
      [&](Builder& b, auto sum, auto y) { return b.compute(Op::maximum, type, b.compute(Op::mul, type, sum, y), y); }));
}

/// Which groups are worth it: of long planes that are few, behind what lies along them, with whole elements as results.
TEST(Elementwise, TakesVectorsOfPlanesOnlyWhereThatIsQuick) {
  MachineDriver driver;
  const auto takes_vectors = [&](const Builder& b) {
    const auto kernel = driver.target().compile(b.group);
    return functions_of(*kernel).front()->source().text.find("uint k = 0u") != std::string::npos;
  };
  EXPECT_TRUE(takes_vectors(interleaved(4, 16384, 3, 16384)));
  EXPECT_FALSE(takes_vectors(interleaved(4, 16382, 3, 16384)));
  EXPECT_FALSE(takes_vectors(interleaved(4, 16384, 4, 16384)));
  EXPECT_FALSE(takes_vectors(interleaved(2, 64, 3, 64)));
  Builder factors = interleaved(4, 16384, 3, 16384);
  for (compile::Access& access : factors.group.accesses) {
    if (access.slot == 0) access.strides = {3, 0, 1};
  }
  EXPECT_FALSE(takes_vectors(factors));
  Builder mask = interleaved(4, 16384, 3, 16384);
  mask.group.accesses.back().packed = true;
  EXPECT_FALSE(gpu::stores_whole_bytes(mask.group));
}

TEST(EmittedText, LoadsARowOnce) {
  MachineDriver driver;
  const auto kernel = driver.target().compile(normalised(64, 1024).group);
  const std::string& text = functions_of(*kernel).front()->source().text;
  const std::size_t first = text.find("float4*)(a0");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("float4*)(a0", first + 1), std::string::npos) << text;
}

/// RUSSET_COMPILATIONS, while it lives.
struct Compilations {
  explicit Compilations(const char* value) { setenv(name, value, 1); }
  ~Compilations() { before ? setenv(name, before->c_str(), 1) : unsetenv(name); }
  static constexpr const char* name = "RUSSET_COMPILATIONS";
  const std::optional<std::string> before =
      std::getenv(name) == nullptr ? std::nullopt : std::optional<std::string>(std::getenv(name));
};

TEST(EmittedText, UnitsAreHalfAgainAsManyAsAreCompiledAtOnce) {
  const Compilations four("4");
  MachineDriver driver;
  std::vector<std::unique_ptr<compile::Kernel>> kernels;
  for (const Op op : {Op::neg, Op::abs, Op::exp, Op::log, Op::sqrt, Op::sin, Op::cos, Op::tan, Op::floor, Op::ceil}) {
    Builder b(Group::Kind::elementwise, {100}, 1);
    for (int i = 0; i < 2; ++i) b.memory.add(400);
    b.store(b.compute(op, DType::float32, b.load(0, DType::float32, {1})), 1, {1});
    kernels.push_back(driver.target().compile(b.group));
  }
  driver.target().prepare(kernels);
  EXPECT_EQ(driver.units_built, 6);
  driver.target().prepare(kernels);
  EXPECT_EQ(driver.units_built, 6);  // known by now
}

TEST(EmittedText, ANumberOfCompilationsIsRefusedThatIsNone) {
  for (const char* const wrong : {"0", "-1", "many", "2 ", ""}) {
    const Compilations wish(wrong);
    EXPECT_THROW(gpu::compilations_at_once(), russet::ValueError) << wrong;
  }
}

/// Reductions whose result lies outside of what GroupFuzz makes: over no element, and over single ones.
TEST(Reductions, OfNothingAndOfSingleElements) {
  MachineDriver driver;
  Builder nothing(Group::Kind::column, {0, 3}, 1);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{12}}) nothing.memory.add(bytes);
  nothing.store(nothing.reduce(Op::prod, DType::float32, nothing.load(0, DType::float32, {3, 1})), 1, {0, 1},
                Extent::reduced);
  run_on(driver, *driver.target().compile(nothing.group), nothing.memory, {});
  EXPECT_EQ(read<float>(nothing.memory, 1, 3), (std::vector<float>{1, 1, 1}));

  Builder single(Group::Kind::column, {3}, 0);
  for (const std::size_t bytes : {std::size_t{12}, std::size_t{24}}) single.memory.add(bytes);
  write(single.memory, 0, std::vector<float>{5, 6, 7});
  write(single.memory, 1, std::vector<std::int64_t>{9, 9, 9});
  single.store(single.reduce(Op::argmax, DType::int64, single.load(0, DType::float32, {1})), 1, {1}, Extent::full);
  run_on(driver, *driver.target().compile(single.group), single.memory, {});
  EXPECT_EQ(read<std::int64_t>(single.memory, 1, 3), (std::vector<std::int64_t>{0, 0, 0}));
}

/// (x - mean) / sqrt(variance + 1), the sum and the largest element of each row of `x`.
Builder standardised(std::int64_t rows, std::int64_t columns, const std::vector<float>& x) {
  Builder b(Group::Kind::row, {rows, columns}, 1);
  const auto all = static_cast<std::size_t>(rows * columns) * 4;
  for (const std::size_t bytes : {all, all, static_cast<std::size_t>(rows) * 4, static_cast<std::size_t>(rows) * 8}) {
    b.memory.add(bytes);
  }
  write(b.memory, 0, x);
  const auto value = b.load(0, DType::float32, {columns, 1});
  const auto share = b.constant(DType::float32, 1.0 / static_cast<double>(columns), 0);
  const auto total = b.reduce(Op::sum, DType::float32, value);
  const auto reduced = [&](Op op, std::int16_t first, std::int16_t second = -1) {
    return b.compute(op, DType::float32, first, second, -1, Extent::reduced);
  };
  const auto mean = reduced(Op::mul, total, share);
  const auto squares = b.reduce(Op::squared_deviations, DType::float32, value);
  const auto variance = reduced(Op::mul, squares, share);
  const auto one = b.constant(DType::float32, 1, 0);
  const auto factor = reduced(Op::rsqrt, reduced(Op::add, variance, one));
  const auto distance = b.compute(Op::sub, DType::float32, value, mean);
  b.store(b.compute(Op::mul, DType::float32, distance, factor), 1, {columns, 1});
  b.store(variance, 2, {1, 0}, Extent::reduced);
  b.store(b.reduce(Op::argmax, DType::int64, value), 3, {1, 0}, Extent::reduced);
  return b;
}

/// What standardised() gives, in double.
void expect_standardised(Builder& b, const std::vector<float>& x, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(columns);
  const std::vector<float> got = read<float>(b.memory, 1, x.size());
  const std::vector<float> variances = read<float>(b.memory, 2, x.size() / count);
  const std::vector<std::int64_t> places = read<std::int64_t>(b.memory, 3, x.size() / count);
  for (std::size_t row = 0; row < x.size() / count; ++row) {
    const std::span<const float> elements(x.data() + row * count, count);
    double mean = 0;
    for (const float element : elements) mean += element;
    mean /= static_cast<double>(count);
    double variance = 0;
    for (const float element : elements) variance += (element - mean) * (element - mean);
    variance /= static_cast<double>(count);
    ASSERT_NEAR(variances[row], variance, 1e-5 * variance) << row << " of " << columns;
    ASSERT_EQ(places[row], std::max_element(elements.begin(), elements.end()) - elements.begin());
    const double scale = std::abs(mean) * 2e-6 + 1e-5;  // the mean's own rounding
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(got[row * count + i], (elements[i] - mean) / std::sqrt(variance + 1), scale) << row << ", " << i;
    }
  }
}

/// Rows that lanes of a simdgroup share, simdgroups, and threadgroups; whole ones and such as leave lanes idle; far
/// from zero, too.
TEST(Reductions, OfRowsOfAllLengths) {
  MachineDriver driver;
  std::mt19937 random(7);
  for (const std::int64_t columns : {2, 5, 9, 16, 20, 36, 40, 64, 68, 128, 384, 500, 768, 1024, 3000}) {
    for (const std::int64_t rows : {3, 2048, 2051}) {
      if (rows * columns > 3000000) continue;
      for (const float offset : {0.0F, 1e4F}) {
        std::vector<float> x(static_cast<std::size_t>(rows * columns));
        for (float& element : x) element = offset + static_cast<float>(random() % 65536) / 16384.0F;
        Builder b = standardised(rows, columns, x);
        run_on(driver, *driver.target().compile(b.group), b.memory, {});
        expect_standardised(b, x, columns);
        if (HasFailure()) return;
      }
    }
  }
}

/// The sum of such a row is no float.
TEST(Reductions, OfRowsOfLargestNumbers) {
  MachineDriver driver;
  const std::vector<float> x(4 * 256, 3e38F);
  Builder b(Group::Kind::row, {4, 256}, 1);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{16}, std::size_t{4096}}) b.memory.add(bytes);
  write(b.memory, 0, x);
  const auto value = b.load(0, DType::float32, {256, 1});
  const auto squares = b.reduce(Op::squared_deviations, DType::float32, value);
  b.store(squares, 1, {1, 0}, Extent::reduced);
  b.store(b.compute(Op::mul, DType::float32, value, squares), 2, {256, 1});
  run_on(driver, *driver.target().compile(b.group), b.memory, {});
  EXPECT_EQ(read<float>(b.memory, 1, 4), std::vector<float>(4, 0.0F));
}

/// Counts what a stream asks for.
class CountingDriver final : public gpu::Driver {
 public:
  runtime::DeviceProperties properties() const override { return {}; }
  const compile::Target& target() const override { throw std::logic_error("no target"); }
  gpu::Properties gpu_properties() const override { return {}; }
  std::byte* allocate(std::size_t) override { return nullptr; }
  void release(std::byte*, std::size_t) override {}
  void upload(std::byte*, std::span<const std::byte>) override {}
  void clear(std::byte*, std::size_t) override {}
  void download(std::span<std::byte>, const std::byte*) override {}
  std::vector<std::shared_ptr<const gpu::Pipeline>> build(std::span<const gpu::CompilationUnit>) override { return {}; }
  void launch(const gpu::Launch&) override {}
  const void* block_of(const std::byte*, std::size_t) const override { return nullptr; }
  void barrier() override { ++barriers; }
  void commit() override {}
  int barriers = 0;
};

TEST(Stream, DividesExactlyWhatConflicts) {
  CountingDriver driver;
  gpu::Stream stream(driver);
  std::array<std::byte, 1024> memory{};
  const auto launch = [&](std::initializer_list<gpu::Binding> buffers, bool is_further_part = false) {
    const int before = driver.barriers;
    gpu::Launch launch{nullptr, {1, 1, 1}, 32, std::span(buffers.begin(), buffers.size()), {}};
    launch.is_further_part = is_further_part;
    stream.launch(launch);
    return driver.barriers - before;
  };
  const auto at = [&](std::size_t begin, std::size_t end, bool writes) {
    return gpu::Binding{memory.data() + begin, end - begin, writes};
  };
  EXPECT_EQ(launch({at(0, 100, false), at(200, 300, true)}), 0);
  EXPECT_EQ(launch({at(50, 150, false), at(300, 400, true)}), 0);  // reads meet, writes touch
  EXPECT_EQ(launch({at(299, 300, false)}), 1);                     // reads what was written
  EXPECT_EQ(launch({at(299, 300, false)}), 0);                     // two readers
  EXPECT_EQ(launch({at(250, 310, true)}), 1);                      // overwrites what was read
  EXPECT_EQ(launch({at(0, 250, true), at(310, 400, true)}), 0);    // beside it
  EXPECT_EQ(launch({at(309, 310, true)}), 1);                      // overwrites what was written
  EXPECT_EQ(launch({at(300, 300, true)}), 0);                      // nothing
  EXPECT_EQ(launch({at(309, 310, true)}, true), 0);                // other bytes of the same range
  EXPECT_EQ(launch({at(309, 310, false)}), 1);                     // reads them
}

}  // namespace
}  // namespace russet::test
