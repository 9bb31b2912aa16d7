#pragma once
// oneDNN, as versions 2.6 and 3.x share it: primitives are made here, and only here do the versions differ.
#include <russet/error.h>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace russet::cpu::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

inline const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

inline const dnnl::stream& stream() {
  static const dnnl::stream stream(engine());
  return stream;
}

/// Implementations that keep to the scratch space that they are given, and are made for this machine: those that call
/// oneDNN's own matrix products allocate inside, and the reference ones are loops.
inline bool usable(std::string_view implementation) {
  return implementation.find("gemm:") == std::string_view::npos &&
         implementation.find("ref") == std::string_view::npos &&
         implementation.find("simple") == std::string_view::npos;
}

/// The version that is loaded, which may be later than the one that was compiled with: 3007 is 3.7.
inline int version() {
  const dnnl_version_t& loaded = *dnnl_version();
  return loaded.major * 1000 + loaded.minor;
}

inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm algorithm, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(algorithm, alpha, beta);
#else
  ops.append_eltwise(1.0F, algorithm, alpha, beta);
#endif
}

/// Throws OutOfMemoryError if that is what oneDNN's error says. Other errors mean that it lacks an implementation.
inline void require_memory(const dnnl::error& error) {
  if (error.status != dnnl_out_of_memory) return;
  throw OutOfMemoryError("out of memory: none is left for oneDNN to prepare a kernel. Use a smaller batch?");
}

/// Takes `next` until a usable implementation comes; nothing if there is none.
template <class PrimitiveDesc>
std::optional<PrimitiveDesc> first_usable(PrimitiveDesc candidate) {
  do {
    if (usable(candidate.impl_info_str())) return candidate;
  } while (candidate.next_impl());
  return std::nullopt;
}

// In 2.6 a primitive_desc refers to its operation's description while it looks for the next implementation, so the
// description lives here until the choice is made.
template <class Primitive, class... Arguments>
std::optional<typename Primitive::primitive_desc> make(const dnnl::primitive_attr& attributes,
                                                       const Arguments&... arguments) {
  try {
#if DNNL_VERSION_MAJOR >= 3
    return first_usable(typename Primitive::primitive_desc(engine(), arguments..., attributes));
#else
    const typename Primitive::desc description(arguments...);
    return first_usable(typename Primitive::primitive_desc(description, attributes, engine()));
#endif
  } catch (const dnnl::error& error) {
    require_memory(error);
    return std::nullopt;
  }
}

/// Sizes of a convolution's window in oneDNN's terms; dilation counts from 0.
struct WindowDims {
  Dims strides, dilates, before, after;
};

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

inline std::optional<Forward::primitive_desc> forward(const dnnl::primitive_attr& attributes, const Desc& x,
                                                      const Desc& weight, const Desc* bias, const Desc& y,
                                                      const WindowDims& w) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto direct = dnnl::algorithm::convolution_direct;
  if (bias != nullptr) {
    return make<Forward>(attributes, kind, direct, x, weight, *bias, y, w.strides, w.dilates, w.before, w.after);
  }
  return make<Forward>(attributes, kind, direct, x, weight, y, w.strides, w.dilates, w.before, w.after);
}

/// The gradients take any forward description of the same sizes as a hint.
template <class Backward>
std::optional<typename Backward::primitive_desc> backward(const dnnl::primitive_attr& attributes, const Desc& x,
                                                          const Desc& weight, const Desc& y, const WindowDims& w) {
  const auto direct = dnnl::algorithm::convolution_direct;
  try {
#if DNNL_VERSION_MAJOR >= 3
    const Forward::primitive_desc hint(engine(), dnnl::prop_kind::forward_training, direct, x, weight, y, w.strides,
                                       w.dilates, w.before, w.after);
    return first_usable(typename Backward::primitive_desc(engine(), direct, x, weight, y, w.strides, w.dilates,
                                                          w.before, w.after, hint, attributes));
#else
    const Forward::desc forward(dnnl::prop_kind::forward_training, direct, x, weight, y, w.strides, w.dilates, w.before,
                                w.after);
    const Forward::primitive_desc hint(forward, engine());
    const typename Backward::desc description(direct, x, weight, y, w.strides, w.dilates, w.before, w.after);
    return first_usable(typename Backward::primitive_desc(description, attributes, engine(), hint));
#endif
  } catch (const dnnl::error& error) {
    require_memory(error);
    return std::nullopt;
  }
}

}  // namespace russet::cpu::onednn
