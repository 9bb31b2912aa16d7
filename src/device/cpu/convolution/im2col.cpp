// Convolutions as matrix products by oneDNN (im2col).
#include <fmt/format.h>

#include "base/parallel.h"
#include "device/cpu/convolution/convolution.h"
#include "device/cpu/convolution/strategies.h"
#include "device/cpu/layout.h"
#include "device/cpu/onednn_kernel.h"
#include "device/cpu/operand.h"
#include "device/cpu/workspace.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using onednn::Desc;
using ops::Window;

Desc matrix(std::int64_t rows, std::int64_t columns, DType type, bool transposed = false) {
  using onednn::Dims;
  const Dims strides = transposed ? Dims{1, rows} : Dims{columns, 1};
  return {{rows, columns}, onednn::type_of(type), strides};
}

/// c = a b, or c += a b; the three matrices lie in slots 0, 1 and 2 of a run's bindings. nullptr if oneDNN has no such
/// product that keeps to our scratch space.
std::unique_ptr<onednn::Kernel> make_product(const Desc& a, const Desc& b, const Desc& c, bool accumulate) {
  dnnl::primitive_attr attributes = onednn::attributes();
  if (accumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0F);
    attributes.set_post_ops(ops);
  }
  const auto made = onednn::make<dnnl::matmul>(attributes, a, b, c);
  if (!made) return nullptr;
  auto kernel = std::make_unique<onednn::Kernel>(made->impl_info_str());
  const auto in_slot = [](std::int32_t slot) { return onednn::Location::operand({slot, DType::float32, 0, -1, {}}); };
  kernel->add(dnnl::matmul(*made),
              {{DNNL_ARG_SRC, a, in_slot(0)}, {DNNL_ARG_WEIGHTS, b, in_slot(1)}, {DNNL_ARG_DST, c, in_slot(2)}},
              made->scratchpad_desc());
  return kernel;
}

/// Windows that move over a channels-last array, as rows (height, width, channel) of a matrix.
struct Windows {
  Shape array, windows;  // of which the last two axes count windows
  Window window;
  std::vector<TapRun> down, across;  // for each window, its taps that are inside

  Windows(const Operand& source, const Operand& other, const Window& window)
      : array(source.sizes),
        windows(other.sizes),
        window(window),
        down(gathered_taps(window, 0, window.kernel[0], array[2], windows[2])),
        across(gathered_taps(window, 1, window.kernel[1], array[3], windows[3])) {}

  std::int64_t rows() const { return windows[2] * windows[3]; }
  std::int64_t row_size() const { return std::int64_t{window.kernel[0]} * window.kernel[1] * array[1]; }
  std::int64_t image_size() const { return array[1] * array[2] * array[3]; }
  /// A row is a pixel, so the array is the matrix already.
  bool trivial() const {
    return row_size() == array[1] && window.stride == std::array<std::int32_t, 2>{1, 1} && windows[2] == array[2] &&
           windows[3] == array[3] && window.padding == std::array<std::int32_t, 2>{0, 0};
  }

  template <class T>
  void copy_row(const T* image, std::int64_t row, T* out) const {
    const std::int64_t channels = array[1];
    const std::int64_t taps = window.kernel[1];
    const TapRun& lines = down[static_cast<std::size_t>(row / windows[3])];
    const TapRun& line = across[static_cast<std::size_t>(row % windows[3])];
    for (std::int64_t i = 0; i < window.kernel[0]; ++i, out += taps * channels) {
      if (i < lines.tap || i >= lines.tap + lines.count) {
        std::fill_n(out, taps * channels, T{});
        continue;
      }
      const T* from = image + ((lines.from + (i - lines.tap) * lines.from_step) * array[3] + line.from) * channels;
      T* to = std::fill_n(out, line.tap * channels, T{});
      if (line.from_step <= 1) {
        to = std::copy_n(from, line.count * channels, to);
      } else {
        for (std::int64_t j = 0; j < line.count; ++j, from += line.from_step * channels) {
          to = std::copy_n(from, channels, to);
        }
      }
      std::fill(to, out + taps * channels, T{});
    }
  }

  template <class T>
  void copy(const T* images, std::int64_t count, T* out) const {
    const std::int64_t size = row_size();
    base::parallel_for(count * rows(), static_cast<double>(size) * sizeof(T) / 10, [&](auto begin, auto end) {
      for (std::int64_t i = begin; i < end; ++i) {
        copy_row(images + i / rows() * image_size(), i % rows(), out + i * size);
      }
    });
  }
};

/// The window that a matrix product moves over its source: x, or y for input gradients, which are convolutions with the
/// weights turned around.
Window product_window(const Convolution& c) {
  Window window = c.window;
  for (std::size_t i = 0; i < 2; ++i) {
    window.kernel[i] = static_cast<std::int32_t>(c.weight.sizes[static_cast<int>(i) + 2]);
    if (c.computes_x()) window.padding[i] = window.dilation[i] * (window.kernel[i] - 1) - window.padding[i];
  }
  return window;
}

