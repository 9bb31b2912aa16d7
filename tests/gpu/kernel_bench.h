#pragma once
// Runs single primitives by the hand-written kernels on the simulated GPU, all checks on, and by the reference device.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/step.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/templates/tiles.h"

namespace russet::gputest {

/// How an operand lies in memory.
enum class Layout { contiguous, reversed, channels_last, spaced, flipped };
std::string name_of(Layout layout);

/// What an operand holds before the step runs.
struct Fill {
  double low = -2;
  double high = 2;
  bool whole = false;         // whole numbers, high included
  double nan_share = 0;       // of the elements
  double infinity_share = 0;  // likewise
};

struct Array {
  DType dtype = DType::float32;
  Shape sizes;
  Layout layout = Layout::contiguous;
  Fill fill{};
  unsigned seed = 0;        // of its numbers; 0: by its place among the inputs
  std::int64_t margin = 5;  // elements before and after its own; without prologues, another one than 5 is possible
};

/// The result of another operator, which reads those of a case's inputs that `inputs` names.
struct Companion {
  ops::Op op;
  Array output;
  std::vector<std::size_t> inputs;
};

/// One application of a primitive. The output's layout is `output.layout`.
struct Case {
  std::string name;
  ops::Op op = ops::Op::leaf;
  ops::Attributes attributes;
  std::vector<Array> inputs;
  Array output;
  /// Largest difference allowed, relative to the largest expected value or to `scale` if that is larger.
  double tolerance = 0;
  double scale = 0;
  /// put: the output takes the place of the first input.
  bool in_place = false;
  /// take, put of rows: every third index is out of range, and nobody checks. Expected: what no index names, zeros
  /// where rows are read.
  bool stray_indices = false;
  /// Contractions and sums of pools: the axis of the output along which a bias lies that an epilogue adds before relu;
  /// -1 for none.
  int bias_axis = -1;
  /// Matrix products: an epilogue adds up each column of the result; its squared distances from their mean.
  bool column_sums = false;
  bool of_deviations = false;
  /// Contractions of arrays that are dense: both inputs are read through a prologue that adds 1.
  bool prologues = false;
  /// The prologues store what they compute, for others.
  bool storing = false;
  /// Convolutions of dense images of 16 bits: these are cast by a prologue from planes of float32.
  bool casts_image = false;
  /// Contractions: an epilogue adds the result to a state, and takes that off the output's old value, both in place.
  bool updates = false;
  /// Each launch is cut into so many, if it has as many threadgroups.
  int slices = 1;
  // The GPU has tensor cores, as Apple's have not: it multiplies fragments, or groups of simdgroups multiply.
  bool fragments = false;
  bool warpgroups = false;
  /// Contractions: by the kernel that has a threadgroup for each sample.
  bool by_samples = false;
  /// Attention: what the kernel computes along. A max_pool: where its maxima were, as Op::argmax.
  std::vector<Companion> companions{};
  /// A max_pool: it takes values from where it looks for maxima, as one does that stores where they were.
  bool shares_input = false;
  /// Attention: the last input is drawn by the kernel, at this offset.
  std::optional<std::uint64_t> drawn{};
  /// Contractions: the tile. One without rows: the table's.
  gpu::Tile tile;
};

/// What came of a case: empty if the results agree and the simulator reported nothing.
struct Outcome {
  std::string name;
  std::string kernel;
  std::string complaint;
  int launches = 0;
  int waits = 0;                // of launches for others of the kernel
  std::vector<std::byte> bits;  // of the result, and of the sums of its columns
};

/// Runs all cases; their kernels are compiled together. Cases that every implementation declines complain.
std::vector<Outcome> run(const std::vector<Case>& cases);

/// The bits of a case's result, and of its sums, for comparing kernels that must agree bit for bit.
std::vector<std::byte> result_bits(const Case& one);
/// The tiles that the case may take, the table's first; none if it takes no tiles.
std::vector<gpu::Tile> tiles_of(const Case& one);

/// A case as what another machine needs to run it: text, memory, launches in their order, and what must come out.
struct Recorded {
  struct Launch {
    std::size_t unit = 0;
    std::string kernel;
    std::array<std::uint32_t, 3> groups{};
    std::uint32_t threads = 0;
    std::vector<std::pair<std::size_t, std::size_t>> buffers;  // memory, offset
    std::vector<std::byte> values;
  };
  struct Result {
    std::size_t memory = 0;
    DType dtype = DType::float32;
    std::vector<std::int64_t> places;  // of its elements
    std::vector<double> expected;
    double bound = 0;  // largest difference
  };
  std::string name;
  std::vector<gpu::CompilationUnit> units;
  std::vector<std::vector<std::byte>> memory;
  std::vector<Launch> launches;
  std::vector<Result> results;  // the output, then what the kernel computes or stores besides
};
/// Runs nothing.
Recorded record(const Case& one);

}  // namespace russet::gputest
