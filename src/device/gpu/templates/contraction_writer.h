#pragma once
// What the kernels of contractions have in common: their sources and visitors, their values, and the launch that adds
// up parts of a depth.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu/templates/contraction.h"
#include "device/gpu/templates/epilogue.h"
#include "device/gpu/templates/prologue.h"

namespace russet::gpu {

/// How the work is shared out. The parts of the depth come from shapes alone, so that results never depend on the
/// device or on the tile.
struct Division {
  std::int64_t splits = 1, chunk = 0;
  std::int64_t row_tiles = 0, column_tiles = 0;
};

/// A kernel of a contraction: its name in the log, threads of a threadgroup, and how many of these.
struct ProductKernel {
  std::string stem;
  std::uint32_t threads = 0;
  std::string body;
  std::vector<Piece::Array> arrays = {};
  std::int64_t groups = 0;
  std::string file = "contraction.metal";
  std::uint32_t resident = 1;  // see Piece
  /// Members of `values` before all others, which are their member `rest` then.
  std::vector<std::pair<std::string, TensorMap>> maps = {};
};

class ContractionWriter {
 public:
  ContractionWriter(const compile::Primitive& primitive, const GpuContext& context, Contraction contraction);

  const compile::Primitive& primitive() const { return primitive_; }
  const GpuContext& context() const { return context_; }
  const Contraction& contraction() const { return c_; }
  DType type() const { return primitive_.inputs[0].access.dtype; }
  const compile::Operand& left() const { return input(c_.left_input); }
  const compile::Operand& right() const { return input(c_.right_input); }
  std::size_t source_bindings() const { return left_source_.regions.size() + right_source_.regions.size(); }
  const SourceText& left_source() const { return left_source_; }
  const SourceText& right_source() const { return right_source_; }

  /// "int" where elements of every operand lie within 2^31 bytes, else "long".
  std::string_view offset_type() const;

  /// Stores the result, or runs the epilogue on it. Its bindings follow `first` others. `exact`: which axes are flat is
  /// part of the text. Otherwise, for what a thread does once, it is one text where all are, and one for the rest.
  VisitorText result_visitor(std::size_t first, bool exact) const;
  /// The same for strips of `count` pixels; nothing if an epilogue takes elements alone (see strip_epilogue_visitor).
  std::optional<VisitorText> strip_visitor(int count) const;
  /// The same for four rows at a time (see rows_epilogue_visitor), of four columns each where there is no epilogue: the
  /// result's columns lie side by side then. `sums`: see rows_epilogue_visitor.
  RowsVisitor rows_visitor(const EpilogueSums* sums = nullptr) const;
  /// Stores partial sums.
  VisitorText partial_visitor(const Region& partials) const;
  /// The types of the factors, Side<...>. `exact`: see result_visitor().
  std::string left_side(bool exact) const {
    return side(left_source_, c_.left_line, c_.left_step, WindowSide::left, exact);
  }
  std::string right_side(bool exact) const {
    return side(right_source_, c_.right_line, c_.right_step, WindowSide::right, exact);
  }

  /// Scratch memory of the parts of the depth; none if there is one.
  std::size_t partial_bytes(const Division& division) const;
  /// The kernel, and, if the depth has parts, the one that adds them up. `product` makes the first of a visitor.
  template <class Product>
  std::vector<Call> calls(const Division& division, bool exact, const Product& product) const {
    if (division.splits == 1) return {product(result_visitor(source_bindings(), exact))};
    Region partials{Region::scratch, 0, partial_bytes(division), true};
    std::vector<Call> calls{product(partial_visitor(partials))};
    partials.writes = false;
    calls.push_back(sum_call(division, partials));
    return calls;
  }

  /// The contraction's own values among those of the kernel of the factors. `rest`: the kernel has values of its own.
  std::string product_of(const VisitorText& visitor, bool rest = false) const;
  /// A kernel that multiplies factors and gives elements to the visitor.
  Call product_call(ProductKernel kernel, const VisitorText& visitor, const Division& division) const;

 private:
  bool any_splits() const;
  std::string side(const SourceText& source, const ContractionAxis& line, const ContractionAxis& step, WindowSide which,
                   bool exact) const;
  const compile::Operand& input(int i) const { return primitive_.inputs[static_cast<std::size_t>(i)]; }
  DType result_type() const { return primitive_.output.access.dtype; }
  bool has_prologue() const { return compile::has_prologue(primitive_); }
  Values values(const Division& division) const;
  Values values_with(const VisitorText& visitor, const Division& division) const;
  Call call(Piece piece, std::string_view file, std::vector<Region> inputs, const VisitorText& visitor, Values all,
            std::int64_t groups) const;
  Call sum_call(const Division& division, const Region& partials) const;

  const compile::Primitive& primitive_;
  const GpuContext& context_;
  Contraction c_;
  Placed left_, right_, result_;
  SourceText left_source_, right_source_;
};

/// Why no kernel of ours takes the contraction; empty if one does.
std::string why_no_contraction(const compile::Primitive& primitive);
/// Whether the epilogue adds up columns.
bool sums_rows(const compile::Primitive& primitive);
/// Why only tiles could take the contraction: they alone add up columns, and store the arrays of prologues. Empty if
/// that is not so.
std::string why_only_tiles(const compile::Primitive& primitive);

}  // namespace russet::gpu