/// What a convolution multiplies: windows of `source` (x, or y for input gradients) with the weights, or with the other
/// array's pixels (weight gradients).
class Im2col final : public compile::Kernel {
 public:
  /// nullptr if oneDNN lacks a product.
  static std::unique_ptr<Im2col> make(const Primitive& primitive) {
    auto kernel = std::make_unique<Im2col>(primitive);
    return kernel->make_products() ? std::move(kernel) : nullptr;
  }

  explicit Im2col(const Primitive& primitive)
      : convolution_(primitive),
        source_(convolution_.computes_x() ? convolution_.y : convolution_.x),
        other_(convolution_.computes_x() ? convolution_.x : convolution_.y),
        windows_(source_, other_, product_window(convolution_)) {
    // Enough rows for a fast product, few enough to stay in the cache.
    constexpr std::int64_t wanted_bytes = std::int64_t{4} << 20;
    const std::int64_t row_bytes = windows_.row_size() * static_cast<std::int64_t>(size_of(type()));
    const std::int64_t wanted_rows = std::clamp<std::int64_t>(wanted_bytes / row_bytes, 1024, 8192);
    chunk_ = std::clamp<std::int64_t>(wanted_rows / windows_.rows(), 1, images());
    if (windows_.trivial()) chunk_ = images();
  }

  std::string name() const override { return "onednn:" + first_->name() + ":im2col"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const Bindings& bindings) const override {
    if (type() == DType::bfloat16) {
      run_as<bfloat16>(bindings);
    } else {
      run_as<float>(bindings);
    }
  }

 private:
  bool to_weight() const { return convolution_.computes_weight(); }
  DType type() const { return source_.access.dtype; }
  std::int64_t images() const { return source_.sizes[0]; }
  std::int64_t other_channels() const { return other_.sizes[1]; }

  std::unique_ptr<onednn::Kernel> product(std::int64_t images, bool accumulate) const {
    const std::int64_t rows = images * windows_.rows();
    const std::int64_t size = windows_.row_size();
    if (to_weight()) {
      return make_product(matrix(other_channels(), rows, type(), true), matrix(rows, size, type()),
                          matrix(other_channels(), size, DType::float32), accumulate);
    }
    return make_product(matrix(rows, size, type()), matrix(size, other_channels(), type(), true),
                        matrix(rows, other_channels(), other_.access.dtype), false);
  }

  bool make_products() {
    const std::int64_t left = images() % chunk_;
    first_ = product(chunk_, false);
    if (to_weight() && images() / chunk_ > 1) next_ = product(chunk_, true);
    if (left > 0) last_ = product(left, to_weight());
    if (!first_ || (to_weight() && images() / chunk_ > 1 && !next_) || (left > 0 && !last_)) return false;
    std::size_t library_bytes = 0;
    for (const auto* made : {&first_, &next_, &last_}) {
      if (*made) library_bytes = std::max(library_bytes, (*made)->scratch_bytes());
    }
    const auto bytes_of = [](std::int64_t count, DType type) {
      return count * static_cast<std::int64_t>(size_of(type));
    };
    const std::int64_t row = windows_.row_size();
    if (!windows_.trivial()) columns_ = workspace_.add<std::byte>(bytes_of(chunk_ * windows_.rows() * row, type()));
    weights_ = workspace_.add<std::byte>(bytes_of(other_channels() * row, to_weight() ? DType::float32 : type()));
    library_ = workspace_.add<std::byte>(static_cast<std::int64_t>(library_bytes));
    return true;
  }

  template <class T>
  void run_as(const Bindings& bindings) const {
    std::byte* const weights = weights_.at(bindings);
    const auto* const source = address_as<const T>(source_.access, bindings);
    if (!to_weight()) gather_weights(bindings, reinterpret_cast<T*>(weights));
    for (std::int64_t image = 0; image < images(); image += chunk_) {
      const std::int64_t count = std::min(chunk_, images() - image);
      const T* rows = source + image * windows_.image_size();
      if (!windows_.trivial()) {
        auto* const columns = reinterpret_cast<T*>(columns_.at(bindings));
        windows_.copy(rows, count, columns);
        rows = columns;
      }
      auto* const matrix = reinterpret_cast<std::byte*>(const_cast<T*>(rows));
      const std::int64_t at = image * windows_.rows() * other_channels();
      std::byte* const other =
          address(other_.access, bindings) + at * static_cast<std::int64_t>(size_of(other_.access.dtype));
      std::byte* const slots[] = {to_weight() ? other : matrix, to_weight() ? matrix : weights,
                                  to_weight() ? weights : other};
      const auto& product = count < chunk_ ? last_ : to_weight() && image > 0 ? next_ : first_;
      product->run({slots, nullptr, library_.at(bindings)});
    }
    if (to_weight()) scatter_weights(reinterpret_cast<const float*>(weights), bindings);
  }

