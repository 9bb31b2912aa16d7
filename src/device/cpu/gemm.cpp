#include "device/cpu/gemm.h"

#include <fmt/format.h>

#include "base/parallel.h"
#include "device/cpu/gemm_pack.h"
#include "device/cpu/gemm_tile.h"

namespace russet::cpu {
namespace {

using compile::Access;
using compile::Bindings;
using compile::Primitive;

constexpr std::size_t line = 64;
constexpr std::size_t round_up(std::size_t bytes) { return (bytes + line - 1) / line * line; }
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Depth of a block: a panel of b (32 x 256 floats) fits the first-level cache.
constexpr std::int64_t block_inner = 256;
/// Products with fewer blocks than this and at least twice this depth are cut along the depth as well.
constexpr std::int64_t few_blocks = 8;
constexpr std::int64_t part_inner = 1024;

/// Where an operand of the epilogue lies, as a matrix alongside c.
struct OperandMatrix {
  Matrix matrix;
  Access access;
};

/// How the work is cut: blocks of c, and parts of the depth that are summed afterwards.
struct Cut {
  std::int64_t block_rows, block_columns, parts, part_depth;
  std::int64_t row_blocks, column_blocks;

  std::int64_t blocks() const { return row_blocks * column_blocks; }
};

Cut cut(const Product& product, int tile_rows, int tile_columns) {
  const std::int64_t m = product.rows();
  const std::int64_t n = product.columns();
  const std::int64_t matrices = numel(product.batch);
  Cut cut{};
  cut.block_rows = 8 * tile_rows;
  cut.block_columns = 16 * tile_columns;
  const auto count = [&] {
    cut.row_blocks = divide_up(m, cut.block_rows);
    cut.column_blocks = divide_up(n, cut.block_columns);
    return cut.blocks() * matrices;
  };
  const auto halve = [](std::int64_t& size, std::int64_t tile, std::int64_t whole) {
    size = std::min(size, divide_up(std::max<std::int64_t>(whole, 1), tile) * tile);
    if (size < 2 * tile) return false;
    size = divide_up(size / 2, tile) * tile;
    return true;
  };
  bool smaller = true;
  while (smaller && count() < few_blocks) {
    smaller = cut.block_columns >= 4 * cut.block_rows ? halve(cut.block_columns, tile_columns, n)
                                                      : halve(cut.block_rows, tile_rows, m);
    if (!smaller) smaller = halve(cut.block_columns, tile_columns, n) || halve(cut.block_rows, tile_rows, m);
  }
  count();
  cut.parts = 1;
  if (cut.blocks() * matrices < few_blocks && product.inner() >= 2 * part_inner) {
    cut.parts = std::min<std::int64_t>(few_blocks, product.inner() / part_inner);
  }
  cut.part_depth = divide_up(divide_up(product.inner(), cut.parts), block_inner) * block_inner;
  return cut;
}

template <class Element>
class ProductKernel final : public compile::Kernel {
  using T = Accumulator<Element>;

 public:
  ProductKernel(const Primitive& primitive, Epilogue epilogue)
      : product_(product_of(primitive)),
        a_(input_access(primitive, product_.a_input)),
        b_(input_access(primitive, product_.b_input)),
        c_(primitive.output.access),
        epilogue_(std::move(epilogue)),
        tile_(best_tile<T>()),
        cut_(cut(product_, tile_.rows, tile_.columns)),
        threads_(base::thread_count()) {
    for (const PostOp& op : epilogue_.ops) operands_.push_back(operand_matrix(primitive, op));
    direct_a_ = std::is_same_v<Element, T> && reads_directly();
    const bool plain = c_.dtype == dtype_of<T>() && product_.c.columns.plain() && product_.c.rows.plain();
    const bool steps = product_.c.columns.step[2] == 1 || product_.columns() == 1;
    direct_c_ = plain && steps && epilogue_.ops.empty() && cut_.parts == 1;
  }

  std::string name() const override {
    return fmt::format("tiles:{}x{}{}", tile_.rows, tile_.columns, cut_.parts > 1 ? ":split" : "");
  }

  std::size_t scratch_bytes() const override {
    return partial_bytes() + static_cast<std::size_t>(threads_) * thread_bytes();
  }

