// Matrix products and convolutions by oneDNN.
#include "device/cpu/onednn_contraction.h"

#include <fmt/format.h>
#include <algorithm>
#include <vector>

#include "device/cpu/convolution/convolution.h"
#include "device/cpu/epilogue.h"
#include "device/cpu/layout.h"
#include "device/cpu/onednn_kernel.h"

namespace russet::cpu {
namespace {

using compile::Access;
using compile::Operand;
using compile::Primitive;
using onednn::Desc;
using onednn::Location;
using Argument = onednn::Kernel::Argument;
using ops::Op;

using Sizes = onednn::Dims;

Sizes to_sizes(const russet::Dims& dims) { return {dims.begin(), dims.end()}; }

/// oneDNN's post-ops for an epilogue. A first addition of a row is the bias.
struct Extras {
  dnnl::primitive_attr attributes = onednn::attributes();
  std::optional<Argument> bias;
  std::vector<Argument> operands;
  std::string refusal;
};

/// Whether an operand of the epilogue is one row: a value for each index of `axis`, next to each other.
bool is_row(const Access& operand, const Shape& sizes, int axis) {
  for (int i = 0; i < sizes.rank(); ++i) {
    const std::int64_t expected = i == axis ? 1 : 0;
    if (sizes[i] != 1 && operand.strides[i] != expected) return false;
  }
  return true;
}

/// Whether an operand of the epilogue has the output's order of axes and no gaps; along some axes it may repeat.
/// oneDNN's binary post-ops read it by the output's layout without checking.
bool lies_as(const Access& operand, const Operand& output) {
  std::vector<int> axes;
  for (int i = 0; i < output.sizes.rank(); ++i) {
    if (output.sizes[i] != 1 && operand.strides[i] != 0) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end(),
            [&](int a, int b) { return output.access.strides[a] < output.access.strides[b]; });
  std::int64_t expected = 1;
  for (const int axis : axes) {
    if (operand.strides[axis] != expected) return false;
    expected *= output.sizes[axis];
  }
  return true;
}

Desc operand_desc(const Access& operand, const Shape& sizes) {
  Sizes dims;
  Sizes strides;
  for (int i = 0; i < sizes.rank(); ++i) {
    const bool repeats = operand.strides[i] == 0;
    dims.push_back(repeats ? 1 : sizes[i]);
    strides.push_back(repeats ? 1 : operand.strides[i]);
  }
  return {dims, onednn::type_of(operand.dtype), strides};
}

/// oneDNN's limit of post-ops. Beyond it, it fails with an error that says out of memory.
constexpr int most_post_ops = 32;

Extras read_extras(const Primitive& primitive, int bias_axis) {
  Extras extras;
  const Epilogue epilogue = read_epilogue(primitive);
  extras.refusal = epilogue.refusal;
  if (!extras.refusal.empty()) return extras;
  const Shape& sizes = primitive.output.sizes;
  dnnl::post_ops ops;
  std::vector<dnnl::algorithm> used;
  const auto eltwise = [&](dnnl::algorithm algorithm, double alpha, double beta) {
    // oneDNN 2.6 computes all post-ops of one algorithm with the numbers of one of them.
    if (std::find(used.begin(), used.end(), algorithm) != used.end()) {
      extras.refusal = "the epilogue has two functions of one kind, which oneDNN mixes up";
    }
    used.push_back(algorithm);
    onednn::append_eltwise(ops, algorithm, static_cast<float>(alpha), static_cast<float>(beta));
  };
  for (std::size_t i = 0; i < epilogue.ops.size(); ++i) {
    const PostOp& op = epilogue.ops[i];
    if (ops.len() + 2 > most_post_ops) {  // relu takes two
      extras.refusal = "the epilogue has more operations than oneDNN takes";
      return extras;
    }
    const bool typed = op.operand.dtype == DType::float32 || op.operand.dtype == DType::bfloat16;
    switch (op.kind) {
      case PostOp::Kind::add:
      case PostOp::Kind::multiply: {
        if (!typed) {
          extras.refusal = "an operand of the epilogue is neither float32 nor bfloat16";
          return extras;
        }
        const bool add = op.kind == PostOp::Kind::add;
        if (add && i == 0 && is_row(op.operand, sizes, bias_axis)) {
          Sizes dims(bias_axis == 1 && sizes.rank() == 4 && primitive.op != Op::matmul ? 0U : sizes.size() - 1, 1);
          dims.push_back(sizes[bias_axis]);
          const Desc desc(dims, onednn::type_of(op.operand.dtype), Sizes(dims.size(), 1));
          extras.bias = Argument{DNNL_ARG_BIAS, desc, Location::operand(op.operand)};
          break;
        }
        if (!lies_as(op.operand, primitive.output)) {
          extras.refusal = "an operand of the epilogue lies in memory in another way than the output";
          return extras;
        }
        const Desc desc = operand_desc(op.operand, sizes);
        extras.operands.push_back(
            {DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len()) | DNNL_ARG_SRC_1, desc, Location::operand(op.operand)});
        ops.append_binary(add ? dnnl::algorithm::binary_add : dnnl::algorithm::binary_mul, desc);
        break;
      }
      case PostOp::Kind::scale: eltwise(dnnl::algorithm::eltwise_linear, op.number, 0); break;
      case PostOp::Kind::shift: eltwise(dnnl::algorithm::eltwise_linear, 1, op.number); break;
      case PostOp::Kind::relu:
        // oneDNN's relu turns NaN into 0. elu with alpha 0 keeps it, and abs turns -0 into 0.
        eltwise(dnnl::algorithm::eltwise_elu, 0, 0);
        eltwise(dnnl::algorithm::eltwise_abs, 0, 0);
        break;
      case PostOp::Kind::tanh: eltwise(dnnl::algorithm::eltwise_tanh, 0, 0); break;
      case PostOp::Kind::sigmoid: eltwise(dnnl::algorithm::eltwise_logistic, 0, 0); break;
      case PostOp::Kind::gelu: eltwise(dnnl::algorithm::eltwise_gelu_erf, 0, 0); break;
    }
  }
  extras.attributes.set_post_ops(ops);
  return extras;
}

// ---- matmul

/// An operand as oneDNN sees it: rank of the result, repeated batch axes of size 1, and strides for axes of size 1 that
/// fit their neighbours.
std::optional<Desc> matrix_desc(const Operand& operand, int rank) {
  const int missing = rank - operand.sizes.rank();
  Sizes dims(static_cast<std::size_t>(rank), 1);
  Sizes strides(static_cast<std::size_t>(rank), 0);
  for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(missing + axis);
    const std::int64_t stride = operand.access.strides[axis];
    if (operand.sizes[axis] == 1) continue;
    if (stride < 0 || (stride == 0 && missing + axis >= rank - 2)) return std::nullopt;
    dims[at] = stride == 0 ? 1 : operand.sizes[axis];
    strides[at] = stride;
  }
  const std::size_t row = static_cast<std::size_t>(rank) - 2;
  const std::size_t column = row + 1;
  if (strides[column] == 0) strides[column] = dims[row] > 1 && strides[row] == 1 ? dims[row] : 1;
  if (strides[row] == 0) strides[row] = strides[column] == 1 ? dims[column] : 1;
  if (strides[row] != 1 && strides[column] != 1) return std::nullopt;
  std::int64_t reach = std::max(strides[row] * dims[row], strides[column] * dims[column]);
  for (std::size_t axis = row; axis-- > 0;) {
    if (strides[axis] == 0) strides[axis] = reach;
    reach = std::max(reach, strides[axis] * dims[axis]);
  }
  return Desc(dims, onednn::type_of(operand.access.dtype), strides);
}

