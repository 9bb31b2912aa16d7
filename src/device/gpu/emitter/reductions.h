#pragma once
// Reductions as kernel text: accumulators of a thread, and how they are combined across lanes, simdgroups and chunks.
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {

/// One reduction of a group: what a thread knows of the elements that it has seen, in one variable or several, its
/// parts. The first is the result; argmax and argmin have the position that it lies at besides, squared_deviations the
/// mean (in two numbers) and how many elements there are.
class Reduction {
 public:
  struct Part {
    std::string_view name;
    std::string_view type;  // "float", "int", "long" or "uint"
    std::string_view identity;
  };

  Reduction(const compile::Group& group, int position);

  int position() const { return position_; }
  const std::vector<Part>& parts() const { return parts_; }
  bool has_position() const { return op_ == ops::Op::argmax || op_ == ops::Op::argmin; }
  /// The variable that holds a part. `suffix` tells several of one thread apart.
  std::string variable(const Part& part, std::string_view suffix = "") const {
    return fmt::format("{}{}{}", part.name, position_, suffix);
  }

  std::vector<std::string> variables(std::string_view suffix) const;

  /// Defines the parts, as they are before any element.
  void define(KernelText& kernel) const;
  /// Defines arrays of them; their suffix is then "[k]".
  void define_array(KernelText& kernel, int count) const;
  /// An element of the reduction's input in the type in which it is reduced.
  std::string element(std::string_view value) const;
  /// Adds an element (and where it lies, a uint).
  void add(KernelText& kernel, std::string_view value, std::string_view place, std::string_view suffix = "") const;
  /// Whether elements that a thread adds in blocks take less time: then a loop over a block calls add_to_block()
  /// instead, with whether the thread has seen no element before, and end_block() follows, with how many there were so
  /// far, and the share of one.
  bool has_blocks() const { return op_ == ops::Op::squared_deviations; }
  /// Defines what a block adds up, as arrays of `count` if that is more than one.
  void define_block(KernelText& kernel, int count) const;
  /// Their names.
  std::vector<std::string> block_variables(std::string_view suffix) const;
  void add_to_block(KernelText& kernel, std::string_view value, std::string_view is_first,
                    std::string_view suffix) const;
  void end_block(KernelText& kernel, std::string_view counted, std::string_view share, std::string_view suffix) const;
  /// Adds what another one knows: `others` has an expression for each part.
  void merge(KernelText& kernel, const std::vector<std::string>& others, std::string_view suffix = "") const;
  /// Combines the accumulators of lanes whose numbers differ in the bits from `first` down to `last` (16 and 1: of a
  /// whole simdgroup): every lane has the total.
  void across_lanes(KernelText& kernel, std::int64_t first, std::int64_t last = 1) const;
  /// Combines the totals of all simdgroups of a threadgroup, in their order: every thread has the total.
  void across_simdgroups(KernelText& kernel) const;
  /// Defines the instruction's value, rounded to its type.
  void define_result(KernelText& kernel, std::string_view suffix = "") const;

 private:
  int position_;
  ops::Op op_;
  DType input_;
  DType output_;
  std::vector<Part> parts_;
};

std::vector<Reduction> reductions_of(const compile::Group& group, const std::vector<int>& positions);

/// Partial results in scratch: an array of `count` elements for each part.
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
  /// Declares room for `count` elements of each array that are read before the first is added: memory answers late.
  void declare_ahead(KernelText& kernel, int count) const;
  /// Reads element `index` of each array as the item "ahead".
  void read_ahead(KernelText& kernel, std::string_view index) const;
  /// Adds the item "ahead" to the accumulators.
  void add_ahead(KernelText& kernel) const;

 private:
  /// Calls visit(part, the pointer to its array, the room for what is read ahead).
  template <class Visitor>
  void for_each_part(const Visitor& visit) const;

  const std::vector<Reduction>& reductions_;
  std::vector<std::vector<Region>> regions_;     // of each reduction's parts
  std::vector<std::vector<std::string>> names_;  // of the pointers to them
  std::size_t bytes_ = 0;
};

}  // namespace russet::gpu
