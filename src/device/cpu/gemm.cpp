#include "device/cpu/gemm.h"

#include <fmt/format.h>

#include "device/cpu/gemm_pack.h"
#include "device/cpu/gemm_tile.h"
#include "device/cpu/workers.h"
#include "device/cpu/workspace.h"

namespace russet::cpu {
namespace {

using compile::Access;
using compile::Bindings;
using compile::Primitive;

/// Depth of a block: a panel of b (32 x 256 floats) fits the first-level cache.
constexpr std::int64_t block_inner = 256;
/// Products with fewer blocks than this, and a depth of at least twice part_inner, are split along the depth too, for
/// the sake of threads.
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
  using T = SumType<Element>;

 public:
  ProductKernel(const Primitive& primitive, Epilogue epilogue)
      : product_(product_of(primitive)),
        a_(input_access(primitive, product_.a_input)),
        b_(input_access(primitive, product_.b_input)),
        c_(primitive.output.access),
        epilogue_(std::move(epilogue)),
        tile_(best_tile<T>()),
        cut_(cut(product_, tile_.rows, tile_.columns)) {
    for (const PostOp& op : epilogue_.ops) operands_.push_back(operand_matrix(primitive, op));
    direct_a_ = std::is_same_v<Element, T> && reads_directly();
    const bool plain = c_.dtype == dtype_of<T>() && product_.c.columns.plain() && product_.c.rows.plain();
    const bool steps = product_.c.columns.step[2] == 1 || product_.columns() == 1;
    direct_c_ = plain && steps && epilogue_.ops.empty() && cut_.parts == 1;
    const std::int64_t block_rows = cut_.block_rows, block_columns = cut_.block_columns;
    if (cut_.parts > 1) partials_ = workspace_.add<T>(matrices() * cut_.blocks() * cut_.parts * block_size());
    panel_a_ = workspace_.add<T>(block_rows * block_inner, workers_.count());
    panel_b_ = workspace_.add<T>(block_columns * block_inner, workers_.count());
    sums_ = workspace_.add<T>(block_size(), workers_.count());
    row_points_ = workspace_.add<Point>(std::max(block_inner, block_rows), workers_.count());
    column_points_ = workspace_.add<Point>(std::max(block_inner, block_columns), workers_.count());
  }

  std::string name() const override {
    return fmt::format("product:{}x{}{}", tile_.rows, tile_.columns, cut_.parts > 1 ? ":split" : "");
  }

  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const Bindings& bindings) const override {
    workers_.each(matrices() * cut_.parts * cut_.blocks(), product_.multiply_adds() / 32,
                  [&](std::int64_t task, int worker) { run_block(bindings, task, worker); });
    if (cut_.parts == 1) return;
    const std::int64_t sums = matrices() * cut_.blocks();
    workers_.each(sums, 1e3 * static_cast<double>(sums),
                  [&](std::int64_t task, int worker) { sum_parts(bindings, task, worker); });
  }

 private:
  std::int64_t matrices() const { return numel(product_.batch); }
  std::int64_t block_size() const { return cut_.block_rows * cut_.block_columns; }

  /// Whether a is read in place instead of packed: its rows are evenly spaced, and its elements are neighbours along
  /// rows or columns. Rows at multiples of 2 KiB are packed all the same, because they would share few cache sets.
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

  struct ResultBlock {
    std::int64_t matrix, part;
    Interval rows, columns;
  };

