// Launches of attention and its gradients.
#include "ops/attention.h"

#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/walk.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

constexpr int max_batch_axes = 6;
constexpr std::int64_t widest_head = 128;

/// The step's operands by what they are; nullptr for those that it lacks.
struct Operands {
  const Operand* query;
  const Operand* key;
  const Operand* value;
  const Operand* gradient;
  const Operand* logsumexp;
  const Operand* delta;  // of three gradients, the attention's result in its place
  const Operand* mask;
  const Operand* uniform;
  const Operand* result = nullptr;  // of the step's own operator
  const Operand* second = nullptr;  // logsumexp as a result, the value's gradient
  const Operand* third = nullptr;   // the query's gradient with the others
  const Operand* kept = nullptr;    // the bits of what dropout keeps
  const Operand* key_sums = nullptr;
  const Operand* value_sums = nullptr;
  const Operand* query_sums = nullptr;

  explicit Operands(const Primitive& primitive) {
    const ops::AttentionInputs at = ops::attention_inputs(primitive.op, attribute<ops::Attention>(primitive));
    const auto input = [&](int i) { return i < 0 ? nullptr : &primitive.inputs[static_cast<std::size_t>(i)]; };
    query = input(at.query);
    key = input(at.key);
    value = input(at.value);
    gradient = input(at.gradient);
    logsumexp = input(at.logsumexp);
    delta = input(at.delta);
    mask = input(at.mask);
    uniform = input(at.uniform);
    const bool second_alone = primitive.op == Op::attention_logsumexp || primitive.op == Op::attention_value_gradient;
    (second_alone ? second : result) = &primitive.output;
    for (const auto& [op, output, is_sum] : primitive.companions) {
      if (is_sum) {
        sums_of(op) = &output;
      } else if (op == Op::uniform) {
        kept = &output;
      } else {
        (op == Op::attention_query_gradient ? third : second) = &output;
      }
    }
  }

 private:
  const Operand*& sums_of(Op gradient) {
    if (gradient == Op::attention_key_gradient) return key_sums;
    return gradient == Op::attention_value_gradient ? value_sums : query_sums;
  }
};

/// Whether bits of what dropout keeps are in the random numbers' place.
bool reads_bits(const Operands& at) {
  return at.uniform != nullptr && at.uniform->access.slot >= 0 && at.uniform->access.dtype == DType::int16;
}

/// Sizes of the scores and of what they are made of.
struct Sizes {
  Shape batch;
  std::int64_t rows, columns, width, values;

  explicit Sizes(const Operands& at) : batch(at.query->sizes) {
    const int rank = batch.rank();
    rows = batch[rank - 2];
    width = batch[rank - 1];
    columns = at.key->sizes[rank - 2];
    const Operand* valued = at.value != nullptr ? at.value : at.gradient;
    values = valued != nullptr ? valued->sizes[rank - 1] : 0;
    batch.pop_back();
    batch.pop_back();
  }
  std::int64_t batches() const { return numel(batch); }
  /// Axes that a kernel for tensor cores tells apart. Others tell as many apart as there may be: their text is the same
  /// for all.
  int batch_rank() const { return std::max(batch.rank(), 1); }
};

/// A block of rows stays in threadgroup memory while those of the other side pass, `inner` at a time.
struct Blocks {
  std::int64_t rows = 32, inner = 16, width = 64;

  explicit Blocks(const Sizes& sizes) {
    if (std::max(sizes.width, sizes.values) > width) {
      rows = 16;
      inner = 8;
      width = widest_head;
    }
  }
  std::string text() const {
    return fmt::format("AttentionBlocks<{}, {}, {}, {}>", rows, inner, width, max_batch_axes);
  }
};

/// What a threadgroup shares.
using Arrays = std::vector<Piece::Array>;