/// Why a known defect of the loaded oneDNN rules out a product, empty if none does: it reads the elements of a vector
/// as if they were neighbours in memory, whatever its stride. Seen with 3.7.2 (not with 2.6 and 3.1); the other
/// versions are those whose sources say the same.
std::string why_onednn_errs(const Primitive& primitive) {
  const int version = onednn::version();
  const auto has_gaps = [](const Operand& operand, int axis) {
    const int at = operand.sizes.rank() + axis;
    return operand.sizes[at] > 1 && operand.access.strides[at] != 1;
  };
  const Shape& sizes = primitive.output.sizes;
  const int rank = sizes.rank();
  if (version >= 3003 && version < 3011 && sizes[rank - 2] == 1 && has_gaps(primitive.inputs[0], -1)) {
    return "this version of oneDNN misreads a single row with gaps between its elements";
  }
  if (version >= 3007 && version < 3009 && rank == 2 && sizes[1] == 1 && has_gaps(primitive.output, -2)) {
    return "this version of oneDNN does not leave the gaps in a single column that it writes";
  }
  return {};
}

KernelPtr build_matmul(const Primitive& primitive, const dnnl::matmul::primitive_desc& description,
                       const Extras& extras, const Desc& a, const Desc& b, const Desc& c) {
  auto kernel = std::make_unique<onednn::Kernel>(fmt::format("onednn:{}", description.impl_info_str()));
  std::vector<Argument> arguments{{DNNL_ARG_SRC, a, Location::operand(input_access(primitive, 0))},
                                  {DNNL_ARG_WEIGHTS, b, Location::operand(input_access(primitive, 1))},
                                  {DNNL_ARG_DST, c, Location::operand(primitive.output.access)}};
  if (extras.bias) arguments.push_back(*extras.bias);
  arguments.insert(arguments.end(), extras.operands.begin(), extras.operands.end());
  kernel->add(dnnl::matmul(description), std::move(arguments), description.scratchpad_desc());
  return kernel;
}

