#pragma once
// An epilogue as the visitor of a contraction's or a pool's kernel: what becomes of each element before it is stored.
#include <optional>
#include <string>
#include <vector>

#include "device/gpu/emitter/reductions.h"
#include "device/gpu/templates/spliced.h"

namespace russet::gpu {

/// Who takes the elements of a result, as text. Its values follow the kernel's own in VALUES.
struct VisitorText : SplicedText {
  std::string product = "values";  // the kernel's own values (ContractionValues, PoolValues) in VALUES
};

/// The reductions of an epilogue over the rows of a result, of which `parts` partial ones come from the tiles.
struct EpilogueSums {
  std::vector<Reduction> reductions;
  std::int64_t parts = 0, columns = 0;
  std::size_t count() const { return static_cast<std::size_t>(parts * columns); }
  /// Scratch memory that they take.
  std::size_t parts_bytes() const;
};
/// Nothing if the epilogue is elementwise, or if there is none.
std::optional<EpilogueSums> epilogue_sums(const compile::Primitive& primitive, std::int64_t parts,
                                          std::int64_t columns);
/// The launch that makes results of the parts.
Call epilogue_results(const compile::Primitive& primitive, const EpilogueSums& sums, const GpuContext& context);

/// Why the epilogue cannot be a part of a kernel; empty if it can.
std::string why_no_epilogue(const compile::Primitive& primitive);
/// The visitor that runs the primitive's epilogue, and leaves the parts of `sums` in scratch memory. Its bindings are
/// numbered from `first`.
VisitorText epilogue_visitor(const compile::Primitive& primitive, std::size_t first,
                             const EpilogueSums* sums = nullptr);

/// The visitor of strips of `count` neighbouring pixels with two channels each, which depthwise convolutions give
/// (depthwise.metal), of `rows` pixels with `channels` in all. Nothing if the epilogue's operands do not lie in pairs.
std::optional<VisitorText> strip_epilogue_visitor(const compile::Primitive& primitive, std::size_t first,
                                                  std::int64_t channels, int count);

/// The visitor of four rows at a time, of `width` neighbouring columns each: four where the epilogue's operands lie in
/// vectors, or one. Row j is j * width rows behind the first (split_product.metal). Operands of all rows are asked for
/// before the first one is used. For epilogues of contractions of so many columns. With `sums` it also has end_block(),
/// to be called at least every few thousand rows, and finish(part, column, end column, lane): a simdgroup's lanes have
/// the same columns in all calls then, 32 together, and leave a part of each in scratch memory.
struct RowsVisitor {
  VisitorText text;
  int width = 1;
};
RowsVisitor rows_epilogue_visitor(const compile::Primitive& primitive, std::size_t first, std::int64_t columns,
                                  const EpilogueSums* sums = nullptr);

/// Makes `visitor` a variable of the piece's body, bound behind its arguments so far; the piece's values are the
/// visitor's, or `values` among them is.
void add_visitor(Piece& piece, const VisitorText& visitor, std::string_view values = "values");

}  // namespace russet::gpu
