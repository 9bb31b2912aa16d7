// Matrix products and convolutions.
#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

ConvPadding padding_of(const Call& c, std::size_t i) {
  return c.is_text(i) ? ConvPadding(c.text(i)) : ConvPadding(c.size2(i));
}

Results convolution1d(const Call& c) {
  Conv1dOptions options;
  if (c.has(3)) options.stride = c.integer(3);
  if (c.has(4)) options.padding = c.is_text(4) ? ConvPadding(c.text(4)) : ConvPadding(c.integer(4));
  if (c.has(5)) options.dilation = c.integer(5);
  if (c.has(6)) options.groups = c.integer(6);
  return {conv1d(c.tensor(0), c.tensor(1), c.tensor(2), options)};
}

Results convolution2d(const Call& c) {
  Conv2dOptions options;
  if (c.has(3)) options.stride = c.size2(3);
  if (c.has(4)) options.padding = padding_of(c, 4);
  if (c.has(5)) options.dilation = c.size2(5);
  if (c.has(6)) options.groups = c.integer(6);
  return {conv2d(c.tensor(0), c.tensor(1), c.tensor(2), options)};
}

Results transposed1d(const Call& c) {
  ConvTranspose1dOptions options;
  if (c.has(3)) options.stride = c.integer(3);
  if (c.has(4)) options.padding = c.integer(4);
  if (c.has(5)) options.output_padding = c.integer(5);
  if (c.has(6)) options.groups = c.integer(6);
  return {conv_transpose1d(c.tensor(0), c.tensor(1), c.tensor(2), options)};
}

Results transposed2d(const Call& c) {
  ConvTranspose2dOptions options;
  if (c.has(3)) options.stride = c.size2(3);
  if (c.has(4)) options.padding = c.size2(4);
  if (c.has(5)) options.output_padding = c.size2(5);
  if (c.has(6)) options.groups = c.integer(6);
  if (c.has(7)) options.dilation = c.size2(7);
  return {conv_transpose2d(c.tensor(0), c.tensor(1), c.tensor(2), options)};
}

template <class F>
Results scaled_product(const Call& c, F f) {
  if (c.has(4)) return {f(c.tensor(0), c.tensor(1), c.tensor(2), c.scalar(3), c.scalar(4))};
  if (c.has(3)) return {f(c.tensor(0), c.tensor(1), c.tensor(2), c.scalar(3))};
  return {f(c.tensor(0), c.tensor(1), c.tensor(2))};
}

}  // namespace

void add_contractions(Functions& table) {
  table["matmul"] = [](const Call& c) -> Results { return {matmul(c.tensor(0), c.tensor(1))}; };
  table["mm"] = [](const Call& c) -> Results { return {mm(c.tensor(0), c.tensor(1))}; };
  table["bmm"] = [](const Call& c) -> Results { return {bmm(c.tensor(0), c.tensor(1))}; };
  table["mv"] = [](const Call& c) -> Results { return {mv(c.tensor(0), c.tensor(1))}; };
  table["dot"] = [](const Call& c) -> Results { return {dot(c.tensor(0), c.tensor(1))}; };
  table["outer"] = [](const Call& c) -> Results { return {outer(c.tensor(0), c.tensor(1))}; };
  table["kron"] = [](const Call& c) -> Results { return {kron(c.tensor(0), c.tensor(1))}; };
  table["tensordot"] = [](const Call& c) -> Results {
    if (!c.has(2)) return {tensordot(c.tensor(0), c.tensor(1))};
    return {tensordot(c.tensor(0), c.tensor(1), static_cast<int>(c.integer(2)))};
  };
  table["addmm"] = [](const Call& c) { return scaled_product(c, [](const auto&... a) { return addmm(a...); }); };
  table["baddbmm"] = [](const Call& c) { return scaled_product(c, [](const auto&... a) { return baddbmm(a...); }); };
  table["einsum"] = [](const Call& c) -> Results { return {einsum(c.text(0), c.tensors(1))}; };
  table["linear"] = [](const Call& c) -> Results {
    return {c.has(2) ? linear(c.tensor(0), c.tensor(1), c.tensor(2)) : linear(c.tensor(0), c.tensor(1))};
  };
  table["conv1d"] = convolution1d;
  table["conv2d"] = convolution2d;
  table["conv_transpose1d"] = transposed1d;
  table["conv_transpose2d"] = transposed2d;
}

}  // namespace golden
