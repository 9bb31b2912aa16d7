#pragma once
// Reductions as kernel text: accumulators of a thread, and how they are combined across lanes, simdgroups and chunks.
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {

/// One reduction of a group: a thread holds `acc`, and for argmax and argmin the position `pos` that it lies at.
class Reduction {
 public:
  Reduction(const compile::Group& group, int position);

  int position() const { return position_; }
  bool has_position() const { return has_position_; }
  /// The accumulator's type: "float", "int" or "long".
  std::string_view type() const { return type_; }

  /// Defines the accumulator, with the identity. `suffix` tells several of one thread apart.
  void define(KernelText& kernel, std::string_view suffix = "") const;
  /// Defines an array of accumulators; their suffix is then "[k]".
  void define_array(KernelText& kernel, int count) const;
  /// An element of the reduction's input in the type in which it is reduced.
  std::string element(std::string_view value) const;
  /// Adds an element (and where it lies, a uint) to the accumulator.
  void add(KernelText& kernel, std::string_view value, std::string_view place, std::string_view suffix = "") const;
  /// Combines the accumulators of a simdgroup: every lane has the total.
  void across_lanes(KernelText& kernel) const;
  /// Combines the totals of all simdgroups of a threadgroup, in their order: every thread has the total.
  void across_simdgroups(KernelText& kernel) const;

  std::string accumulator(std::string_view suffix = "") const { return fmt::format("acc{}{}", position_, suffix); }
  std::string place(std::string_view suffix = "") const { return fmt::format("pos{}{}", position_, suffix); }
  /// Defines the instruction's value, rounded to its type.
  void define_result(KernelText& kernel) const;

 private:
  std::string shared() const { return fmt::format("shared{}", position_); }
  std::string places() const { return fmt::format("places{}", position_); }

  int position_;
  ops::Op op_;
  DType input_;
  DType output_;
  std::string_view type_;
  bool has_position_;
};

std::vector<Reduction> reductions_of(const compile::Group& group, const std::vector<int>& positions);

/// Partial results in scratch: an array of `count` elements for each accumulator.
class Partials {
 public:
  /// Lays out arrays; the offset of the first is 0.
  Partials(const std::vector<Reduction>& reductions, std::size_t count);
  std::size_t bytes() const { return bytes_; }
  /// Binds all arrays, for writing or for reading.
  void bind(KernelText& kernel, bool writes);
  void store(KernelText& kernel, std::string_view index, std::string_view suffix = "") const;
  /// Adds element `index` of each array to the accumulators.
  void add(KernelText& kernel, std::string_view index) const;

 private:
  const std::vector<Reduction>& reductions_;
  std::vector<Region> values_;
  std::vector<Region> places_;
  std::vector<std::string> value_names_;
  std::vector<std::string> place_names_;
  std::size_t bytes_ = 0;
};

}  // namespace russet::gpu