  void run(const Bindings& bindings) const override {
    const std::int64_t tasks = numel(product_.batch) * cut_.parts * cut_.blocks();
    if (tasks == 0) return;
    const double cost = product_.multiply_adds() / static_cast<double>(tasks) / 32;
    parallel(bindings, tasks, cost, [&](std::int64_t task, std::byte* scratch) { run_block(bindings, task, scratch); });
    if (cut_.parts == 1) return;
    const std::int64_t sums = numel(product_.batch) * cut_.blocks();
    parallel(bindings, sums, 1e3, [&](std::int64_t task, std::byte* scratch) { sum_parts(bindings, task, scratch); });
  }

 private:
  std::size_t panel_a_bytes() const {
    return round_up(static_cast<std::size_t>(cut_.block_rows * block_inner) * sizeof(T));
  }
  std::size_t panel_b_bytes() const {
    return round_up(static_cast<std::size_t>(cut_.block_columns * block_inner) * sizeof(T));
  }
  std::size_t block_bytes() const {
    return round_up(static_cast<std::size_t>(cut_.block_rows * cut_.block_columns) * sizeof(T));
  }
  std::size_t points_bytes() const {
    const std::int64_t points = std::max(block_inner, cut_.block_columns) + std::max(block_inner, cut_.block_rows);
    return round_up(static_cast<std::size_t>(points) * sizeof(Point));
  }
  std::size_t thread_bytes() const { return panel_a_bytes() + panel_b_bytes() + block_bytes() + points_bytes(); }
  std::size_t partial_bytes() const {
    const std::int64_t blocks = numel(product_.batch) * cut_.blocks() * cut_.parts;
    return cut_.parts == 1 ? 0 : static_cast<std::size_t>(blocks) * block_bytes();
  }

  /// The threads that a plan was made with bound how many run it: each has its own scratch space.
  template <class Body>
  void parallel(const Bindings& bindings, std::int64_t tasks, double cost, Body&& body) const {
    std::byte* const scratch = bindings.scratch + partial_bytes();
    const auto work = [&](int thread, int threads) {
      for (std::int64_t task = thread; task < tasks; task += threads) {
        body(task, scratch + static_cast<std::size_t>(thread) * thread_bytes());
      }
    };
    constexpr double worthwhile = 8000;
    if (threads_ == 1 || tasks == 1 || static_cast<double>(tasks) * cost < worthwhile) return work(0, 1);
    base::parallel_region([&](int thread, int threads) {
      if (thread < threads_) work(thread, std::min(threads, threads_));
    });
  }

  /// Rows of a that lie at a constant distance, each without gaps or next to each other, need no copy; unless they all
  /// fall on the same lines of the cache.
  bool reads_directly() const {
    const Matrix& a = product_.a;
    if (a.in_plane || !a.rows.plain() || !a.columns.plain()) return false;
    if (a.columns.step[2] == 1) return a.rows.step[2] * static_cast<std::int64_t>(sizeof(T)) % 2048 != 0;
    return a.rows.step[2] == 1 && product_.columns() <= 4 * tile_.columns;
  }

  OperandMatrix operand_matrix(const Primitive& primitive, const PostOp& op) const {
    Primitive other = primitive;
    other.output.access.strides = op.operand.strides;
    const bool needed = op.kind == PostOp::Kind::add || op.kind == PostOp::Kind::multiply;
    return {needed ? result_matrix(other, product_.turned) : Matrix{}, op.operand};
  }

  std::int64_t batch_offset(const Strides& strides, std::int64_t matrix) const {
    std::int64_t offset = 0;
    for (int axis = product_.batch.rank() - 1; axis >= 0; --axis) {
      offset += matrix % product_.batch[axis] * strides[axis];
      matrix /= product_.batch[axis];
    }
    return offset;
  }

  struct Block {
    std::int64_t matrix, part;
    Range rows, columns;
  };

  Block block_of(std::int64_t task) const {
    Block block{};
    const std::int64_t column = task % cut_.column_blocks;
    task /= cut_.column_blocks;
    const std::int64_t row = task % cut_.row_blocks;
    task /= cut_.row_blocks;
    block.part = task % cut_.parts;
    block.matrix = task / cut_.parts;
    block.rows.begin = row * cut_.block_rows;
    block.rows.count = std::min(cut_.block_rows, product_.rows() - block.rows.begin);
    block.columns.begin = column * cut_.block_columns;
    block.columns.count = std::min(cut_.block_columns, product_.columns() - block.columns.begin);
    return block;
  }

