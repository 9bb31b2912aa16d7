#pragma once
// The arguments of a recorded call, as an overload of a function takes them.
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "calls/call.h"
#include "calls/function_table.h"

namespace golden {

class Arguments {
 public:
  /// Nothing if the overload does not take the call's arguments.
  static std::optional<Arguments> bound(const Call& call, const Overload& overload);

  /// The value of parameter i. Without one, and without a default, it is what functions get that nobody gave it: no
  /// tensor, a new tensor's options with the call's device, a generator that starts anew.
  template <class T>
  T get(std::size_t i) const {
    return value<T>(positions_.at(i));
  }
  template <class T, class Default>
  T get(std::size_t i, const Default& otherwise) const {
    constexpr bool always_given = std::is_same_v<T, russet::TensorOptions> ||
                                  std::is_same_v<T, russet::InferredOptions> || std::is_same_v<T, russet::Generator*> ||
                                  std::is_same_v<T, russet::Device>;
    if constexpr (always_given) {
      return value<T>(positions_.at(i));
    } else {
      return call_->has(positions_.at(i)) ? value<T>(positions_[i]) : T(otherwise);
    }
  }

  Results results(const russet::Tensor& result) const { return {result}; }
  Results results(const std::vector<russet::Tensor>& result) const { return result; }
  Results results(const std::pair<russet::Tensor, russet::Tensor>& result) const {
    return {result.first, result.second};
  }
  /// The tensors of a structure, in the order of its fields: generated for each that a function returns.
  template <class Structure>
  Results results(const Structure& result) const;
  /// A boolean as a tensor.
  Results results(bool result) const;

 private:
  template <class T>
  T value(std::size_t position) const;
  /// The enumerator of a name. Throws std::runtime_error for an unknown one.
  template <class T>
  static T enumerator(std::string_view text);
  template <class T>
  static T value_of(std::string_view text, std::initializer_list<std::pair<std::string_view, T>> names) {
    for (const auto& [name, value] : names) {
      if (name == text) return value;
    }
    throw std::runtime_error("no value is called " + std::string(text));
  }

  const Call* call_ = nullptr;
  std::vector<std::size_t> positions_;  // of each parameter's value in the call; Call::nowhere without one
};

/// The entries of an index: integers, slices, new dimensions, ellipses, tensors.
std::vector<russet::Index> index_of(const Call& call, std::size_t position);
/// A generator that starts anew with each call; good for one use.
russet::Generator* fresh_generator();

template <class T>
T Arguments::value(std::size_t position) const {
  using namespace russet;
  const Call& call = *call_;
  if constexpr (std::is_same_v<T, Tensor>) {
    return call.tensor(position);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    return call.tensors(position);
  } else if constexpr (std::is_same_v<T, Scalar> || std::is_same_v<T, std::optional<Scalar>>) {
    return call.scalar(position);
  } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>) {
    return call.integer(position);
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) {
    return call.real(position);
  } else if constexpr (std::is_same_v<T, std::pair<double, double>>) {
    return call.value(position).get<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return call.flag(position);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return call.text(position);
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    return call.integers(position);
  } else if constexpr (std::is_same_v<T, DimList> || std::is_same_v<T, Shape>) {
    return call.dims(position);
  } else if constexpr (std::is_same_v<T, Size2> || std::is_same_v<T, OptionalSize2>) {
    return call.size2(position);
  } else if constexpr (std::is_same_v<T, Size3> || std::is_same_v<T, OptionalSize3>) {
    return call.size3(position);
  } else if constexpr (std::is_same_v<T, ConvPadding>) {
    return call.is_text(position) ? ConvPadding(call.text(position)) : ConvPadding(call.size2(position));
  } else if constexpr (std::is_same_v<T, ConvPadding3>) {
    return call.is_text(position) ? ConvPadding3(call.text(position)) : ConvPadding3(call.size3(position));
  } else if constexpr (std::is_same_v<T, DType> || std::is_same_v<T, std::optional<DType>>) {
    return dtype_of(call.text(position), DType::float32);
  } else if constexpr (std::is_same_v<T, Device>) {
    return call.device();
  } else if constexpr (std::is_same_v<T, TensorOptions>) {
    return TensorOptions{DType::float32, call.device()};
  } else if constexpr (std::is_same_v<T, InferredOptions>) {
    return InferredOptions{{}, call.device()};
  } else if constexpr (std::is_same_v<T, Generator*>) {
    return fresh_generator();
  } else if constexpr (std::is_same_v<T, std::vector<Index>>) {
    return index_of(call, position);
  } else {
    return enumerator<T>(call.text(position));
  }
}

}  // namespace golden