  /// Calls visit(row, position in the row, offset in the weights) for rows [begin, end).
  template <class Visit>
  void each_weight(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    const bool turned = convolution_.computes_x();
    const Strides& s = convolution_.weight.access.strides;
    const std::int64_t row_step = turned ? s[1] : s[0];
    const std::int64_t channel_step = turned ? s[0] : s[1];
    const std::int64_t height = convolution_.kernel_height();
    const std::int64_t width = convolution_.kernel_width();
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = 0; i < height; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t from =
              row * row_step + (turned ? height - 1 - i : i) * s[2] + (turned ? width - 1 - j : j) * s[3];
          const std::int64_t to = (i * width + j) * source_.sizes[1];
          for (std::int64_t c = 0; c < source_.sizes[1]; ++c) visit(row, to + c, from + c * channel_step);
        }
      }
    }
  }

  template <class T>
  void gather_weights(const Bindings& bindings, T* to) const {
    const auto* const from = address_as<const T>(convolution_.weight.access, bindings);
    const std::int64_t size = windows_.row_size();
    base::parallel_for(other_channels(), static_cast<double>(size), [&](std::int64_t begin, std::int64_t end) {
      each_weight(begin, end, [&](auto row, auto position, auto at) { to[row * size + position] = from[at]; });
    });
  }

  void scatter_weights(const float* from, const Bindings& bindings) const {
    const std::int64_t size = windows_.row_size();
    const compile::Access& weight = convolution_.weight.access;
    visit_dtype(weight.dtype, [&]<class Result>() {
      auto* const to = address_as<Result>(weight, bindings);
      base::parallel_for(other_channels(), static_cast<double>(size), [&](std::int64_t begin, std::int64_t end) {
        each_weight(begin, end, [&](auto row, auto position, auto at) {
          to[at] = convert_element<Result>(from[row * size + position]);
        });
      });
    });
  }

  Convolution convolution_;
  Operand source_, other_;
  Windows windows_;
  std::int64_t chunk_ = 1;  // images of a product
  /// Products of the first chunk, of those that add to it, and of the images that are left.
  std::unique_ptr<onednn::Kernel> first_, next_, last_;
  Workspace workspace_;
  /// The weights are rows (height, width, channel) for each output; sums of their gradients are float32.
  Scratch<std::byte> columns_, weights_, library_;
};

/// Whether im2col computes it at all.
Verdict judge_im2col(const Primitive& primitive) {
  if (std::string reason = why_not_onednn(primitive); !reason.empty()) return decline(std::move(reason));
  const Convolution convolution(primitive);
  if (convolution.groups != 1) return decline("a product for each group would be small");
  if (!primitive.epilogue.code.empty()) return decline("it takes no epilogue");
  if (convolution.computes_x() && convolution.window.stride != std::array<std::int32_t, 2>{1, 1}) {
    return decline("most of its windows would be zeros");
  }
  if (!is_channels_last(convolution.x) || !is_channels_last(convolution.y))
    return decline("activations are not channels-last");
  const auto made = std::make_shared<KernelPtr>(Im2col::make(primitive));
  if (!*made) return decline("oneDNN has no such product that keeps to our scratch space");
  return accept([made] { return std::move(*made); });
}

}  // namespace

// GFLOP/s in bfloat16 on one core of a Xeon with AMX, im2col and oneDNN's convolution:
//                              forward       input gradient   weight gradient
//    64 channels, 32 x 32      396 and 1083    426 and  880    281 and 468
//   128 channels, 16 x 16      640 and 1493    658 and 1134    363 and 521
//   256 channels,  8 x 8       630 and  868    638 and  811    503 and 337
//   512 channels,  4 x 4       533 and  310    509 and  257    441 and 126
//   512 channels,  7 x 7       411 and  560    320 and  476    302 and 260
//   64 to 128, stride 2        559 and  977                    395 and 220
//   1 x 1, 64 to 256, 56 x 56  407 and  417    610 and  299    360 and 150
//   1 x 1, 1024 to 256         818 and  942    686 and  731    513 and 119
//   1 x 1, stride 2            578 and  791                    417 and 131
// In float32 im2col never wins.
Verdict judge_faster_im2col(const Primitive& primitive) {
  if (input_access(primitive, 0).dtype != DType::bfloat16) return decline("im2col pays in bfloat16 only");
  const Convolution convolution(primitive);
  const Shape& windows = convolution.computes_x() ? convolution.x.sizes : convolution.y.sizes;
  const std::int64_t plane = windows[2] * windows[3];
  if (convolution.channels < 16) return decline("oneDNN's convolution is faster for few channels");
  if (convolution.computes_weight()) {
    const bool dense = convolution.taps() > 1 && convolution.window.stride == std::array<std::int32_t, 2>{1, 1};
    if (dense && plane > 64) return decline("oneDNN's convolution is faster on large planes");
  } else if (plane > 16) {
    return decline("oneDNN's convolution is faster on all but the smallest planes");
  }
  return judge_im2col(primitive);
}

}  // namespace russet::cpu
