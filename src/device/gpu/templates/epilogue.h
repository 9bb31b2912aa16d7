#pragma once
// An epilogue as the visitor of a contraction's or a pool's kernel: what becomes of each element before it is stored.
#include <string>
#include <vector>

#include "device/gpu/gpu_kernel.h"
#include "device/gpu/piece.h"

namespace russet::gpu {

/// Who takes the elements of a result, as text: the declarations that it needs, its type, and its bindings.
struct VisitorText {
  std::string declarations;
  std::string type;                   // "StoreVisitor<...>"
  std::string values_type;            // of the kernel's VALUES
  std::string product = "values";     // the kernel's own values (ContractionValues, PoolValues) in them
  std::vector<std::string> types;     // of what is bound, from the first binding on
  std::vector<std::string> pointers;  // the visitor's members for them
  std::vector<Region> regions;
  std::vector<std::string> files;
  Values values;  // what follows the kernel's own
};

/// Why the epilogue cannot be a part of a kernel; empty if it can.
std::string why_no_epilogue(const compile::Primitive& primitive);
/// The visitor that runs the primitive's epilogue. Its bindings are numbered from `first`.
VisitorText epilogue_visitor(const compile::Primitive& primitive, std::size_t first);

/// Makes `visitor` a variable of the piece's body, bound behind its arguments so far; the piece's values are the
/// visitor's.
void add_visitor(Piece& piece, const VisitorText& visitor);

}  // namespace russet::gpu