/// Whether rows of the operand are whole vectors of eight elements.
bool in_vectors(const Operand& operand) {
  constexpr int vector = 8;
  const int last = operand.sizes.rank() - 1;
  compile::Access access = operand.access;
  for (int axis = 0; axis < last; ++axis) {
    if (operand.sizes[axis] == 1) access.strides[axis] = 0;  // of a batch of one, say, any number
  }
  return operand.sizes[last] % vector == 0 && is_aligned(access, last, vector);
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : primitive_(primitive),
        context_(context),
        attributes_(attribute<ops::Attention>(primitive)),
        at_(primitive),
        sizes_(at_),
        type_(at_.query->access.dtype) {}

  KernelPtr blocks() const {
    const Blocks blocks(sizes_);
    const std::int64_t tiles = divide_up(rows_that_stay(), blocks.rows);
    const std::string type = blocks.text();
    std::string body = fmt::format("  typedef {} Blocks;\n", type);
    body += own_thread;
    body += fmt::format("  {}(at, rules, values, memory, group_id.x, self);\n", function_of(""));
    const Piece::Array memory{"float", "memory", fmt::format("({}::{})", type, is_forward() ? "forward" : "backward")};
    std::vector<Call> calls;
    calls.push_back(call("", static_cast<std::uint32_t>(blocks.rows * 4), {memory}, body, tiles,
                         grid_size(tiles * sizes_.batches())));
    return std::make_unique<GpuKernel>(
        context_, fmt::format("blocks {}x{} of {}", blocks.rows, blocks.inner, blocks.width), std::move(calls));
  }

  /// The three gradients, a threadgroup for each matrix of the batch.
  KernelPtr gradients_at_once() const {
    constexpr std::int64_t inner = 32;
    constexpr std::int64_t stages = 2;
    const std::int64_t simdgroups = divide_up(sizes_.columns, fragment_rows);
    const std::string blocks = fragment_blocks(simdgroups, inner, stages);
    // GradientMemory of attention_gradients_at_once.metal.
    const std::int64_t elements = simdgroups * fragment_rows * 2 * (fragment_width() + inner) +
                                  (stages * 2 + (computes_deltas() ? 1 : 0)) * inner * fragment_width();
    const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(type_));
    const auto threads = static_cast<std::uint32_t>(simdgroups * 32);
    const std::int64_t statistics = 2 * stages * inner;
    const bool is_large = bytes + 4 * statistics > context_.properties.group_memory;
    Arrays arrays{{"uint4", "memory",
                   fmt::format("(GradientMemory<{}>::vectors{})", blocks, computes_deltas() ? "_with_results" : ""),
                   is_large ? static_cast<std::uint32_t>(bytes) : 0},
                  {"float", "statistics", fmt::format("{}", statistics)}};
    const std::string body = fmt::format(
        "  typedef {} Blocks;\n{}  attention_gradients_at_once<Blocks, {}, {}>(at, rules, values, memory, statistics, "
        "group_id.x, self);\n",
        blocks, own_thread, computes_deltas(), adds_up());
    constexpr std::uint32_t threads_of_a_core = 512;  // of 128 registers
    const std::uint32_t resident = std::max(threads_of_a_core / threads, 1U);
    std::vector<Call> calls;
    calls.push_back(call("_at_once", threads, std::move(arrays), body, 1, grid_size(sizes_.batches()), resident));
    if (is_large) calls.back().piece = nullptr;  // its memory is more than others may have
    return std::make_unique<GpuKernel>(context_, fmt::format("fragments at once, {} keys", sizes_.columns),
                                       std::move(calls));
  }

  KernelPtr fragments() const {
    const bool to_keys = !is_forward() && primitive_.op != Op::attention_query_gradient;
    const std::int64_t inner = is_forward() ? 64 : 32;
    const std::int64_t stages = to_keys ? 3 : 2;
    constexpr std::int64_t simdgroups = 4;
    constexpr std::int64_t rows = simdgroups * fragment_rows;
    const std::int64_t tiles = divide_up(rows_that_stay(), rows);
    const std::string blocks = fragment_blocks(simdgroups, inner, stages);
    Arrays arrays{{"uint4", "memory", fmt::format("({}::memory)", blocks)}};
    if (to_keys) arrays.push_back({"float", "statistics", fmt::format("{}", 2 * stages * inner)});
    std::string body = fmt::format("  typedef {} Blocks;\n", blocks);
    body += own_thread;
    body += fmt::format("  {}(at, rules, values, memory, {}group_id.x, self);\n", function_of("_fragments"),
                        to_keys ? "statistics, " : "");
    // As many as cost next to no memory for registers' contents: fewer with sums of two matrices, or with random
    // numbers beside two matrices that stay.
    const std::uint32_t resident = to_keys || (draws() && !is_forward()) ? 3 : 4;
    std::vector<Call> calls;
    calls.push_back(
        call("_fragments", 128, std::move(arrays), body, tiles, grid_size(tiles * sizes_.batches()), resident));
    return std::make_unique<GpuKernel>(context_, fmt::format("fragments {}x{} of {}", rows, inner, fragment_width()),
                                       std::move(calls));
  }

  KernelPtr elements() const {
    std::vector<Call> calls;
    const auto add = [&](const char* function, const char* what, std::int64_t rows, std::int64_t columns) {
      const std::string body = fmt::format("  {}<{}, {}>(at, rules, values, ulong(group_id.x) * 256u + thread_id);\n",
                                           function, max_batch_axes, what);
      calls.push_back(call("_elements", 256, {}, body, 0, groups_for(sizes_.batches() * rows * columns)));
    };
    if (is_forward()) {
      if (at_.result != nullptr) add("attend_element", "true", sizes_.rows, sizes_.values);
      if (at_.second != nullptr) add("attend_element", "false", sizes_.rows, 1);
    } else if (primitive_.op == Op::attention_query_gradient) {
      add("attention_gradient_element", "gradient_of_query", sizes_.rows, sizes_.width);
    } else {
      if (at_.result != nullptr) add("attention_gradient_element", "gradient_of_key", sizes_.columns, sizes_.width);
      if (at_.second != nullptr) add("attention_gradient_element", "gradient_of_value", sizes_.columns, sizes_.values);
    }
    return std::make_unique<GpuKernel>(context_, "elements", std::move(calls));
  }

 private:
  bool is_forward() const { return primitive_.op == Op::attention || primitive_.op == Op::attention_logsumexp; }
  std::int64_t rows_that_stay() const {
    const bool keys = primitive_.op == Op::attention_key_gradient || primitive_.op == Op::attention_value_gradient;
    return keys ? sizes_.columns : sizes_.rows;
  }

  static constexpr std::int64_t fragment_rows = 16;  // of a simdgroup
  std::int64_t fragment_width() const { return std::max(sizes_.width, sizes_.values) > 32 ? 64 : 32; }
  std::string fragment_blocks(std::int64_t simdgroups, std::int64_t inner, std::int64_t stages) const {
    return fmt::format("FragmentBlocks<{}, {}u, {}u, {}u, {}u, {}u, {}>", element_type(type_), simdgroups, inner,
                       stages, fragment_width(), sizes_.batch_rank(), is_in_vectors());
  }

  /// `suffix`: of the functions' names.
  std::string function_of(std::string_view suffix) const {
    if (primitive_.op == Op::attention_query_gradient) return fmt::format("query_gradient{}<Blocks>", suffix);
    return fmt::format("{}{}<Blocks, {}, {}>", is_forward() ? "attend" : "key_value_gradient", suffix,
                       at_.result != nullptr, at_.second != nullptr);
  }

  bool is_in_vectors() const {
    for (const Operand* operand : {at_.query, at_.key, at_.value, at_.gradient, at_.result, at_.third}) {
      if (operand != nullptr && !in_vectors(*operand)) return false;
    }
    if (computes_deltas() && !in_vectors(*at_.delta)) return false;
    return is_forward() || at_.second == nullptr || in_vectors(*at_.second);
  }

  /// Whether the attention's result is given in place of deltas.
  bool computes_deltas() const { return at_.third != nullptr && at_.delta->access.dtype == type_; }

  /// Whether the sums of the gradients' columns are wanted, too.
  bool adds_up() const { return at_.key_sums != nullptr; }

  bool draws() const { return at_.uniform != nullptr && at_.uniform->access.slot < 0; }

  std::string rules() const {
    const std::string mask =
        at_.mask == nullptr ? "NoMask" : fmt::format("ReadMask<{}>", element_type(at_.mask->access.dtype));
    return fmt::format("AttentionRules<{}, {}>", mask, keep());
  }

  /// What dropout keeps.
  std::string keep() const {
    if (at_.uniform == nullptr) return "KeepAll";
    if (reads_bits(at_)) return "KeepBits";
    if (!draws()) return fmt::format("KeepRead<{}>", element_type(at_.uniform->access.dtype));
    return fmt::format("{}<{}>", at_.kept != nullptr ? "KeepStored" : "KeepDrawn", sizes_.columns % 4 == 0);
  }

  /// A kernel of all operands, which come to `body` as `at` and `rules`.
  Call call(const char* suffix, std::uint32_t threads, Arrays arrays, const std::string& body, std::int64_t tiles,
            std::uint32_t groups, std::uint32_t resident = 1) const {
    Piece piece;
    std::vector<Region> regions;
    std::string set_up = fmt::format("  AttentionPointers<{}> at;\n  {} rules = {{}};\n", element_type(type_), rules());
    const auto bind = [&](const Operand* operand, const char* name, const char* member, bool writes) {
      if (operand == nullptr || operand->access.slot < 0) return;
      piece.arguments.push_back({std::string(element_type(operand->access.dtype)), name, writes});
      set_up += fmt::format("  {} = {};\n", member, name);
      regions.push_back(place(*operand, writes).region);
    };
    bind(at_.query, "query", "at.query", false);
    bind(at_.key, "key", "at.key", false);
    bind(at_.value, "value", "at.value", false);
    bind(at_.gradient, "gradient", "at.gradient", false);
    bind(at_.logsumexp, "logsumexp", "at.logsumexp", false);
    bind(at_.delta, "delta", computes_deltas() ? "at.forward" : "at.delta", false);
    bind(at_.mask, "mask", "rules.mask.mask", false);
    bind(at_.uniform, "uniform", reads_bits(at_) ? "rules.keep.bits" : "rules.keep.uniform", false);
    bind(at_.kept, "kept", "rules.keep.bits", true);
    bind(at_.result, "result", "at.result", true);
    bind(at_.second, "second", is_forward() ? "at.statistics" : "at.second", true);
    bind(at_.third, "third", "at.third", true);
    bind(at_.key_sums, "key_sums", "at.key_sums", true);
    bind(at_.value_sums, "value_sums", "at.value_sums", true);
    bind(at_.query_sums, "query_sums", "at.query_sums", true);
    piece.stem = std::string(ops::row(primitive_.op).name) + suffix;
    piece.threads = threads;
    piece.resident = resident;
    piece.values_type = "AttentionValues";
    piece.values_are_wide = true;
    piece.arrays = std::move(arrays);
    piece.body = set_up + body;
    piece.files = {file_of(suffix)};
    return make_call(std::move(piece), {groups, 1, 1}, std::move(regions), values(tiles), context_);
  }

  std::string file_of(std::string_view suffix) const {
    if (suffix == "_at_once") return "attention_gradients_at_once.metal";
    if (suffix == "_elements") return "attention_elements.metal";
    if (suffix != "_fragments") return "attention_blocks.metal";
    return is_forward() ? "attention_fragments.metal" : "attention_gradient_fragments.metal";
  }

  /// AttentionArray of attention.metal.
  void add_array(Values& values, const Operand* operand, bool writes) const {
    const int rank = sizes_.batch.rank();
    const bool known = operand != nullptr && operand->access.slot >= 0;
    const auto stride = [&](int axis) -> std::int64_t {
      return known && operand->sizes[axis] != 1 ? operand->access.strides[axis] : 0;
    };
    values.add(known ? place(*operand, writes).first : std::int64_t{0});
    for (int axis = 0; axis < max_batch_axes; ++axis) values.add(axis < rank ? stride(axis) : std::int64_t{0});
    values.add(stride(rank));
    values.add(stride(rank + 1));
  }

  Values values(std::int64_t tiles) const {
    Values values;
    for (const Operand* operand : {at_.query, at_.key, at_.value, at_.gradient, at_.logsumexp, at_.delta, at_.mask}) {
      add_array(values, operand, false);
    }
    add_array(values, at_.kept != nullptr ? at_.kept : at_.uniform, at_.kept != nullptr);
    for (const Operand* operand : {at_.result, at_.second, at_.third, at_.key_sums, at_.value_sums, at_.query_sums}) {
      add_array(values, operand, true);
    }
    values.add(attributes_.seed);
    if (draws()) {
      values.add_argument(at_.uniform->access.offset_argument, Patch::Form::bits);
    } else {
      values.add(std::uint64_t{0});
    }
    const auto add = [&](std::int64_t number) { values.add(static_cast<std::uint32_t>(number)); };
    const int rank = sizes_.batch.rank();
    for (int axis = 0; axis < max_batch_axes; ++axis) add(axis < rank ? sizes_.batch[axis] : 1);
    add(sizes_.batches());
    add(sizes_.rows);
    add(sizes_.columns);
    add(sizes_.width);
    add(sizes_.values);
    add(tiles);
    add(attributes_.causal ? 1 : 0);
    values.add(static_cast<float>(attributes_.scale));
    values.add(static_cast<float>(attributes_.dropout));
    values.add(attributes_.dropout < 1 ? static_cast<float>(1 / (1 - attributes_.dropout)) : 0.0F);
    return values;
  }

  const Primitive& primitive_;
  const GpuContext& context_;
  const ops::Attention& attributes_;
  Operands at_;
  Sizes sizes_;
  DType type_;
};