/// The same matrices without gaps between rows or matrices. Batch axes of stride 0 keep it.
Operand packed(Operand operand) {
  Strides& strides = operand.access.strides;
  const int column = operand.sizes.rank() - 1;
  const int row = column - 1;
  const bool transposed = strides[column] != 1 && operand.sizes[column] > 1;
  strides[transposed ? row : column] = 1;
  strides[transposed ? column : row] = operand.sizes[transposed ? row : column];
  std::int64_t reach = operand.sizes[row] * operand.sizes[column];
  for (int axis = row; axis-- > 0;) {
    if (strides[axis] == 0) continue;
    strides[axis] = reach;
    reach *= operand.sizes[axis];
  }
  return operand;
}

// ---- convolution

struct ActivationLayout {
  Desc desc;  // of the operand as it lies in memory
  bool last;  // channels-last
};

std::optional<ActivationLayout> activation_layout(const Operand& operand) {
  const bool last = has_strides(operand, channels_last(operand.sizes));
  const Strides strides = last ? channels_last(operand.sizes) : contiguous_strides(operand.sizes);
  if (!has_strides(operand, strides)) return std::nullopt;
  return ActivationLayout{{to_sizes(operand.sizes), onednn::type_of(operand.access.dtype), to_sizes(strides)}, last};
}

/// [o, c / groups, kh, kw], with an axis for groups in front if there are several.
std::optional<Desc> weight_desc(const Operand& operand, std::int64_t groups, bool any) {
  Sizes dims = to_sizes(operand.sizes);
  Sizes strides = to_sizes(operand.access.strides);
  for (const std::int64_t stride : strides) {
    if (stride <= 0) return std::nullopt;
  }
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    strides.insert(strides.begin(), strides[0] * dims[1]);
  }
  const auto type = onednn::type_of(operand.access.dtype);
  if (any) return Desc(dims, type, dnnl::memory::format_tag::any);
  return Desc(dims, type, strides);
}

