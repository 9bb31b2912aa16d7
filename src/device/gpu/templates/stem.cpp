// Launches of the first convolution of a network.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "compile/layouts.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

// As in stem.metal.
constexpr std::uint32_t threads = 128;
constexpr std::int64_t chunk = 64;

bool is_gradient(const Primitive& primitive) { return primitive.op == Op::convolution_weight; }
const Operand& weight_of(const Primitive& primitive) {
  return compile::operand_of(primitive, is_gradient(primitive) ? -1 : 1);
}
/// What the convolution gives, or its gradient.
const Operand& result_of(const Primitive& primitive) {
  return compile::operand_of(primitive, is_gradient(primitive) ? 1 : -1);
}

/// StemShape of stem.metal, and what a threadgroup needs for it.
class StemShape {
 public:
  explicit StemShape(const Primitive& primitive)
      : window_(attribute<Window>(primitive)),
        weight_(weight_of(primitive).sizes),
        result_(result_of(primitive).sizes),
        gradient_(is_gradient(primitive)),
        fills_(weight_[1] == 3 && !gradient_ && divide_up(weight_[3] * 4, 8) == divide_up(weight_[3] * 3, 8)) {
    choose_rows();
    if (fits() || !fills_) return;
    fills_ = false;
    choose_rows();
  }

  /// Whether a threadgroup has memory for it.
  bool fits() const { return bytes() <= most_bytes; }

  std::string text() const {
    return fmt::format("StemShape<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>", weight_[1], pitch(), weight_[2],
                       weight_[3], window_.stride[0], window_.stride[1], window_.padding[0], window_.padding[1], rows_,
                       line(), columns(), ahead(), keeps_weight());
  }
  /// Threadgroups that a core holds at once.
  std::uint32_t resident() const {
    if (gradient_) return 3;
    const bool has_many = (keeps_weight() && fragments() > most_kept / 2) || bytes() > usual_bytes;
    return has_many ? 4 : 5;
  }
  std::int64_t tiles() const { return result_[0] * divide_up(result_[2], rows_); }
  /// Elements of the lines that threadgroup memory holds, of a convolution for two tiles.
  std::int64_t lines() const { return (gradient_ ? 1 : 2) * line_count() * line(); }
  /// Of the weight, or of what comes of a gradient.
  std::int64_t other() const {
    if (gradient_) return 2 * chunk * (columns() + 8);
    return columns() * (slices() * 16 + 8);
  }
  std::int64_t windows() const { return rows_ * result_[3]; }
  /// Of sums that simdgroups add up.
  std::int64_t sums() const {
    if (!gradient_) return 1;
    const std::int64_t blocks = divide_up(weight_[2] * run(), 16);
    return blocks > 2 ? 1 : blocks * 16 * columns();
  }

 private:
  static constexpr std::int64_t most_pixels = 1024;
  static constexpr std::int64_t most_bytes = std::int64_t{48} << 10;
  static constexpr std::int64_t usual_bytes = std::int64_t{40} << 10;

  static constexpr std::int64_t most_kept = 12;  // fragments, of four registers each

  /// As many lines as leave a core's memory for several threadgroups; two of long ones, or one if two do not fit.
  void choose_rows() {
    rows_ = 8;
    while (rows_ > 1 && (rows_ * result_[3] > most_pixels || (bytes() > usual_bytes && rows_ > 2) || !fits())) {
      rows_ /= 2;
    }
  }
  std::int64_t bytes() const { return 2 * (lines() + other() + windows()) + 4 * sums(); }
  /// Elements between pixels in threadgroup memory.
  std::int64_t pitch() const { return fills_ ? 4 : weight_[1]; }
  std::int64_t run() const { return weight_[3] * pitch(); }
  std::int64_t slices() const { return divide_up(weight_[2] * divide_up(run(), 8), 2); }
  /// Of the weight, sixteen columns each.
  std::int64_t fragments() const { return slices() * columns() / 16; }
  /// Whether simdgroups have all of it in their registers.
  bool keeps_weight() const { return !gradient_ && fragments() <= most_kept; }
  std::int64_t columns() const { return weight_[0] > 32 ? 64 : 32; }
  std::int64_t line_count() const { return (rows_ - 1) * window_.stride[0] + weight_[2]; }
  /// Elements: whole pixels, and pairs of elements. The last window's last block may reach beyond its run.
  std::int64_t line() const {
    const std::int64_t elements = (result_[3] - 1) * window_.stride[1] * pitch() + divide_up(run(), 8) * 8;
    const std::int64_t unit = std::lcm(pitch(), std::int64_t{2});
    return divide_up(elements, unit) * unit;
  }
  /// Pixels that a thread brings while its simdgroup computes sixteen.
  std::int64_t ahead() const {
    const std::int64_t turns = divide_up(rows_ * result_[3], threads / 32 * 16);
    return divide_up(divide_up(line_count() * (line() / pitch()), threads), turns);
  }

