// Recording: shapes and types are checked here, at the caller's line.
#include <fmt/format.h>
#include <russet/error.h>

#include "graph/checkpoint.h"
#include "graph/closure.h"
#include "graph/executor.h"
#include "graph/index_check.h"
#include "graph/recorder.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

/// The largest size of a tensor in bytes: small enough that sums of several fit 64 bits.
constexpr std::int64_t most_bytes = std::int64_t{1} << 47;

void require_addressable(const NodeInfo& result) {
  std::int64_t bytes = 0;
  const auto element = static_cast<std::int64_t>(size_of(result.dtype));
  if (!__builtin_mul_overflow(numel(result.shape), element, &bytes) && bytes <= most_bytes) return;
  throw OutOfMemoryError(fmt::format("a tensor of sizes {} and type {} has more bytes than a computer addresses: 2^47",
                                     to_string(result.shape), name_of(result.dtype)));
}

/// Of an operator on the inputs that there are, at most `most`.
template <std::size_t most, class Inputs>
NodeRef recorded(ops::Op op, Inputs&& inputs, NodeInfo&& given) {
  std::array<const ops::Description*, most> descriptions{};
  std::size_t count = 0;
  for (; count < inputs.size() && inputs[count]; ++count) {
    const Node& input = *inputs[count];
    require_sound(input);
    descriptions[count] = &input;
    if (count > 0 && !(input.device == inputs[0]->device)) throw_device_mismatch(op, inputs);
  }
  static_cast<ops::Description&>(given) = ops::infer(op, {descriptions.data(), count}, given.attributes, given);
  given.op = op;
  require_addressable(given);
  if (ops::row(op).family == ops::Family::indexing) {
    auto& indexing = std::get<ops::Indexing>(given.attributes);
    indexing.checked = check_indices(op, {inputs.data(), count}, indexing) || indexing.checked;
  }
  if (count > 0) {
    given.device = inputs[0]->device;
  } else if (given.device.type != DeviceType::cpu) {
    executor_of(given.device);  // throws where there is no such device
  }
  Recorder::current().count_node();
  NodeRef node = make_ref<Node>(given, std::forward<Inputs>(inputs));
  node->set_checkpoint(Checkpoint::current());
  return node;
}

}  // namespace

NodeRef record(ops::Op op, NodeRefs inputs, NodeInfo&& given) {
  return recorded<3>(op, std::move(inputs), std::move(given));
}

NodeRef record_many(ops::Op op, std::vector<NodeRef> inputs, NodeInfo&& given) {
  if (inputs.size() > ops::max_inputs) {
    throw InternalError(fmt::format("{}: {} inputs, and no operator has as many", ops::row(op).name, inputs.size()));
  }
  return recorded<ops::max_inputs>(op, std::move(inputs), std::move(given));
}

std::uint64_t scalar_argument(Scalar value, DType dtype) {
  return is_floating(dtype) ? std::bit_cast<std::uint64_t>(value.to_double())
                            : static_cast<std::uint64_t>(value.to_int64());
}

NodeRef scalar(Scalar value, DType dtype, Device device) {
  NodeInfo info;
  info.dtype = dtype;
  info.device = device;
  info.argument = scalar_argument(value, dtype);
  return record(ops::Op::scalar, NodeRefs{}, std::move(info));
}

NodeRef constant(Scalar value, DType dtype, Device device, const Shape& shape) {
  NodeInfo info;
  info.dtype = dtype;
  info.device = device;
  info.shape = shape;
  if (dtype == DType::boolean) {
    info.attributes = ops::Number{0, value.to_double() != 0};
  } else {
    info.attributes = is_floating(dtype) ? ops::Number{value.to_double(), 0} : ops::Number{0, value.to_int64()};
  }
  return record(ops::Op::constant, NodeRefs{}, std::move(info));
}

}  // namespace russet::graph
