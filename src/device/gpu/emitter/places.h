#pragma once
// Places: where the accesses of a group lie, as text: the memory that they are bound to, and the offsets in it.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu/emitter/kernel_text.h"
#include "device/gpu/emitter/walk.h"

namespace russet::gpu {

class Places {
 public:
  /// Binds the memory of the accesses that are `used`. The group outlives the places, and so does the kernel.
  Places(const compile::Group& group, const Walk& walk, KernelText& kernel, const std::vector<bool>& used);

  /// Defines the base offset of each access, to which define() adds.
  void define_bases();
  /// Defines where accesses lie along axes [first, last), whose elements a linear `item` counts; along the inner axis
  /// an item is `width` elements. What an inner definition gives is added to the outer one.
  void define(int first, int last, std::string_view item, bool inner);

  /// The pointer that an access is bound to, and the name of its offset in there: where the item is, or (`inner` is
  /// false) where the outer axes are.
  const std::string& pointer(int access) const;
  std::string offset(int access, bool inner) const;
  /// Element k of an item whose elements lie apart.
  std::string scattered(int access) const;
  /// The position of element k of an item, for an access that stands for positions.
  std::string position(int access) const;
  /// The stride of an access along the walk's inner axis.
  std::int64_t inner_stride(int access) const;
  bool is_vector(int access) const;
  bool is_packed(int access) const { return group_.accesses[static_cast<std::size_t>(access)].packed; }

 private:
  /// Accesses with the same strides and origin share their offset.
  struct Offset {
    Strides strides;
    std::int64_t first = 0;
    bool position = false;  // a value of its own (index), not an address
    bool written = false;
    std::string base;  // added first
    std::array<std::string, max_rank> members{};
  };

  Offset offset_for(std::size_t access, bool written);
  void share_or_add(Offset place);
  const Offset& offset_at(int access) const;
  std::string_view type_of(const Offset& place) const {
    return place.position ? std::string_view("long") : walk_.index_type();
  }
  std::string stride_member(std::size_t number, int axis);
  void define_indices(int first, int last, std::string_view item);
  void define_offsets(int first, int last, bool inner);
  void define_line(int first, int last, std::string_view item, bool inner);
  void define_axes(int first, int last, std::string_view item, bool inner);

  const compile::Group& group_;
  Walk walk_;
  KernelText& kernel_;
  std::vector<Offset> offsets_;
  std::vector<int> offset_of_access_;  // of each access; -1: not used here
  std::vector<std::string> pointers_;  // of each access
};

}  // namespace russet::gpu