std::string why_not(const Primitive& primitive) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return reason;
  const Sizes sizes{Operands(primitive)};
  constexpr std::int64_t limit = (std::int64_t{1} << 31) - 64;
  for (const std::int64_t size : {sizes.batches(), sizes.rows, sizes.columns, sizes.width, sizes.values}) {
    if (size >= limit) return "an index beyond 2^31";
  }
  return "";
}

std::string why_no_fragments(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_fragments) return "tensor cores multiply no fragments here";
  if (std::string reason = why_not(primitive); !reason.empty()) return reason;
  const DType type = primitive.inputs[0].access.dtype;
  if (type != DType::float16 && type != DType::bfloat16) return "fragments are of float16 and bfloat16";
  const Sizes sizes{Operands(primitive)};
  constexpr std::int64_t widest = 64;
  if (std::max(sizes.width, sizes.values) > widest) {
    return fmt::format("heads of {} and {}: fragments hold at most {}", sizes.width, sizes.values, widest);
  }
  if (attribute<ops::Attention>(primitive).scale < 0) return "the largest product is not the largest score";
  return sizes.columns == 0 ? "there are no keys" : "";
}

bool has_three_gradients(const Primitive& primitive) { return Operands(primitive).third != nullptr; }

std::string why_fragments_alone(const Primitive& primitive) {
  const Operands at(primitive);
  if (at.third != nullptr) return "fragments alone compute the three gradients at once";
  return at.kept != nullptr || reads_bits(at) ? "fragments alone know bits of what dropout keeps" : "";
}

}  // namespace

