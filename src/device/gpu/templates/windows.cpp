// Launches of pooling.
#include <array>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/walk.h"
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

/// How a kernel of a pool counts: in which order its threads go through their array, and in which one the taps of
/// maxima lie.
struct Order {
  bool threads_channels_last = false;
  bool taps_channels_last = false;
};

bool is_channels_last(const Operand& operand) { return operand.access.strides[1] == 1 && operand.sizes[1] > 1; }

/// What threads go through: images, channels, rows and columns. Neighbouring channels are a thread's.
Shape grid_of(const Operand& operand, int lanes) {
  Shape grid = operand.sizes;
  grid[1] /= lanes;
  return grid;
}

Values values_of(const Pool& pool, const Shape& grid, const Order& order) {
  Values values;
  for (const Operand* operand : {&pool.large, &pool.small, &pool.value}) values.add(source_start(*operand));
  for (const Operand* operand : {&pool.large, &pool.small, &pool.value}) {
    for (const std::int64_t stride : operand->access.strides) values.add(stride);
  }
  for (const Operand* operand : {&pool.large, &pool.small}) {
    for (const std::int64_t size : operand->sizes) values.add(static_cast<std::uint32_t>(size));
  }
  constexpr std::array<int, 3> row_major{3, 2, 1};
  constexpr std::array<int, 3> channels_last{1, 3, 2};
  for (const int axis : order.threads_channels_last ? channels_last : row_major) add_axis_size(values, grid[axis]);
  values.add(static_cast<std::uint32_t>(grid[0]));
  values.add(std::uint32_t{order.threads_channels_last ? 1U : 0U});
  values.add(std::uint32_t{order.taps_channels_last ? 1U : 0U});
  return values;
}

