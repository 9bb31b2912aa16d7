#pragma once
// Index arithmetic on views: how a view of a value looks from another value's memory.
#include <russet/shape.h>
#include <optional>

#include "ops/attributes.h"

namespace russet::compile {

/// Elements offset + i * strides[0] + ... of some memory.
struct Affine {
  std::int64_t offset = 0;
  Strides strides;
};

/// A view (sizes `sizes`, given on the row-major order of `base`) as addresses into memory in which `base` lies with
/// `base_strides`. Nothing if that is not affine.
std::optional<Affine> resolve_view(const ops::View& view, const Shape& sizes, const Shape& base,
                                   const Strides& base_strides);

/// `outer` of shape `outer_sizes` on a value that is itself `inner` (of shape `inner_sizes`) on a base: one view on the
/// base. Nothing if that is not affine.
std::optional<ops::View> compose_views(const ops::View& outer, const Shape& outer_sizes, const ops::View& inner,
                                       const Shape& inner_sizes);

/// Whether the view reads the base in its own order and whole.
bool is_identity(const ops::View& view, const Shape& sizes, const Shape& base);

/// Strides for reading a value of shape `from` (lying with `strides`) at an index of the broadcast shape `to`.
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

}  // namespace russet::compile