/// oneDNN checks that padding after is exactly what the last window needs, which may be less than what was stated.
onednn::WindowDims window_dims(const Convolution& c) {
  const ops::Window& w = c.window;
  onednn::WindowDims dims{
      {w.stride[0], w.stride[1]}, {w.dilation[0] - 1, w.dilation[1] - 1}, {w.padding[0], w.padding[1]}, {0, 0}};
  for (std::size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t reach = (c.y.sizes[axis] - 1) * w.stride[i] + (c.weight.sizes[axis] - 1) * w.dilation[i] + 1;
    dims.after[i] = reach - c.x.sizes[axis] - w.padding[i];
  }
  return dims;
}

class ConvolutionMaker {
 public:
  ConvolutionMaker(const Primitive& primitive, Extras extras)
      : convolution_(primitive), extras_(std::move(extras)), window_(window_dims(convolution_)) {}

  /// The kernel, or a refusal. `blocked` lets oneDNN choose the layouts of activations, which are then copied.
  Verdict make(bool blocked) {
    const Convolution& c = convolution_;
    const auto x = activation_layout(c.x);
    const auto y = activation_layout(c.y);
    const auto weight = weight_desc(c.weight, c.groups, false);
    if (!x || !y || !weight) return decline("an operand is neither row-major nor channels-last");
    const auto any = [&](const Desc& desc, const Operand& operand) {
      if (!blocked) return desc;
      return Desc(to_sizes(operand.sizes), onednn::type_of(operand.access.dtype), dnnl::memory::format_tag::any);
    };
    const Desc x_wish = any(x->desc, c.x);
    const Desc y_wish = any(y->desc, c.y);
    const Desc w_wish = *weight_desc(c.weight, c.groups, true);
    const Locations given{Located{x->desc, Location::operand(c.x.access)},
                          Located{*weight, Location::operand(c.weight.access)},
                          Located{y->desc, Location::operand(c.y.access)}};
    switch (c.op) {
      case Op::convolution: {
        const Desc* const bias = extras_.bias ? &extras_.bias->desc : nullptr;
        const auto made = onednn::forward(extras_.attributes, x_wish, w_wish, bias, y_wish, window_);
        if (!made) break;
        return assemble<onednn::Forward>(*made, given, {made->src_desc(), made->weights_desc(), made->dst_desc()},
                                         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, 2);
      }
      case Op::convolution_input: {
        const auto made = onednn::backward<onednn::BackwardData>(extras_.attributes, x_wish, w_wish, y_wish, window_);
        if (!made) break;
        return assemble<onednn::BackwardData>(*made, given,
                                              {made->diff_src_desc(), made->weights_desc(), made->diff_dst_desc()},
                                              {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST}, 0);
      }
      default: {
        const auto made =
            onednn::backward<onednn::BackwardWeights>(extras_.attributes, x_wish, w_wish, y_wish, window_);
        if (!made) break;
        return assemble<onednn::BackwardWeights>(*made, given,
                                                 {made->src_desc(), made->diff_weights_desc(), made->diff_dst_desc()},
                                                 {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}, 1);
      }
    }
    return decline(blocked ? "oneDNN has no implementation that keeps to our scratch space"
                           : "oneDNN has no such implementation for plain layouts");
  }

 private:
  struct Located {
    Desc desc;
    Location location;
  };
  using Locations = std::array<Located, 3>;  // x, weight, y

  /// Copies to the layouts that the primitive wants, the primitive, and a copy of its result if it is laid out
  /// otherwise.
  template <class Convolution>
  Verdict assemble(const typename Convolution::primitive_desc& made, const Locations& given, std::array<Desc, 3> wanted,
                   std::array<int, 3> ids, std::size_t result) const {
    const std::string name = fmt::format("onednn:{}", made.impl_info_str());
    return accept([=, extras = extras_]() -> KernelPtr {
      int copies = 0;
      for (std::size_t i = 0; i < 3; ++i) copies += given[i].desc != wanted[i] && i != 1 ? 1 : 0;
      auto kernel = std::make_unique<onednn::Kernel>(copies > 0 ? name + ":blocked" : name);
      std::vector<Argument> arguments;
      for (std::size_t i = 0; i < 3; ++i) {
        Location location = given[i].location;
        if (given[i].desc != wanted[i]) {
          location = kernel->reserve(wanted[i]);
          if (i != result) kernel->add_reorder(given[i].desc, given[i].location, wanted[i], location);
        }
        arguments.push_back({ids[i], wanted[i], location});
      }
      const Location written = arguments[result].location;
      if (extras.bias) arguments.push_back(*extras.bias);
      arguments.insert(arguments.end(), extras.operands.begin(), extras.operands.end());
      kernel->add(Convolution(made), std::move(arguments), made.scratchpad_desc());
      if (given[result].desc != wanted[result]) {
        kernel->add_reorder(wanted[result], written, given[result].desc, given[result].location);
      }
      return kernel;
    });
  }

