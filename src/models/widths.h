#pragma once
// ModelOptions::width, which multiplies the widths of hidden layers.
#include <russet/models/registry.h>
#include <algorithm>
#include <cmath>

namespace russet::models {

inline std::int64_t scaled(const ModelOptions& options, std::int64_t width) {
  return std::max<std::int64_t>(std::llround(options.width.value_or(1) * static_cast<double>(width)), 1);
}

inline std::vector<std::int64_t> scaled(const ModelOptions& options, std::vector<std::int64_t> widths) {
  for (std::int64_t& width : widths) width = scaled(options, width);
  return widths;
}

/// A width that splits into heads.
inline std::int64_t scaled(const ModelOptions& options, std::int64_t width, std::int64_t heads) {
  return options.width && heads > 0 ? scaled(options, width / heads) * heads : width;
}

}  // namespace russet::models