/// What a kernel binds after its sources.
struct Bound {
  Piece::Argument argument;
  Region region;
};

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : primitive_(primitive), context_(context), window_(attribute<ops::Window>(primitive)) {}

  KernelPtr make() const {
    std::vector<Call> calls;
    std::size_t scratch = 0;
    switch (primitive_.op) {
      case Op::sum_pool: calls.push_back(sums({first(), output(), first()})); break;
      case Op::sum_unpool: calls.push_back(sums({output(), first(), first()})); break;
      case Op::max_pool: calls.push_back(max_pool()); break;
      default: scratch = max_unpool(calls);
    }
    return std::make_unique<GpuKernel>(context_, std::string(ops::row(primitive_.op).name), std::move(calls), scratch);
  }

 private:
  const Operand& first() const { return primitive_.inputs[0]; }
  const Operand& output() const { return primitive_.output; }
  Region output_region() const { return place(output(), true).region; }
  static std::string type_of(const Operand& operand) { return std::string(element_type(operand.access.dtype)); }

  /// PoolWindow of pool.metal.
  std::string window() const {
    std::string text;
    for (const auto* pair : {&window_.kernel, &window_.stride, &window_.padding, &window_.dilation}) {
      for (const std::int32_t number : *pair) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
    }
    return fmt::format("PoolWindow<{}>", text);
  }

  /// "int" where all elements lie within 2^31 bytes of where their arrays begin, else "long".
  std::string_view offset() const {
    bool fits = place(output(), true).region.bytes < (std::size_t{1} << 31);
    for (const Operand& input : primitive_.inputs) {
      fits = fits && place(input, false).region.bytes < (std::size_t{1} << 31);
    }
    return fits ? "int" : "long";
  }

  /// A thread for each element of the result, `pool`'s large or small one, which a visitor takes.
  Call sums(const Pool& pool) const {
    const bool large = primitive_.op == Op::sum_unpool;
    VisitorText visitor;
    if (!primitive_.epilogue.code.empty()) {
      visitor = epilogue_visitor(primitive_, 1);
    } else {
      visitor.type = fmt::format("StorePixel<{}, {}, {}>", type_of(first()), offset(), large);
      visitor.values_type = "PoolValues";
      visitor.bind(type_of(first()), "result", "result", output_region());
    }
    Piece piece = this->piece();
    piece.body += fmt::format("  {}<{}, {}>(source, visitor, {}, position);\n", ops::row(primitive_.op).name, window(),
                              offset(), visitor.product);
    piece.arguments = {{type_of(first()), "source"}};
    add_visitor(piece, visitor);
    std::vector<Region> regions{place(first(), false).region};
    regions.insert(regions.end(), visitor.regions.begin(), visitor.regions.end());
    Values values = values_of(pool, grid_of(output(), 1), {is_channels_last(output()), false});
    values.append(visitor.values);
    return call(std::move(piece), numel(output().sizes), std::move(regions), std::move(values));
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

  Call call(Piece piece, std::int64_t threads, std::vector<Region> regions, Values values) const {
    Call call =
        make_call(std::move(piece), {groups_for(threads), 1, 1}, std::move(regions), std::move(values), context_);
    call.units = {static_cast<std::uint64_t>(threads), 1};
    return call;
  }

  /// Neighbouring channels that a thread takes of these arrays, at most so many.
  int lanes(std::initializer_list<const Operand*> operands, int most) const {
    int lanes = has_narrow_taps() ? most : 2;
    for (const Operand* operand : operands) {
      if (!is_floating(operand->access.dtype)) return 1;
      while (lanes > 1 && (operand->sizes[1] % lanes != 0 || !is_aligned(operand->access, 1, lanes))) lanes /= 2;
    }
    return lanes;
  }
  /// Of those whose maxima it searches: as many as lie in 16 bytes, where it has registers for them in all taps.
  int searched_lanes(std::initializer_list<const Operand*> operands) const {
    const bool is_small = window_.kernel[0] * window_.kernel[1] <= 4;
    return lanes(operands,
                 is_small && size_of(first().access.dtype) == 2 && !compile::has_prologue(primitive_) ? 8 : 4);
  }
  /// Whether a byte holds a tap's number.
  bool has_narrow_taps() const { return window_.kernel[0] * window_.kernel[1] < 256; }

  /// Maxima are found in one input and taken from the other; usually both are the same tensor.
  Call max_pool() const {
    const Operand& chosen = primitive_.inputs[1];
    const Bound small{{type_of(output()), "small", true}, output_region()};
    const bool last = is_channels_last(output());
    const bool reads_channels_last = is_channels_last(first());
    if (first() == chosen && primitive_.prologues[0] == primitive_.prologues[1]) {
      const int lanes = last ? searched_lanes({&first(), &output()}) : searched_lanes({&first()});
      // Threads go as they read, which is more than they write. What a thread reads of several channels it writes one
      // by one where these lie apart: then it is neighbouring threads that write side by side.
      const bool goes_channels_last = reads_channels_last && (last || lanes == 1);
      std::vector<Bound> results{small};
      for (const compile::Companion& positions : primitive_.companions) {
        results.push_back({{type_of(positions.output), "taps", true}, place(positions.output, true).region});
      }
      const bool stores_taps = results.size() > 1;
      return sourced_call(
          {first(), output(), chosen}, {goes_channels_last, last && stores_taps}, lanes,
          {source_of(primitive_, 0, "large", offset(), 0)}, results,
          fmt::format("{}<{}, {}, {}>(large_source, small{}", stores_taps ? "max_pool_and_taps" : "max_pool", window(),
                      lanes, offset(), stores_taps ? ", taps" : ""));
    }
    std::vector<SourceText> sources{source_of(primitive_, 0, "large", offset(), 0)};
    sources.push_back(source_of(primitive_, 1, "chosen", offset(), sources[0].regions.size()));
    return sourced_call({first(), output(), chosen}, {reads_channels_last, false}, 1, sources, {small},
                        fmt::format("max_pool_chosen<{}, {}>(large_source, chosen_source, small", window(), offset()));
  }

  /// The first launch finds the tap of each window's maximum, unless the pool stored it; the second one adds up what
  /// each position receives. Returns the bytes between them.
  std::size_t max_unpool(std::vector<Call>& calls) const {
    const Operand& small = primitive_.inputs[1];
    const bool knows_positions = first().sizes != output().sizes;  // see the pass `positions`
    if (knows_positions) {
      const bool last = is_channels_last(first());
      calls.push_back(
          max_unpool("uchar", place(first(), false).region, last, last ? lanes({&small, &output()}, 4) : 1));
      return 0;
    }
    const Operand& large = first();
    const bool narrow = has_narrow_taps();
    const std::size_t bytes = static_cast<std::size_t>(numel(small.sizes)) * (narrow ? 1 : sizeof(std::int32_t));
    const Piece::Argument taps{narrow ? "uchar" : "int", "taps", true};
    const bool last = is_channels_last(small);
    const int read = searched_lanes({&large, &small});
    calls.push_back(sourced_call({large, small, small}, {last, last}, read,
                                 {source_of(primitive_, 0, "large", offset(), 0)},
                                 {{taps, scratch_region(0, bytes, true)}},
                                 fmt::format("find_maxima<{}, {}, {}>(large_source, taps", window(), read, offset())));
    calls.push_back(max_unpool(taps.type, scratch_region(0, bytes, false), last, lanes({&small, &output()}, 4)));
    return bytes;
  }

  /// The launch that reads taps, whose channels lie side by side or not, with so many channels a thread.
  Call max_unpool(const std::string& tap, const Region& taps, bool last, int written) const {
    const Operand& small = primitive_.inputs[1];
    const std::array<std::int64_t, 2> extent = unpooled_extent();
    Shape grid = grid_of(output(), written);
    for (int axis = 0; axis < 2; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      if (extent[at] != window_.stride[at]) continue;
      grid[2 + axis] = divide_up(output().sizes[2 + axis] + window_.padding[at], extent[at]);
    }
    Piece piece = this->piece();
    piece.body += fmt::format("  max_unpool<{}, {}, {}, {}, {}>(taps, small, result, values, position);\n", window(),
                              written, extent[0], extent[1], offset());
    piece.arguments = {{tap, "taps"}, {type_of(small), "small"}, {type_of(output()), "result", true}};
    return call(std::move(piece), numel(grid), {taps, place(small, false).region, output_region()},
                values_of({output(), small, small}, grid, {is_channels_last(output()), last}));
  }

  /// Rows and columns of the large array that a thread of max_unpool has: as many as windows move by, unless these are
  /// more than its registers should hold.
  std::array<std::int64_t, 2> unpooled_extent() const {
    constexpr int most = 4;  // positions
    if (window_.stride[0] * window_.stride[1] > most) return {1, 1};
    return {window_.stride[0], window_.stride[1]};
  }

  /// A thread for so many elements of the small array, of what sources give.
  Call sourced_call(const Pool& pool, const Order& order, int lanes, const std::vector<SourceText>& sources,
                    const std::vector<Bound>& results, std::string_view body) const {
    const bool computed = compile::has_prologue(primitive_);
    Piece piece = this->piece();
    std::vector<Region> regions;
    for (const SourceText& source : sources) {
      add_source(piece, source);
      piece.body += fmt::format("  {}_source.start(0);\n", source.name);
      regions.insert(regions.end(), source.regions.begin(), source.regions.end());
    }
    piece.body += fmt::format("  {}, values{}, position);\n", body, computed ? ".rest" : "");
    for (const Bound& result : results) {
      piece.arguments.push_back(result.argument);
      regions.push_back(result.region);
    }
    const Shape grid = grid_of(pool.small, lanes);
    Values values = values_of(pool, grid, order);
    if (computed) {
      std::vector<const SourceText*> all;
      all.reserve(sources.size());
      for (const SourceText& source : sources) all.push_back(&source);
      add_source_values(piece, values, all);
    }
    return call(std::move(piece), numel(grid), std::move(regions), std::move(values));
  }

  const Primitive& primitive_;
  const GpuContext& context_;
  const ops::Window& window_;
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
  const bool sums = primitive.op == Op::sum_pool || primitive.op == Op::sum_unpool;
  if (!primitive.epilogue.code.empty() && !sums) return decline("it takes no epilogue");
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