Verdict judge_attention_fragments(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_fragments(primitive, context); !reason.empty()) return decline(reason);
  if (!has_three_gradients(primitive)) {
    if (reads_bits(Operands(primitive))) return decline("the three gradients alone are computed from bits of dropout");
    return accept([&primitive, &context] { return Writer(primitive, context).fragments(); });
  }
  constexpr std::int64_t most_keys = 208;  // of 64 columns: 98 KiB, of 99 that each of these GPUs grants
  const std::int64_t keys = Sizes(Operands(primitive)).columns;
  if (keys > most_keys) return decline(fmt::format("{} keys: a threadgroup holds at most {}", keys, most_keys));
  return accept([&primitive, &context] { return Writer(primitive, context).gradients_at_once(); });
}

Verdict judge_attention_blocks(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_fragments_alone(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
  const Sizes sizes{Operands(primitive)};
  if (std::max(sizes.width, sizes.values) > widest_head) {
    return decline(fmt::format("heads of {} and {}: a block holds at most {}", sizes.width, sizes.values, widest_head));
  }
  if (sizes.columns == 0) return decline("there are no keys");
  return accept([&primitive, &context] { return Writer(primitive, context).blocks(); });
}

Verdict judge_attention_elements(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_fragments_alone(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).elements(); });
}

}  // namespace russet::gpu
