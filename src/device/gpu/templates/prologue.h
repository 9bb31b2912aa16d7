#pragma once
// Where the factors of a contraction come from: memory, or a prologue, a group that computes an element where the
// contraction's kernel reads it.
#include <string>
#include <vector>

#include "device/gpu/gpu_kernel.h"
#include "device/gpu/piece.h"

namespace russet::gpu {

/// A source of contraction.metal as text: the declarations that it needs, its type, and its bindings.
struct SourceText {
  std::string name;  // of the variable: "left" or "right"
  std::string declarations;
  std::string type;
  std::vector<Piece::Argument> arguments;
  std::vector<std::string> members;  // of the source, for the arguments
  std::vector<Region> regions;
  std::vector<std::string> files;
  std::string values_type;  // of the member of the kernel's VALUES that is called as the source is; empty: none
  bool values_are_wide = false;
  Values values;
};

/// `offset_type`: "int" or "long", in which the contraction counts elements.
SourceText memory_source(std::string_view name, std::string_view element, std::string_view offset_type,
                         const Region& region);
/// The prologue of an input. Its bindings are numbered from `first`.
SourceText prologue_source(std::string_view name, const compile::Group& prologue, std::string_view offset_type,
                           std::size_t first);

/// Why the prologues cannot be parts of a kernel; empty if they can.
std::string why_no_prologue(const compile::Primitive& primitive);
/// How many buffers a kernel binds for a primitive's inputs.
std::size_t input_bindings(const compile::Primitive& primitive);

}  // namespace russet::gpu