  const Window& window_;
  const Shape& weight_;
  const Shape& result_;
  bool gradient_;
  // Three channels take a fourth of zeros, so that four steps of the depth are loaded at once, where the products are
  // no more for that and lines fit.
  bool fills_;
  std::int64_t rows_ = 8;
};

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_windows(primitive)), shape_(primitive) {}

  KernelPtr make() const { return is_gradient(shared_.primitive()) ? weight_gradient() : convolution(); }

 private:
  KernelPtr convolution() const {
    Division division;
    division.row_tiles = shape_.tiles();
    const RowsVisitor visitor = shared_.rows_visitor();
    const std::string_view type = element_type(weight_of(shared_.primitive()).access.dtype);
    const std::string body = fmt::format(
        "  stem_convolution<{}, {}, {}>(left_source, right_source, visitor, {}, places, group_id.x, group_count.x, "
        "self);\n",
        shape_.text(), visitor.width, type, shared_.product_of(visitor.text));
    const std::int64_t groups =
        std::min<std::int64_t>(shape_.tiles(), shape_.resident() * shared_.context().properties.chip.cores);
    std::vector<Call> calls{call(body, visitor.text, division, groups)};
    return std::make_unique<GpuKernel>(shared_.context(), "stem", std::move(calls));
  }

  /// Parts come from shapes alone, so that results never depend on the device.
  KernelPtr weight_gradient() const {
    constexpr std::int64_t most_parts = 264;
    Division division;
    division.row_tiles = shape_.tiles();
    division.splits = std::clamp<std::int64_t>(shape_.tiles(), 1, most_parts);
    std::vector<Call> calls = shared_.calls(division, false, [&](const VisitorText& visitor) {
      const std::string body = fmt::format(
          "  stem_weight<{}, {}>(left_source, right_source, visitor, {}, places, group_id.x, group_count.x, self);\n",
          shape_.text(), element_type(shared_.type()), shared_.product_of(visitor));
      return call(body, visitor, division, division.splits);
    });
    return std::make_unique<GpuKernel>(shared_.context(), fmt::format("stem, lines in {} parts", division.splits),
                                       std::move(calls), shared_.partial_bytes(division));
  }

  Call call(const std::string& body, const VisitorText& visitor, const Division& division, std::int64_t groups) const {
    const std::string type(element_type(shared_.primitive().inputs[1].access.dtype));
    const auto array = [](std::string_view of, std::string_view name, std::int64_t count) {
      return Piece::Array{std::string(of), std::string(name), fmt::format("{}", count)};
    };
    // What is loaded in vectors lies in arrays of these.
    const auto elements = [&](std::string_view name, std::int64_t count) {
      return array("uint4", name, divide_up(count, 8));
    };
    const std::string places = fmt::format(
        "{1}  StemMemory<{0}> places;\n  places.lines = (threadgroup {0}*)lines;\n"
        "  places.other = (threadgroup {0}*)other;\n  places.windows = windows;\n"
        "  places.sums = (threadgroup float*)sums;\n",
        type, own_thread);
    Call call = shared_.product_call(
        {"stem",
         threads,
         places + body,
         {elements("lines", shape_.lines()), elements("other", shape_.other()),
          array("ushort", "windows", shape_.windows()), array("float4", "sums", divide_up(shape_.sums(), 4))},
         groups,
         "stem.metal",
         shape_.resident()},
        visitor, division);
    call.piece = nullptr;  // launches that share their threadgroups' memory would all have as much
    return call;
  }

  ContractionWriter shared_;
  StemShape shape_;
};

