#include "device/gpu/emitter/bits.h"

#include <bit>

namespace russet::gpu {
namespace {

using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

DType bits_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::uint8;
    case 2: return DType::int16;
    case 4: return DType::int32;
    default: return DType::int64;
  }
}

/// A constant of the type, as an integer of its size.
std::int64_t bits_of(const ops::Number& number, DType dtype) {
  const auto single = static_cast<float>(number.real);
  switch (dtype) {
    case DType::boolean: return number.integer != 0 ? 1 : 0;
    case DType::float16: return std::bit_cast<std::int16_t>(float16(single));
    case DType::bfloat16: return std::bit_cast<std::int16_t>(bfloat16(single));
    case DType::float32: return std::bit_cast<std::int32_t>(single);
    default: return number.integer;
  }
}

/// Finds the values that are only moved: starts with all candidates and removes those that something computes with,
/// until none is left to remove.
class Moves {
 public:
  explicit Moves(const Group& group) : group_(group), moved_(group.code.size()) {
    for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] = may_move(group.code[i]);
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t i = 0; i < moved_.size(); ++i) {
        changes |= check_inputs(i);
        changes |= check_access(i);
      }
    }
  }

  /// Of a store: whether what it stores is moved.
  bool operator[](std::size_t i) const {
    const Instruction& in = group_.code[i];
    return moved_[in.kind == Kind::store ? static_cast<std::size_t>(in.inputs[0]) : i];
  }

 private:
  static bool selects(const Instruction& in) { return in.kind == Kind::compute && in.op == ops::Op::where; }
  static bool may_move(const Instruction& in) {
    return in.kind == Kind::load || in.kind == Kind::constant || selects(in);
  }

  bool forget(std::size_t i) {
    const bool known = moved_[i];
    moved_[i] = false;
    return known;
  }

  /// Whether the instruction only moves its inputs; a selection does if both of its choices are only moved.
  bool check_inputs(std::size_t i) {
    const Instruction& in = group_.code[i];
    bool changes = false;
    for (std::size_t k = 0; k < in.inputs.size(); ++k) {
      if (in.inputs[k] < 0 || in.kind == Kind::store) continue;
      const auto input = static_cast<std::size_t>(in.inputs[k]);
      const bool passes = selects(in) && k > 0;
      if (!passes || !moved_[i]) changes |= forget(input);
      if (passes && !moved_[input]) changes |= forget(i);
    }
    return changes;
  }

  /// An access has one type.
  bool check_access(std::size_t i) {
    const Instruction& in = group_.code[i];
    if (in.access < 0 || (*this)[i]) return false;
    bool changes = false;
    for (std::size_t k = 0; k < group_.code.size(); ++k) {
      const Instruction& other = group_.code[k];
      if (other.access != in.access) continue;
      if (other.kind == Kind::load) changes |= forget(k);
      if (other.kind == Kind::store) changes |= forget(static_cast<std::size_t>(other.inputs[0]));
    }
    return changes;
  }

  const Group& group_;
  std::vector<bool> moved_;
};

}  // namespace

void move_bits(Group& group) {
  const Moves moves(group);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    if (!moves[i]) continue;
    Instruction& in = group.code[i];
    if (in.kind == Kind::constant) in.number.integer = bits_of(in.number, in.dtype);
    in.dtype = bits_of(in.dtype);
    if (in.access >= 0) group.accesses[static_cast<std::size_t>(in.access)].dtype = in.dtype;
  }
}

}  // namespace russet::gpu
