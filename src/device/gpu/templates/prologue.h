#pragma once
// Where what a contraction or a pool reads comes from: memory, or a prologue, a group that computes an element where
// the kernel reads it.
#include <string>
#include <vector>

#include "device/gpu/templates/spliced.h"

namespace russet::gpu {

/// A source (source.metal) as text. Its values are the member of the kernel's VALUES that is called as the source is.
struct SourceText : SplicedText {
  std::string name;  // of the variable, without the "_source" behind it
  bool values_are_wide = false;
};

/// The source of an input. `offset_type`: "int" or "long", in which the kernel counts elements. Its bindings are
/// numbered from `first`. `in_pairs`: the kernel reads two neighbours at a time, the first with an even number.
SourceText source_of(const compile::Primitive& primitive, int input, std::string_view name,
                     std::string_view offset_type, std::size_t first, bool in_pairs = false);
/// Where an input begins in what it is read from: the region that is bound, or the array that a prologue computes.
std::int64_t source_start(const compile::Operand& input);
/// Makes a source a variable of the piece's body, bound behind its arguments so far.
void add_source(Piece& piece, const SourceText& source);
/// Puts the values of prologues behind those of the piece, which become their member `rest`.
void add_source_values(Piece& piece, Values& values, const std::vector<const SourceText*>& sources);

/// Why the prologues cannot be parts of a kernel; empty if they can.
std::string why_no_prologue(const compile::Primitive& primitive);
/// How many buffers a kernel binds for a primitive's inputs.
std::size_t input_bindings(const compile::Primitive& primitive);

}  // namespace russet::gpu