  void run_block(const Bindings& bindings, std::int64_t task, std::byte* scratch) const {
    const Block block = block_of(task);
    auto* const panel_a = reinterpret_cast<T*>(scratch);
    auto* const panel_b = reinterpret_cast<T*>(scratch + panel_a_bytes());
    auto* sums = reinterpret_cast<T*>(scratch + panel_a_bytes() + panel_b_bytes());
    std::byte* const points = scratch + panel_a_bytes() + panel_b_bytes() + block_bytes();
    const auto* const a =
        address_as<const Element>(a_, bindings) + batch_offset(product_.a.batch_strides, block.matrix);
    const auto* const b =
        address_as<const Element>(b_, bindings) + batch_offset(product_.b.batch_strides, block.matrix);
    std::int64_t c_row = cut_.block_columns;
    if (direct_c_) {
      c_row = product_.c.rows.step[2];
      sums = address_as<T>(c_, bindings) + batch_offset(product_.c.batch_strides, block.matrix) +
             block.rows.begin * c_row + block.columns.begin;
    } else if (cut_.parts > 1) {
      sums = reinterpret_cast<T*>(bindings.scratch + static_cast<std::size_t>(task) * block_bytes());
    }

    const Packer<Element, T> pack_a(product_.a, product_.a.rows, product_.a.columns, a);
    const Packer<Element, T> pack_b(product_.b, product_.b.columns, product_.b.rows, b);
    const std::int64_t first = block.part * cut_.part_depth;
    const std::int64_t last = std::min(product_.inner(), first + cut_.part_depth);
    if (first >= last) clear(block, sums, c_row);
    for (std::int64_t k = first; k < last; k += block_inner) {
      const Range depth{k, std::min(block_inner, last - k)};
      pack_b.pack(block.columns, depth, tile_.columns, panel_b, reinterpret_cast<Point*>(points));
      if (!direct_a_) pack_a.pack(block.rows, depth, tile_.rows, panel_a, reinterpret_cast<Point*>(points));
      multiply(block, depth, a, panel_a, panel_b, sums, c_row, k > first);
    }
    if (!direct_c_ && cut_.parts == 1) store(bindings, block, sums, points);
  }

  void clear(const Block& block, T* sums, std::int64_t c_row) const {
    for (std::int64_t i = 0; i < block.rows.count; ++i) std::fill_n(sums + i * c_row, block.columns.count, T{});
  }

  void multiply(const Block& block, Range depth, const Element* a, const T* panel_a, const T* panel_b, T* sums,
                std::int64_t c_row, bool accumulate) const {
    for (std::int64_t j = 0; j < block.columns.count; j += tile_.columns) {
      for (std::int64_t i = 0; i < block.rows.count; i += tile_.rows) {
        TileArguments<T> tile{};
        tile.inner = depth.count;
        tile.a = panel_a + i * depth.count;
        tile.a_row = 1;
        tile.a_inner = tile_.rows;
        if constexpr (std::is_same_v<Element, T>) {
          if (direct_a_) {
            tile.a_row = product_.a.rows.step[2];
            tile.a_inner = product_.a.columns.step[2];
            tile.a = a + (block.rows.begin + i) * tile.a_row + depth.begin * tile.a_inner;
          }
        }
        tile.b = panel_b + j * depth.count;
        tile.b_inner = tile_.columns;
        tile.c = sums + i * c_row + j;
        tile.c_row = c_row;
        tile.rows = static_cast<int>(std::min<std::int64_t>(tile_.rows, block.rows.count - i));
        tile.columns = static_cast<int>(std::min<std::int64_t>(tile_.columns, block.columns.count - j));
        tile.accumulate = accumulate;
        tile_.run(tile);
      }
    }
  }

  void sum_parts(const Bindings& bindings, std::int64_t task, std::byte* scratch) const {
    const std::int64_t matrix = task / cut_.blocks();
    const std::int64_t first = matrix * cut_.blocks() * cut_.parts + task % cut_.blocks();
    const Block block = block_of(first);
    auto* const sums = reinterpret_cast<T*>(scratch + panel_a_bytes() + panel_b_bytes());
    const std::size_t count = block_bytes() / sizeof(T);
    for (std::int64_t part = 0; part < cut_.parts; ++part) {
      const std::int64_t at = first + part * cut_.blocks();
      const auto* const partial =
          reinterpret_cast<const T*>(bindings.scratch + static_cast<std::size_t>(at) * block_bytes());
      for (std::size_t i = 0; i < count; ++i) sums[i] = part == 0 ? partial[i] : wrapping_add(sums[i], partial[i]);
    }
    store(bindings, block, sums, scratch + panel_a_bytes() + panel_b_bytes() + block_bytes());
  }

