#pragma once
// GroupText: the parts of a kernel that all groups share: loads, and an instruction a line, where Places says. What the
// three kinds of groups do around them is in elementwise.cpp, row.cpp and column.cpp.
#include "device/gpu/emitter/kernel_text.h"
#include "device/gpu/emitter/phases.h"
#include "device/gpu/emitter/places.h"

namespace russet::gpu {

/// The part of a group that a kernel runs: all of it, everything up to and including the first reductions, or what
/// follows them.
enum class GroupPart : std::uint8_t { all, elements, results };

class GroupText {
 public:
  /// Binds the memory that this part of the group touches.
  GroupText(const compile::Group& group, const Phases& phases, const Walk& walk, KernelText& kernel, GroupPart part);

  /// Halves that stores alone read are not rounded before: for groups whose values nothing else is handed.
  void leave_rounding_to_stores();
  /// From now on rows are the inner places, within columns: what there is one of for each row lies at those.
  void put_rows_inside() { rows_are_inside_ = true; }

  /// Runs instructions on the elements of an item, a lane at a time. `visit` writes what follows them in the lane;
  /// positions of lanes are called "k".
  template <class Visitor>
  void run_full(const Phase& phase, Visitor&& after) {
    open_lanes(phase);
    after();
    close_lanes(phase);
  }
  /// Reads constants and scalars into registers, before a loop that uses them.
  void load_uniforms();
  /// Loads the vectors that are the same for all items of axes [first, last), before a loop over these.
  void load_common(const Phase& phase, int first, int last);
  /// Likewise, apart: as members of a struct, loads into the one of that name, and what takes them from there.
  std::string common_members(const Phase& phase, int first, int last) const;
  void load_common_into(std::string_view owner, const Phase& phase, int first, int last);
  void take_common_from(std::string_view owner, const Phase& phase, int first, int last);
  /// The bytes that an item of the phase loads.
  std::size_t bytes_of_item(const Phase& phase) const;
  /// How many items the loop should load at once, before it runs the first: memory answers late, so enough has to be
  /// asked for.
  int items_ahead(const Phase& phase) const;
  /// Whether the phase has many instructions, of which every item has a copy.
  static bool is_long(const Phase& phase);
  /// Declares the vectors of `items` items that are loaded at once, and takes them for the item "ahead" from then on.
  void declare_ahead(const Phase& phase, int items);
  /// Loads those of the item "ahead", whose places are defined.
  void load_ahead(const Phase& phase);
  /// Makes what was loaded as the second item what the first has.
  void take_next(const Phase& phase);
  /// Items load their own vectors again.
  void end_ahead();
  /// Runs instructions on reduced values, once.
  void run_reduced(const std::vector<int>& instructions);
  /// Likewise where a condition decides: names before it, and what they get behind it.
  void declare_reduced(const std::vector<int>& instructions);
  void assign_reduced(const std::vector<int>& instructions);
  void store_reduced(int store);

  /// The name of an instruction's value.
  std::string value(int position) const;
  /// Kept values: arrays of `items` items, indexed by "j". Declares them.
  void declare_kept(int items);

  const compile::Instruction& at(int position) const { return group_.code[static_cast<std::size_t>(position)]; }
  const compile::Group& group() const { return group_; }
  KernelText& kernel() { return kernel_; }
  const Walk& walk() const { return walk_; }
  Places& places() { return places_; }

 private:
  std::vector<bool> used_uniforms(GroupPart part) const;
  bool draws_vectors(const compile::Instruction& in) const;
  /// The positions of a phase's loads of vectors that come with their item, as opposed to before a loop.
  std::vector<int> vector_loads(const Phase& phase) const;
  /// Those that are the same for all items of axes [first, last).
  std::vector<int> common_loads(const Phase& phase, int first, int last) const;
  /// What is loaded ahead of an item: vectors, or elements where it is one.
  std::vector<int> loads_of_items(const Phase& phase) const;
  std::string vector_type(int position) const;
  /// A list of what text_of('x'), text_of('y') ... give for the vector's components.
  template <class TextOf>
  std::string listed(const TextOf& text_of) const;
  std::string vector_at(int position, bool inner) const;
  void define_elements(int position, std::string_view vector);
  /// Loads a vector, at the item's place or (`inner` is false) where the outer axes are, and defines its elements.
  void load_elements(int position, bool inner);
  void open_lanes(const Phase& phase);
  void close_lanes(const Phase& phase);
  void bind_uniform(int position);
  std::string compute(int position) const;
  std::string load(int position) const;
  bool is_full(const compile::Instruction& in) const;

  const compile::Group& group_;
  const Phases& phases_;
  Walk walk_;
  KernelText& kernel_;
  Places places_;
  std::vector<std::string> names_;       // of each instruction
  std::vector<bool> rounded_by_stores_;  // of each instruction
  std::vector<bool> is_common_;          // of each instruction: loaded before a loop
  bool loads_ahead_ = false;
  bool rows_are_inside_ = false;
};

}  // namespace russet::gpu
