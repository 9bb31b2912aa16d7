// Activations, pooling, normalisation, attention, dropout, images.
#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

template <Tensor (*F)(const Tensor&)>
Results one(const Call& c) {
  return {F(c.tensor(0))};
}

/// F(x, number), or F(x) if the call has no number.
template <class F>
Results one_number(const Call& c, F f) {
  if (c.has(1)) return {f(c.tensor(0), c.real(1))};
  return {f(c.tensor(0))};
}

void add_activations(Functions& table) {
  table.insert({{"relu", one<relu>},
                {"relu6", one<relu6>},
                {"selu", one<selu>},
                {"silu", one<silu>},
                {"mish", one<mish>},
                {"softsign", one<softsign>},
                {"hardswish", one<hardswish>},
                {"hardsigmoid", one<hardsigmoid>},
                {"logsigmoid", one<logsigmoid>},
                {"tanhshrink", one<tanhshrink>}});
  table["leaky_relu"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return leaky_relu(a...); }); };
  table["elu"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return elu(a...); }); };
  table["celu"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return celu(a...); }); };
  table["softplus"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return softplus(a...); }); };
  table["softshrink"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return softshrink(a...); }); };
  table["hardshrink"] = [](const Call& c) { return one_number(c, [](const auto&... a) { return hardshrink(a...); }); };
  table["hardtanh"] = [](const Call& c) -> Results {
    return {c.has(1) ? hardtanh(c.tensor(0), c.real(1), c.real(2)) : hardtanh(c.tensor(0))};
  };
  table["gelu"] = [](const Call& c) -> Results {
    if (!c.has(1)) return {gelu(c.tensor(0))};
    return {gelu(c.tensor(0), c.text(1) == "tanh" ? GeluApproximation::tanh : GeluApproximation::none)};
  };
  table["threshold"] = [](const Call& c) -> Results { return {threshold(c.tensor(0), c.real(1), c.real(2))}; };
  table["prelu"] = [](const Call& c) -> Results { return {prelu(c.tensor(0), c.tensor(1))}; };
  table["glu"] = [](const Call& c) -> Results {
    return {c.has(1) ? glu(c.tensor(0), c.integer(1)) : glu(c.tensor(0))};
  };
  table["softmin"] = [](const Call& c) -> Results { return {softmin(c.tensor(0), c.integer(1))}; };
}

MaxPool1dOptions max_options1d(const Call& c) {
  MaxPool1dOptions options;
  if (c.has(2)) options.stride = c.integer(2);
  if (c.has(3)) options.padding = c.integer(3);
  if (c.has(4)) options.dilation = c.integer(4);
  if (c.has(5)) options.ceil_mode = c.flag(5);
  return options;
}

MaxPool2dOptions max_options2d(const Call& c) {
  MaxPool2dOptions options;
  if (c.has(2)) options.stride = c.size2(2);
  if (c.has(3)) options.padding = c.size2(3);
  if (c.has(4)) options.dilation = c.size2(4);
  if (c.has(5)) options.ceil_mode = c.flag(5);
  return options;
}

Results average_pool1d(const Call& c) {
  AvgPool1dOptions options;
  if (c.has(2)) options.stride = c.integer(2);
  if (c.has(3)) options.padding = c.integer(3);
  if (c.has(4)) options.ceil_mode = c.flag(4);
  if (c.has(5)) options.count_include_pad = c.flag(5);
  return {avg_pool1d(c.tensor(0), c.integer(1), options)};
}

Results average_pool2d(const Call& c) {
  AvgPool2dOptions options;
  if (c.has(2)) options.stride = c.size2(2);
  if (c.has(3)) options.padding = c.size2(3);
  if (c.has(4)) options.ceil_mode = c.flag(4);
  if (c.has(5)) options.count_include_pad = c.flag(5);
  if (c.has(6)) options.divisor_override = c.integer(6);
  return {avg_pool2d(c.tensor(0), c.size2(1), options)};
}

/// The output sizes of adaptive pooling; None keeps the input's.
Size2 adaptive_size(const Call& c) {
  const Json& sizes = c.value(1);
  if (!sizes.is_array()) return Size2(sizes.get<std::int64_t>());
  const auto size = [&](std::size_t i) {
    return sizes[i].is_null() ? c.tensor(0).size(static_cast<std::int64_t>(i) - 2) : sizes[i].get<std::int64_t>();
  };
  return Size2(size(0), size(1));
}

