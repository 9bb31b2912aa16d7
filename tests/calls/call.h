#pragma once
// A recorded call of a function: its arguments, made as they are described.
#include <russet/functional.h>

#include <map>
#include <optional>
#include <string_view>

#include "calls/golden.h"
#include "calls/layout.h"
#include "calls/pool.h"

namespace golden {

using russet::Scalar;
using russet::Tensor;

/// What becomes of the sizes that a call describes: nothing, no elements along the first or the last axis, no axes at
/// all, or every size but 1 made odd.
enum class Sizes : std::uint8_t { given, none_first, none_last, scalar, odd };

/// How the tensors of a call are made.
struct Making {
  /// The type of tensors that are described as floating. Of other types they hold the whole numbers of the range that
  /// is described, but 0.
  russet::DType floating = russet::DType::float64;
  russet::Device device{};
  russet::test::Layout layout = russet::test::Layout::contiguous;
  Sizes sizes = Sizes::given;
  /// Tensors that take a gradient are moved by this times direction().
  double nudge = 0;
  /// Calls that share a pool share inputs of the same description.
  russet::test::Pool* pool = nullptr;
};

/// The arguments of a recorded call: by position, then by name.
class Call {
 public:
  static constexpr std::uint64_t seed = 2026;
  /// Where there is no argument.
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// `record`: a line of a file of calls.
  Call(const Json& record, const Making& making);
  Call(const Json& record, russet::DType floating, russet::Device device)
      : Call(record, Making{.floating = floating, .device = device}) {}

  /// How many arguments have no name; they come first.
  std::size_t unnamed() const { return unnamed_; }
  const std::vector<std::string>& names() const { return names_; }

  /// Whether argument i is there, and not None.
  bool has(std::size_t i) const { return i < arguments_.size() && !arguments_[i].value.is_null(); }
  bool is_tensor(std::size_t i) const { return has(i) && arguments_[i].tensor.defined(); }
  bool is_text(std::size_t i) const { return has(i) && arguments_[i].value.is_string(); }
  bool is_list(std::size_t i) const { return has(i) && arguments_[i].value.is_array(); }
  /// Undefined if the argument is not there.
  Tensor tensor(std::size_t i) const { return has(i) ? arguments_[i].tensor : Tensor(); }
  const std::vector<Tensor>& tensors(std::size_t i) const { return arguments_.at(i).tensors; }
  Scalar scalar(std::size_t i) const;
  std::int64_t integer(std::size_t i) const { return value(i).get<std::int64_t>(); }
  double real(std::size_t i) const;
  bool flag(std::size_t i) const { return value(i).get<bool>(); }
  std::string text(std::size_t i) const { return value(i).get<std::string>(); }
  std::vector<std::int64_t> integers(std::size_t i) const;
  russet::Dims dims(std::size_t i) const { return russet::Dims(std::span<const std::int64_t>(integers(i))); }
  russet::Size2 size2(std::size_t i) const;
  russet::Size3 size3(std::size_t i) const;
  const Json& value(std::size_t i) const { return arguments_.at(i).value; }
  russet::Device device() const { return making_.device; }

  /// The tensors that take a gradient, in order.
  const std::vector<Tensor>& leaves() const { return leaves_; }
  /// Whether any input was written since it was made.
  bool is_stale() const;
  /// Numbers between -1 and 1, of a leaf's shape and type.
  static Tensor direction(const Tensor& leaf, std::size_t index);
  /// The generator's offset of the last tensor.
  std::uint64_t offset() const { return offset_; }

 private:
  struct Argument {
    Json value;
    Tensor tensor;
    std::vector<Tensor> tensors;
  };
  Tensor make(const Json& spec);
  Tensor made(const Json& spec, const russet::Shape& shape, russet::DType dtype, bool leaf) const;
  Tensor values_of(const Json& spec, const russet::Shape& shape, russet::DType dtype) const;

  void add(const Json& value);

  Making making_;
  std::size_t unnamed_ = 0;
  std::vector<std::string> names_;  // of the arguments behind
  std::uint64_t offset_ = 0;
  std::vector<Argument> arguments_;
  std::vector<Tensor> leaves_;
  std::vector<std::pair<Tensor, std::uint64_t>> made_;  // with their versions
};

}  // namespace golden