/// The convolution of an image that it casts itself, which float32 planes hold, as one that reads the planes; nothing
/// if its prologue does something else.
std::optional<Primitive> reading_planes(const Primitive& primitive) {
  const compile::Group& prologue = primitive.prologues[0];
  const auto& code = prologue.code;
  using Kind = compile::Instruction::Kind;
  if (primitive.op != Op::convolution || !primitive.prologues[1].code.empty() || compile::is_storing(prologue) ||
      prologue.kind != compile::Group::Kind::elementwise || code.size() != 3 || code[0].kind != Kind::load ||
      code[0].dtype != DType::float32 || code[1].op != Op::cast || code[2].kind != Kind::store) {
    return std::nullopt;
  }
  const compile::Access& read = prologue.accesses[static_cast<std::size_t>(code[0].access)];
  const compile::Access& made = prologue.accesses[static_cast<std::size_t>(code[2].access)];
  Primitive plain = primitive;
  plain.prologues = {};
  Operand& image = plain.inputs[0];
  if (image.access.offset != 0 || made.offset != 0 || read.offset_argument >= 0) return std::nullopt;
  // Axes of the prologue may be several of the image's in one.
  Strides strides = Strides::filled(image.sizes.rank(), 0);
  for (int axis = 0; axis < image.sizes.rank(); ++axis) {
    const std::int64_t stride = image.access.strides[axis];
    int within = -1;
    for (int i = 0; i < prologue.space.rank(); ++i) {
      const std::int64_t own = made.strides[i];
      if (own > 0 && own <= stride && (within < 0 || own > made.strides[within])) within = i;
    }
    if (within < 0 || stride % made.strides[within] != 0) return std::nullopt;
    const std::int64_t steps = stride / made.strides[within];
    if (steps * (image.sizes[axis] - 1) >= prologue.space[within]) return std::nullopt;
    strides[axis] = read.strides[within] * steps;
  }
  if (strides[3] != 1) return std::nullopt;
  image.access = read;
  image.access.strides = strides;
  return plain;
}

/// Why the kernels do not take the operands as they lie.
std::string why_no_layout(const Primitive& primitive) {
  const auto starts_at = [](const Operand& operand, std::int64_t unit) {
    return operand.access.offset % unit == 0 && operand.access.offset_argument < 0;
  };
  const Operand& image = primitive.inputs[0];
  if (image.access.strides[1] != 1 || image.access.strides[3] != image.sizes[1])
    return "the image's channels lie apart";
  const Operand& result = result_of(primitive);
  if (!compile::has_strides(result, compile::channels_last(result.sizes))) return "the result's channels lie apart";
  return starts_at(result, 8) ? "" : "a result that does not begin with a vector";
}

}  // namespace

/// Measured on an H100 and an H200: cuDNN takes 0.95 ms for vgg16's in bfloat16 at batch 64, and 0.40 for its weight's
/// gradient.
bool is_stem(const Primitive& primitive) {
  if (primitive.op != Op::convolution && primitive.op != Op::convolution_weight) return false;
  const DType type = primitive.inputs[0].access.dtype;
  if ((type != DType::float16 && type != DType::bfloat16) || compile::has_prologue(primitive)) return false;
  const auto& window = attribute<Window>(primitive);
  const Shape& weight = weight_of(primitive).sizes;
  const std::array<std::int32_t, 2> ones{1, 1};
  constexpr std::int64_t most_channels = 4;
  constexpr std::int64_t most_features = 64;
  constexpr std::int64_t most_taps = 160;  // of all channels
  const bool fits = weight[1] <= most_channels && weight[0] <= most_features && weight[0] % 8 == 0 && weight[0] >= 16 &&
                    weight[1] * weight[2] * weight[3] <= most_taps && weight[2] * weight[3] > 1;
  if (!fits || window.groups != 1 || window.dilation != ones || numel(result_of(primitive).sizes) == 0) return false;
  return StemShape(primitive).fits();
}

Verdict judge_stem(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_fragments) return decline("tensor cores multiply no fragments here");
  if (compile::has_prologue(primitive)) {
    std::optional<Primitive> planes = reading_planes(primitive);
    if (!planes) return decline("a prologue that is no cast of planes");
    Primitive cast = primitive;  // which lie in memory
    cast.prologues = {};
    Verdict verdict = judge_stem(cast, context);
    if (!verdict.accepted()) return verdict;
    return accept([planes = std::move(*planes), &context] { return Writer(planes, context).make(); });
  }
  if (!is_stem(primitive)) return decline("no image of few channels in 16 bits");
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_layout(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