void add_pooling(Functions& table) {
  table["max_pool1d"] = [](const Call& c) -> Results {
    return {max_pool1d(c.tensor(0), c.integer(1), max_options1d(c))};
  };
  table["max_pool2d"] = [](const Call& c) -> Results {
    return {max_pool2d(c.tensor(0), c.size2(1), max_options2d(c))};
  };
  table["max_pool2d_with_indices"] = [](const Call& c) -> Results {
    const ValuesIndices found = max_pool2d_with_indices(c.tensor(0), c.size2(1), max_options2d(c));
    return {found.values, found.indices};
  };
  // values, indices, kernel, stride, padding, size of the result
  table["max_unpool2d"] = [](const Call& c) -> Results {
    MaxUnpool2dOptions options;
    if (c.has(3)) options.stride = c.size2(3);
    if (c.has(4)) options.padding = c.size2(4);
    if (c.has(5)) options.output_size = c.size2(5);
    return {max_unpool2d(c.tensor(0), c.tensor(1), c.size2(2), options)};
  };
  table["avg_pool1d"] = average_pool1d;
  table["avg_pool2d"] = average_pool2d;
  table["adaptive_avg_pool1d"] = [](const Call& c) -> Results {
    return {adaptive_avg_pool1d(c.tensor(0), c.integer(1))};
  };
  table["adaptive_max_pool1d"] = [](const Call& c) -> Results {
    return {adaptive_max_pool1d(c.tensor(0), c.integer(1))};
  };
  table["adaptive_avg_pool2d"] = [](const Call& c) -> Results {
    return {adaptive_avg_pool2d(c.tensor(0), adaptive_size(c))};
  };
  table["adaptive_max_pool2d"] = [](const Call& c) -> Results {
    return {adaptive_max_pool2d(c.tensor(0), adaptive_size(c))};
  };
}

Results batch_normed(const Call& c) {
  BatchNormOptions options;
  if (c.has(5)) options.training = c.flag(5);
  if (c.has(6)) options.momentum = c.real(6);
  if (c.has(7)) options.eps = c.real(7);
  const Tensor mean = c.tensor(1);
  const Tensor variance = c.tensor(2);
  const Tensor result = batch_norm(c.tensor(0), mean, variance, c.tensor(3), c.tensor(4), options);
  return {result, mean, variance};
}

void add_norms(Functions& table) {
  table["batch_norm"] = batch_normed;
  table["layer_norm"] = [](const Call& c) -> Results {
    if (c.has(4)) return {layer_norm(c.tensor(0), c.dims(1), c.tensor(2), c.tensor(3), c.real(4))};
    return {layer_norm(c.tensor(0), c.dims(1), c.tensor(2), c.tensor(3))};
  };
  table["group_norm"] = [](const Call& c) -> Results {
    return {group_norm(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3))};
  };
  table["instance_norm"] = [](const Call& c) -> Results { return {instance_norm(c.tensor(0))}; };
  table["rms_norm"] = [](const Call& c) -> Results {
    if (c.has(3)) return {rms_norm(c.tensor(0), c.dims(1), c.tensor(2), c.real(3))};
    return {rms_norm(c.tensor(0), c.dims(1), c.tensor(2))};
  };
  table["normalize"] = [](const Call& c) -> Results {
    return {c.has(1) ? normalize(c.tensor(0), c.real(1), c.integer(2)) : normalize(c.tensor(0))};
  };
  table["cosine_similarity"] = [](const Call& c) -> Results {
    if (c.has(2)) return {cosine_similarity(c.tensor(0), c.tensor(1), c.integer(2))};
    return {cosine_similarity(c.tensor(0), c.tensor(1))};
  };
}

Results attention(const Call& c) {
  AttentionOptions options;
  if (c.has(4)) options.dropout_p = c.real(4);
  if (c.has(5)) options.is_causal = c.flag(5);
  if (c.has(6)) options.scale = c.real(6);
  return {scaled_dot_product_attention(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), options)};
}

Interpolation interpolation_of(const std::string& name) {
  if (name == "bilinear") return Interpolation::bilinear;
  if (name == "linear") return Interpolation::linear;
  if (name == "bicubic") return Interpolation::bicubic;
  return name == "nearest-exact" ? Interpolation::nearest_exact : Interpolation::nearest;
}

void add_images(Functions& table) {
  table["pixel_shuffle"] = [](const Call& c) -> Results { return {pixel_shuffle(c.tensor(0), c.integer(1))}; };
  table["pixel_unshuffle"] = [](const Call& c) -> Results { return {pixel_unshuffle(c.tensor(0), c.integer(1))}; };
  table["channel_shuffle"] = [](const Call& c) -> Results { return {channel_shuffle(c.tensor(0), c.integer(1))}; };
  table["unfold"] = [](const Call& c) -> Results {
    return {unfold(c.tensor(0), c.size2(1), {.dilation = c.size2(2), .padding = c.size2(3), .stride = c.size2(4)})};
  };
  table["fold"] = [](const Call& c) -> Results {
    return {fold(c.tensor(0), c.size2(1), c.size2(2),
                 {.dilation = c.size2(3), .padding = c.size2(4), .stride = c.size2(5)})};
  };
  // size, factor, mode, align_corners
  table["interpolate"] = [](const Call& c) -> Results {
    InterpolateOptions options;
    if (c.has(1)) options.size = c.size2(1);
    if (c.has(2)) options.scale_factor = c.real(2);
    if (c.has(3)) options.mode = interpolation_of(c.text(3));
    if (c.has(4)) options.align_corners = c.flag(4);
    return {interpolate(c.tensor(0), options)};
  };
}

}  // namespace

void add_layers(Functions& table) {
  add_activations(table);
  add_pooling(table);
  add_norms(table);
  add_images(table);
  table["scaled_dot_product_attention"] = attention;
  table["dropout"] = [](const Call& c) -> Results { return {dropout(c.tensor(0), c.real(1), c.flag(2))}; };
}

}  // namespace golden
