#pragma once
// What is spliced into a template's kernel: where operands come from (prologue.h), what becomes of results
// (epilogue.h).
#include <string>
#include <vector>

#include "device/gpu/emitter/kernel_text.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/piece.h"

namespace russet::gpu {

/// A variable of the kernel's body as text: the declarations that it needs, its type, its bindings, and its values,
/// which are a part of the kernel's.
struct SplicedText {
  std::string declarations;
  std::string type;
  std::vector<Piece::Argument> arguments;
  std::vector<std::string> members;  // of the variable, for the arguments
  std::vector<Region> regions;
  std::vector<std::string> files;
  std::string values_type;  // empty: it has no values
  Values values;

  void bind(std::string_view type, std::string_view argument, std::string_view member, const Region& region);
  /// Takes over what a text of its own binds, from binding `first` on, and its files and values.
  void take(const KernelText& kernel, std::size_t first);
};

/// A text of its own whose bindings are numbered from `first`.
KernelText spliced_kernel(std::string stem, std::size_t first);

/// Makes it a variable of the piece, bound behind the piece's arguments so far. `values`: what its member `values`
/// points to; it has none if that is empty. Returns the lines that declare it.
std::string declare(Piece& piece, const SplicedText& text, std::string_view variable, std::string_view values);

}  // namespace russet::gpu