  Convolution convolution_;
  Extras extras_;
  onednn::WindowDims window_;
};

/// Whether a window has no tap inside x.
bool has_window_in_padding(const Primitive& primitive) {
  const Convolution c(primitive);
  for (const int axis : {0, 1}) {
    for (const TapRun& taps : c.taps_of_y(axis)) {
      if (taps.count == 0) return true;
    }
  }
  return false;
}

Verdict judge_convolution(const Primitive& primitive, bool blocked) {
  if (std::string reason = why_not_onednn(primitive); !reason.empty()) return decline(std::move(reason));
  Extras extras = read_extras(primitive, 1);
  if (!extras.refusal.empty()) return decline(std::move(extras.refusal));
  if (primitive.op == Op::convolution && input_access(primitive, 0).dtype == DType::bfloat16 &&
      has_window_in_padding(primitive)) {
    return decline("oneDNN 2.6 crashes on some windows that lie in the padding alone");
  }
  return ConvolutionMaker(primitive, std::move(extras)).make(blocked);
}

}  // namespace

std::string why_not_onednn(const Primitive& primitive) {
  const DType type = input_access(primitive, 0).dtype;
  if (type != DType::float32 && type != DType::bfloat16) {
    return fmt::format("oneDNN's {} is not used for {}", ops::row(primitive.op).name, name_of(type));
  }
  const DType result = primitive.output.access.dtype;
  if (input_access(primitive, 1).dtype != type || (result != type && result != DType::float32)) {
    return "a mix of types";
  }
  for (const Operand* operand : {&primitive.inputs[0], &primitive.inputs[1], &primitive.output}) {
    if (numel(operand->sizes) == 0) return "there is nothing to compute";
    for (const std::int64_t size : operand->sizes) {
      if (size > std::numeric_limits<std::int32_t>::max()) return "an axis beyond 2^31";
    }
  }
  return {};
}

Verdict judge_onednn_matmul(const Primitive& primitive) {
  if (std::string reason = why_not_onednn(primitive); !reason.empty()) return decline(std::move(reason));
  if (std::string reason = why_onednn_errs(primitive); !reason.empty()) return decline(std::move(reason));
  const int rank = primitive.output.sizes.rank();
  if (rank > 6) return decline("oneDNN takes at most six axes here");
  const Extras extras = read_extras(primitive, rank - 1);
  if (!extras.refusal.empty()) return decline(extras.refusal);
  const auto a = matrix_desc(primitive.inputs[0], rank);
  const auto b = matrix_desc(primitive.inputs[1], rank);
  const auto c = matrix_desc(primitive.output, rank);
  if (!a || !b || !c) return decline("a matrix has gaps along both axes");
  const auto made = extras.bias ? onednn::make<dnnl::matmul>(extras.attributes, *a, *b, extras.bias->desc, *c)
                                : onednn::make<dnnl::matmul>(extras.attributes, *a, *b, *c);
  if (!made) return decline("oneDNN has no implementation that keeps to our scratch space");
  return accept([=] { return build_matmul(primitive, *made, extras, *a, *b, *c); });
}