  ResultBlock block_of(std::int64_t task) const {
    ResultBlock block{};
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

  void run_block(const Bindings& bindings, std::int64_t task, int worker) const {
    const ResultBlock block = block_of(task);
    T* const panel_a = panel_a_.at(bindings, worker);
    T* const panel_b = panel_b_.at(bindings, worker);
    Point* const points = row_points_.at(bindings, worker);
    T* sums = sums_.at(bindings, worker);
    const auto* const a = address_as<const Element>(a_, bindings) + product_.batch_offset(product_.a, block.matrix);
    const auto* const b = address_as<const Element>(b_, bindings) + product_.batch_offset(product_.b, block.matrix);
    std::int64_t c_row = cut_.block_columns;
    if (direct_c_) {
      c_row = product_.c.rows.step[2];
      sums = address_as<T>(c_, bindings) + product_.batch_offset(product_.c, block.matrix) + block.rows.begin * c_row +
             block.columns.begin;
    } else if (cut_.parts > 1) {
      sums = partials_.at(bindings) + task * block_size();
    }

    const Packer<Element, T> pack_a(product_.a, product_.a.rows, product_.a.columns, a);
    const Packer<Element, T> pack_b(product_.b, product_.b.columns, product_.b.rows, b);
    const std::int64_t first = block.part * cut_.part_depth;
    const std::int64_t last = std::min(product_.inner(), first + cut_.part_depth);
    if (first >= last) clear(block, sums, c_row);
    for (std::int64_t k = first; k < last; k += block_inner) {
      const Interval depth{k, std::min(block_inner, last - k)};
      pack_b.pack(block.columns, depth, tile_.columns, panel_b, points);
      if (!direct_a_) pack_a.pack(block.rows, depth, tile_.rows, panel_a, points);
      multiply(block, depth, a, panel_a, panel_b, sums, c_row, k > first);
    }
    if (!direct_c_ && cut_.parts == 1) store(bindings, block, worker);
  }

  void clear(const ResultBlock& block, T* sums, std::int64_t c_row) const {
    for (std::int64_t i = 0; i < block.rows.count; ++i) std::fill_n(sums + i * c_row, block.columns.count, T{});
  }

  void multiply(const ResultBlock& block, Interval depth, const Element* a, const T* panel_a, const T* panel_b, T* sums,
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

  void sum_parts(const Bindings& bindings, std::int64_t task, int worker) const {
    const std::int64_t matrix = task / cut_.blocks();
    const std::int64_t first = matrix * cut_.blocks() * cut_.parts + task % cut_.blocks();
    const ResultBlock block = block_of(first);
    T* const sums = sums_.at(bindings, worker);
    for (std::int64_t part = 0; part < cut_.parts; ++part) {
      const T* const partial = partials_.at(bindings) + (first + part * cut_.blocks()) * block_size();
      for (std::int64_t i = 0; i < block_size(); ++i)
        sums[i] = part == 0 ? partial[i] : wrapping_add(sums[i], partial[i]);
    }
    store(bindings, block, worker);
  }

  /// Applies the epilogue to a worker's sums and stores them.
  void store(const Bindings& bindings, const ResultBlock& block, int worker) const {
    T* const sums = sums_.at(bindings, worker);
    Point* const rows = row_points_.at(bindings, worker);
    Point* const columns = column_points_.at(bindings, worker);
    for (std::size_t i = 0; i < epilogue_.ops.size(); ++i) apply(bindings, block, i, sums, rows, columns);
    locate(product_.c.rows, block.rows.begin, block.rows.count, rows);
    locate(product_.c.columns, block.columns.begin, block.columns.count, columns);
    visit_dtype(c_.dtype, [&]<class Result>() {
      Result* const c = address_as<Result>(c_, bindings) + product_.batch_offset(product_.c, block.matrix);
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
  void each(const ResultBlock& block, T* sums, Change change) const {
    for (std::int64_t i = 0; i < block.rows.count; ++i) {
      T* const row = sums + i * cut_.block_columns;
      for (std::int64_t j = 0; j < block.columns.count; ++j) row[j] = change(row[j]);
    }
  }

  /// Replaces each sum by change(sum, element of the operand).
  template <class Change>
  void each(const Bindings& bindings, const ResultBlock& block, const OperandMatrix& operand, T* sums, Point* rows,
            Point* columns, Change change) const {
    locate(operand.matrix.rows, block.rows.begin, block.rows.count, rows);
    locate(operand.matrix.columns, block.columns.begin, block.columns.count, columns);
    visit_dtype(operand.access.dtype, [&]<class Other>() {
      const Other* const from =
          address_as<const Other>(operand.access, bindings) + product_.batch_offset(operand.matrix, block.matrix);
      for (std::int64_t i = 0; i < block.rows.count; ++i) {
        T* const row = sums + i * cut_.block_columns;
        const Other* const line = from + rows[i].offset;
        for (std::int64_t j = 0; j < block.columns.count; ++j) {
          row[j] = change(row[j], convert_element<T>(line[columns[j].offset]));
        }
      }
    });
  }

  void apply(const Bindings& bindings, const ResultBlock& block, std::size_t position, T* sums, Point* rows,
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
  RegisterTile<T> tile_;
  Cut cut_;
  Workers workers_;
  Workspace workspace_;
  Scratch<T> partials_, panel_a_, panel_b_, sums_;  // partials_: blocks of all parts of the depth
  Scratch<Point> row_points_, column_points_;
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
