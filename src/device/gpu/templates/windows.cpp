// Launches of pooling.
#include "device/gpu/templates/epilogue.h"
#include "device/gpu/templates/prologue.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

/// `large` is what windows move over, `small` has an element for each; `value` is max_pool's or max_unpool's second
/// input.
struct Pool {
  const Operand& large;
  const Operand& small;
  const Operand& value;
};

Values values_of(const ops::Window& window, const Pool& pool, bool channels_last) {
  Values values;
  for (const Operand* operand : {&pool.large, &pool.small, &pool.value}) values.add(source_start(*operand));
  for (const Operand* operand : {&pool.large, &pool.small, &pool.value}) {
    for (const std::int64_t stride : operand->access.strides) values.add(stride);
  }
  for (const Operand* operand : {&pool.large, &pool.small}) {
    for (const std::int64_t size : operand->sizes) values.add(static_cast<std::uint32_t>(size));
  }
  for (const auto* pair : {&window.kernel, &window.stride, &window.padding, &window.dilation}) {
    for (const std::int32_t number : *pair) values.add(number);
  }
  values.add(std::uint32_t{channels_last ? 1U : 0U});
  values.add(std::uint32_t{0});
  return values;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context) : primitive_(primitive), context_(context) {}

  KernelPtr make() const {
    const Operand& first = primitive_.inputs[0];
    const Operand& output = primitive_.output;
    const std::string result(element_type(output.access.dtype));
    std::vector<Call> calls;
    std::size_t scratch = 0;
    switch (primitive_.op) {
      case Op::sum_pool: calls.push_back(sum_pool()); break;
      case Op::sum_unpool:
        calls.push_back(call({output, first, first}, output, {&first}, output_region(),
                             {{result, "small"}, {result, "large", true}},
                             "sum_unpool(small, large, values, position)"));
        break;
      case Op::max_pool: calls.push_back(max_pool()); break;
      default: scratch = unpool_maxima(calls);
    }
    return std::make_unique<GpuKernel>(context_, std::string(ops::row(primitive_.op).name), std::move(calls), scratch);
  }

 private:
  Region output_region() const { return place(primitive_.output, true).region; }

  /// Stores sums, or runs the epilogue on them.
  VisitorText sum_visitor(std::string_view type) const {
    if (!primitive_.epilogue.code.empty()) return epilogue_visitor(primitive_, 1);
    VisitorText visitor;
    visitor.type = fmt::format("StorePixel<{}>", type);
    visitor.values_type = "PoolValues";
    visitor.bind(type, "small", "small", output_region());
    return visitor;
  }

  Call sum_pool() const {
    const Operand& large = primitive_.inputs[0];
    const std::string_view type = element_type(large.access.dtype);
    const VisitorText visitor = sum_visitor(type);
    Piece piece = this->piece();
    piece.body += fmt::format("  sum_pool(large, visitor, {}, position);\n", visitor.product);
    piece.arguments = {{std::string(type), "large"}};
    add_visitor(piece, visitor);
    std::vector<Region> regions{place(large, false).region};
    regions.insert(regions.end(), visitor.regions.begin(), visitor.regions.end());
    Values values = pool_values({large, primitive_.output, large}, primitive_.output);
    values.append(visitor.values);
    return make_call(std::move(piece), {groups_for(numel(primitive_.output.sizes)), 1, 1}, std::move(regions),
                     std::move(values), context_);
  }

  /// A piece whose body knows the thread's position in the grid.
  Piece piece() const {
    Piece piece;
    piece.stem = std::string(ops::row(primitive_.op).name);
    piece.threads = 256;
    piece.files = {"pool.metal"};
    piece.values_type = "PoolValues";
    piece.values_are_wide = true;
    piece.body = "  const ulong position = ulong(group_id.x) * 256u + thread_id;\n";
    return piece;
  }

  Values pool_values(const Pool& pool, const Operand& threads) const {
    const bool channels_last = threads.access.strides[1] == 1 && threads.sizes[1] > 1;
    return values_of(attribute<ops::Window>(primitive_), pool, channels_last);
  }

  /// The first launch finds the tap of each window's maximum, the second one adds up what each position receives.
  std::size_t unpool_maxima(std::vector<Call>& calls) const {
    const Operand& large = primitive_.inputs[0];
    const Operand& small = primitive_.inputs[1];
    const std::size_t bytes = static_cast<std::size_t>(numel(small.sizes)) * sizeof(std::int32_t);
    calls.push_back(sourced_call({large, small, small}, small, {source_of(primitive_, 0, "large", "long", 0)},
                                 scratch_region(0, bytes, true), {"int", "taps", true},
                                 "find_maxima(large_source, taps"));
    const Pool pool{primitive_.output, small, small};
    const std::string type(element_type(small.access.dtype));
    Call second = call(pool, primitive_.output, {&small}, output_region(),
                       {{"int", "taps"}, {type, "small"}, {type, "result", true}},
                       "max_unpool(taps, small, result, values, position)");
    second.regions.insert(second.regions.begin(), scratch_region(0, bytes, false));
    calls.push_back(std::move(second));
    return bytes;
  }

  /// Maxima are found in one input and taken from the other; usually both are the same tensor.
  Call max_pool() const {
    const Operand& large = primitive_.inputs[0];
    const Operand& chosen = primitive_.inputs[1];
    const Operand& output = primitive_.output;
    const bool same = large == chosen && primitive_.prologues[0] == primitive_.prologues[1];
    std::vector<SourceText> sources{source_of(primitive_, 0, "large", "long", 0)};
    if (!same) sources.push_back(source_of(primitive_, 1, "chosen", "long", sources[0].regions.size()));
    return sourced_call(
        {large, output, chosen}, output, sources, output_region(),
        {std::string(element_type(output.access.dtype)), "small", true},
        same ? "max_pool(large_source, large_source, small" : "max_pool(large_source, chosen_source, small");
  }

  /// A thread an element of `threads`, of what sources give.
  Call sourced_call(const Pool& pool, const Operand& threads, const std::vector<SourceText>& sources, Region result,
                    Piece::Argument argument, std::string_view body) const {
    const bool computed = compile::has_prologue(primitive_);
    Piece piece = this->piece();
    std::vector<Region> regions;
    for (const SourceText& source : sources) {
      add_source(piece, source);
      piece.body += fmt::format("  {}_source.start(0);\n", source.name);
      regions.insert(regions.end(), source.regions.begin(), source.regions.end());
    }
    piece.body += fmt::format("  {}, values{}, position);\n", body, computed ? ".rest" : "");
    piece.arguments.push_back(std::move(argument));
    regions.push_back(result);
    Values values = pool_values(pool, threads);
    if (computed) {
      std::vector<const SourceText*> all;
      all.reserve(sources.size());
      for (const SourceText& source : sources) all.push_back(&source);
      add_source_values(piece, values, all);
    }
    return make_call(std::move(piece), {groups_for(numel(threads.sizes)), 1, 1}, std::move(regions), std::move(values),
                     context_);
  }

  /// A thread an element of `threads`.
  Call call(const Pool& pool, const Operand& threads, const std::vector<const Operand*>& inputs, Region result,
            std::vector<Piece::Argument> arguments, std::string_view body) const {
    Piece piece = this->piece();
    piece.body += fmt::format("  {};\n", body);
    piece.arguments = std::move(arguments);
    std::vector<Region> regions;
    regions.reserve(inputs.size() + 1);
    for (const Operand* input : inputs) regions.push_back(place(*input, false).region);
    regions.push_back(result);
    return make_call(std::move(piece), {groups_for(numel(threads.sizes)), 1, 1}, std::move(regions),
                     pool_values(pool, threads), context_);
  }

  const Primitive& primitive_;
  const GpuContext& context_;
};

/// Prologues apply only where maxima are searched; the values that are added up are read from memory.
std::string why_no_pool_prologue(const Primitive& primitive) {
  if (!compile::has_prologue(primitive)) return "";
  const bool gradient = primitive.op == Op::max_unpool && !primitive.prologues[1].code.empty();
  if ((primitive.op != Op::max_pool && primitive.op != Op::max_unpool) || gradient) return "it takes no prologue";
  for (const compile::Group& prologue : primitive.prologues) {
    if (compile::is_storing(prologue)) return "elements that windows share, or leave out";
  }
  return why_no_prologue(primitive);
}

}  // namespace

Verdict judge_windows(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  if (!primitive.epilogue.code.empty() && primitive.op != Op::sum_pool) return decline("it takes no epilogue");
  if (std::string reason = why_no_epilogue(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_pool_prologue(primitive); !reason.empty()) return decline(reason);
  for (const Operand* operand : {&primitive.inputs[0], &primitive.output}) {
    for (const std::int64_t size : operand->sizes) {
      if (size >= std::int64_t{1} << 30) return decline("an axis beyond 2^30");
    }
  }
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
