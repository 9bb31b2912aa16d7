// to_string(Tensor): PyTorch's rendering (torch/_tensor_str.py) with its default options.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional/movement.h>
#include <russet/tensor.h>

#include <algorithm>
#include <cmath>

#include "functional/build.h"

namespace russet {
namespace {

constexpr int precision = 4;
constexpr std::int64_t threshold = 1000;  // more elements are summarised
constexpr std::int64_t edge = 3;          // to this many at each end of an axis
constexpr std::size_t line_width = 80;

/// How every element of a tensor is written: one width, one notation.
class Formatter {
 public:
  Formatter(const std::vector<Scalar>& values, DType dtype) : dtype_(dtype) {
    if (is_floating(dtype)) choose_notation(values);
    for (const Scalar& value : values) width_ = std::max(width_, plain(value).size());
  }

  std::string operator()(const Scalar& value) const { return fmt::format("{:>{}}", plain(value), width_); }
  std::size_t width() const { return width_; }

 private:
  void choose_notation(const std::vector<Scalar>& values) {
    double least = INFINITY;
    double most = 0;
    for (const Scalar& scalar : values) {
      const double value = scalar.to_double();
      if (!std::isfinite(value) || value == 0) continue;
      least = std::min(least, std::abs(value));
      most = std::max(most, std::abs(value));
      integral_ = integral_ && value == std::ceil(value);
    }
    if (most == 0) return;
    scientific_ = integral_ ? most / least > 1000.0 || most > 1e8 : most / least > 1000.0 || most > 1e8 || least < 1e-4;
  }

  std::string plain(const Scalar& scalar) const {
    if (dtype_ == DType::boolean) return scalar.to_int64() != 0 ? "True" : "False";
    if (!is_floating(dtype_)) return fmt::format("{}", scalar.to_int64());
    const double value = scalar.to_double();
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    if (scientific_) return fmt::format("{:.{}e}", value, precision);
    return integral_ ? fmt::format("{:.0f}.", value) : fmt::format("{:.{}f}", value, precision);
  }

  DType dtype_;
  bool integral_ = true;
  bool scientific_ = false;
  std::size_t width_ = 0;
};

/// The elements that are shown, and where axes are cut.
struct Shown {
  Tensor tensor;
  std::vector<bool> cut;
};

Shown shown(const Tensor& tensor) {
  Shown result{tensor, std::vector<bool>(static_cast<std::size_t>(tensor.dim()), false)};
  if (tensor.numel() <= threshold) return result;
  for (int axis = 0; axis < tensor.dim(); ++axis) {
    const std::int64_t size = tensor.sizes()[axis];
    if (size <= 2 * edge) continue;
    result.cut[static_cast<std::size_t>(axis)] = true;
    result.tensor = cat({result.tensor.narrow(axis, 0, edge), result.tensor.narrow(axis, size - edge, edge)}, axis);
  }
  return result;
}

class Printer {
 public:
  Printer(const Shown& shown, std::vector<Scalar> values, const Formatter& format)
      : shown_(shown), values_(std::move(values)), format_(format) {}

  std::string text(int axis, std::size_t indent) {
    if (shown_.tensor.dim() == 0) return format_(values_.front());
    return axis == shown_.tensor.dim() - 1 ? line(axis, indent) : block(axis, indent);
  }

 private:
  bool cut(int axis) const { return shown_.cut[static_cast<std::size_t>(axis)]; }

  std::string line(int axis, std::size_t indent) {
    const std::int64_t size = shown_.tensor.sizes()[axis];
    const std::size_t room = line_width > indent ? line_width - indent : 0;
    const std::size_t per_line = std::max<std::size_t>(1, room / (format_.width() + 2));
    std::vector<std::string> items;
    for (std::int64_t i = 0; i < size; ++i) {
      if (cut(axis) && i == edge) items.emplace_back(" ...");
      items.push_back(format_(values_[next_++]));
    }
    std::string result = "[";
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) result += i % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      result += items[i];
    }
    return result + "]";
  }

  std::string block(int axis, std::size_t indent) {
    const std::int64_t size = shown_.tensor.sizes()[axis];
    const std::string between = "," + std::string(static_cast<std::size_t>(shown_.tensor.dim() - 1 - axis), '\n') +
                                std::string(indent + 1, ' ');
    std::string result = "[";
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) result += between;
      if (cut(axis) && i == edge) result += "..." + between;
      result += text(axis + 1, indent + 1);
    }
    return result + "]";
  }

  const Shown& shown_;
  std::vector<Scalar> values_;
  const Formatter& format_;
  std::size_t next_ = 0;
};

/// Integers as integers: not all of them are a double.
std::vector<Scalar> scalars(const Tensor& tensor) {
  const auto listed = [](const auto& values) { return std::vector<Scalar>(values.begin(), values.end()); };
  if (is_floating(tensor.dtype())) return listed(tensor.to_vector<double>());
  return listed(tensor.to_vector<std::int64_t>());
}

std::string elements(const Tensor& tensor, std::size_t indent) {
  if (tensor.numel() == 0) return "[]";
  const NoGrad guard;
  const Shown part = shown(tensor.detach());
  std::vector<Scalar> values = scalars(part.tensor);
  const Formatter format(values, tensor.dtype());
  return Printer(part, std::move(values), format).text(0, indent);
}

/// Sizes as Python writes a tuple.
std::string tuple(const Shape& sizes) {
  return fmt::format("({}{})", fmt::join(sizes.begin(), sizes.end(), ", "), sizes.rank() == 1 ? "," : "");
}

bool has_default_type(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  return dtype == DType::float32 || dtype == DType::boolean || (dtype == DType::int64 && tensor.numel() > 0);
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  constexpr std::string_view prefix = "tensor(";
  std::string result{prefix};
  std::string suffix;
  if (tensor.device().type == DeviceType::null) {
    result += "...";
  } else {
    result += elements(tensor, prefix.size());
  }
  if (tensor.device().type != DeviceType::cpu) suffix += fmt::format(", device='{}'", to_string(tensor.device()));
  if ((tensor.numel() == 0 && tensor.dim() != 1) || tensor.device().type == DeviceType::null) {
    suffix += fmt::format(", size={}", tuple(tensor.sizes()));
  }
  if (!has_default_type(tensor)) suffix += fmt::format(", dtype=russet.{}", name_of(tensor.dtype()));
  if (!tensor.is_leaf()) {
    suffix += ", grad_fn=<...>";
  } else if (tensor.requires_grad()) {
    suffix += ", requires_grad=True";
  }
  return result + suffix + ")";
}

}  // namespace russet