Verdict judge_onednn_packed(const Primitive& primitive) {
  if (std::string reason = why_not_onednn(primitive); !reason.empty()) return decline(std::move(reason));
  const int rank = primitive.output.sizes.rank();
  if (rank < 3 || rank > 6) return decline("a single product is not packed");
  const Extras extras = read_extras(primitive, rank - 1);
  if (!extras.refusal.empty()) return decline(extras.refusal);
  const std::array<const Operand*, 3> operands{&primitive.inputs[0], &primitive.inputs[1], &primitive.output};
  std::array<Desc, 3> given;
  std::array<Desc, 3> wanted;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto outside = matrix_desc(*operands[i], rank);
    if (!outside) return decline("a matrix has gaps along both axes");
    given[i] = *outside;
    wanted[i] = *matrix_desc(packed(*operands[i]), rank);
  }
  const auto made =
      extras.bias ? onednn::make<dnnl::matmul>(extras.attributes, wanted[0], wanted[1], extras.bias->desc, wanted[2])
                  : onednn::make<dnnl::matmul>(extras.attributes, wanted[0], wanted[1], wanted[2]);
  if (!made) return decline("oneDNN has no implementation that keeps to our scratch space");
  return accept([=]() -> KernelPtr {
    auto kernel = std::make_unique<onednn::Kernel>(fmt::format("onednn:{}:packed", made->impl_info_str()));
    constexpr std::array<int, 3> ids{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    const std::array<Location, 3> outside{Location::operand(input_access(primitive, 0)),
                                          Location::operand(input_access(primitive, 1)),
                                          Location::operand(primitive.output.access)};
    std::vector<Argument> arguments;
    for (std::size_t i = 0; i < 3; ++i) {
      const bool copied = given[i] != wanted[i];
      const Location location = copied ? kernel->reserve(wanted[i]) : outside[i];
      if (copied && i < 2) kernel->add_reorder(given[i], outside[i], wanted[i], location);
      arguments.push_back({ids[i], wanted[i], location});
    }
    const Location written = arguments[2].location;
    if (extras.bias) arguments.push_back(*extras.bias);
    arguments.insert(arguments.end(), extras.operands.begin(), extras.operands.end());
    kernel->add(dnnl::matmul(*made), std::move(arguments), made->scratchpad_desc());
    if (given[2] != wanted[2]) kernel->add_reorder(wanted[2], written, given[2], outside[2]);
    return kernel;
  });
}

Verdict judge_onednn_convolution(const Primitive& primitive) { return judge_convolution(primitive, false); }

Verdict judge_onednn_blocked(const Primitive& primitive) { return judge_convolution(primitive, true); }

// GFLOP/s on one core of a Xeon with AVX-512 (peak 200), 3 x 3, stride 1, channels-last and blocked with its copies:
//                          forward     input gradient   weight gradient
//    64 channels, 56 x 56  185 and 158   154 and 104      185 and 106
//   128 channels, 28 x 28  175 and 167   173 and 156      192 and 161
//   256 channels, 14 x 14  201 and 169   172 and 161      162 and 167
//   256 channels,  8 x 8   165 and 181   139 and 169       98 and 114
//   512 channels,  7 x 7   174 and 180   170 and 178      142 and 140
//   512 channels,  4 x 4    97 and 146   131 and 142       88 and  79
//   1 x 1, any             118 to 184 and half of that
Verdict judge_faster_blocked(const Primitive& primitive) {
  const Convolution convolution(primitive);
  const Shape& first = input_sizes(primitive, 0);
  const Shape& weight = convolution.weight.sizes;
  if (input_access(primitive, 0).dtype != DType::float32) return decline("bfloat16 prefers channels-last");
  if (convolution.computes_weight()) return decline("weight gradients are faster channels-last");
  if (convolution.taps() < 9) return decline("the copies would cost more than they gain: a small window");
  if (std::min(weight[0], weight[1]) < 256) return decline("channels-last is faster for few channels");
  if (first[2] * first[3] > 64) return decline("channels-last is faster on large planes");
  return judge_onednn_blocked(primitive);
}

}  // namespace russet::cpu