  void store(const Bindings& bindings, const Block& block, T* sums, std::byte* scratch) const {
    auto* const rows = reinterpret_cast<Point*>(scratch);
    Point* const columns = rows + std::max(block_inner, cut_.block_rows);
    for (std::size_t i = 0; i < epilogue_.ops.size(); ++i) apply(bindings, block, i, sums, rows, columns);
    locate(product_.c.rows, block.rows.begin, block.rows.count, rows);
    locate(product_.c.columns, block.columns.begin, block.columns.count, columns);
    visit_dtype(c_.dtype, [&]<class Result>() {
      Result* const c = address_as<Result>(c_, bindings) + batch_offset(product_.c.batch_strides, block.matrix);
      for (std::int64_t i = 0; i < block.rows.count; ++i) {
        const T* const from = sums + i * cut_.block_columns;
        Result* const row = c + rows[i].offset;
        for (std::int64_t j = 0; j < block.columns.count; ++j)
          row[columns[j].offset] = convert_element<Result>(from[j]);
      }
    });
  }

  /// Replaces each sum by change(sum).
  template <class Change>
  void each(const Block& block, T* sums, Change change) const {
    for (std::int64_t i = 0; i < block.rows.count; ++i) {
      T* const row = sums + i * cut_.block_columns;
      for (std::int64_t j = 0; j < block.columns.count; ++j) row[j] = change(row[j]);
    }
  }

  /// Replaces each sum by change(sum, element of the operand).
  template <class Change>
  void each(const Bindings& bindings, const Block& block, const OperandMatrix& operand, T* sums, Point* rows,
            Point* columns, Change change) const {
    locate(operand.matrix.rows, block.rows.begin, block.rows.count, rows);
    locate(operand.matrix.columns, block.columns.begin, block.columns.count, columns);
    visit_dtype(operand.access.dtype, [&]<class Other>() {
      const Other* const from =
          address_as<const Other>(operand.access, bindings) + batch_offset(operand.matrix.batch_strides, block.matrix);
      for (std::int64_t i = 0; i < block.rows.count; ++i) {
        T* const row = sums + i * cut_.block_columns;
        const Other* const line = from + rows[i].offset;
        for (std::int64_t j = 0; j < block.columns.count; ++j) {
          row[j] = change(row[j], convert_element<T>(line[columns[j].offset]));
        }
      }
    });
  }

  void apply(const Bindings& bindings, const Block& block, std::size_t position, T* sums, Point* rows,
             Point* columns) const {
    const PostOp& op = epilogue_.ops[position];
    const OperandMatrix& operand = operands_[position];
    const auto number = static_cast<T>(op.number);
    switch (op.kind) {
      case PostOp::Kind::add:
        return each(bindings, block, operand, sums, rows, columns, [](T a, T b) { return a + b; });
      case PostOp::Kind::multiply:
        return each(bindings, block, operand, sums, rows, columns, [](T a, T b) { return a * b; });
      case PostOp::Kind::scale: return each(block, sums, [&](T value) { return value * number; });
      case PostOp::Kind::shift: return each(block, sums, [&](T value) { return value + number; });
      case PostOp::Kind::relu:
        // NaN stays NaN, -0 becomes 0.
        return each(block, sums, [](T value) { return value > T{} || value != value ? value : T{}; });
      default: throw InternalError("the epilogue was declined");
    }
  }

  Product product_;
  Access a_, b_, c_;
  Epilogue epilogue_;
  std::vector<OperandMatrix> operands_;
  Tile<T> tile_;
  Cut cut_;
  int threads_;
  bool direct_a_ = false;
  bool direct_c_ = false;
};

}  // namespace

bool takes_epilogue(const Primitive& contraction, const Epilogue& epilogue, std::string& reason) {
  reason = epilogue.refusal;
  if (!epilogue.ops.empty() && !is_floating(input_access(contraction, 0).dtype)) {
    reason = "epilogues on integers are groups of their own";
  }
  for (const PostOp& op : epilogue.ops) {
    if (op.kind > PostOp::Kind::relu) reason = "the epilogue has a transcendental function, which groups do faster";
  }
  return reason.empty();
}

KernelPtr make_product_kernel(const Primitive& contraction, Epilogue epilogue) {
  KernelPtr kernel;
  visit_dtype(input_access(contraction, 0).dtype, [&]<class Element>() {
    kernel = std::make_unique<ProductKernel<Element>>(contraction, std::move(epilogue));
  });
  return kernel;
}

}  // namespace russet::cpu
