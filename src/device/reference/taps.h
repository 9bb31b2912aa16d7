#pragma once
// The one loop nest behind convolution and pooling.
#include "ops/attributes.h"

namespace russet::reference {

struct PlaneSizes {
  std::int64_t x_height, x_width;  // what windows move over
  std::int64_t y_height, y_width;  // how many windows there are
  std::int64_t kernel_height, kernel_width;
};

/// Calls visit(y, x, k), positions within the three planes, for every element of every window that is not padding.
template <class Visitor>
void for_each_tap(const ops::Window& window, const PlaneSizes& sizes, Visitor&& visit) {
  for (std::int64_t row = 0; row < sizes.y_height; ++row) {
    for (std::int64_t column = 0; column < sizes.y_width; ++column) {
      for (std::int64_t i = 0; i < sizes.kernel_height; ++i) {
        for (std::int64_t j = 0; j < sizes.kernel_width; ++j) {
          const std::int64_t h = row * window.stride[0] - window.padding[0] + i * window.dilation[0];
          const std::int64_t w = column * window.stride[1] - window.padding[1] + j * window.dilation[1];
          if (h < 0 || h >= sizes.x_height || w < 0 || w >= sizes.x_width) continue;
          visit(row * sizes.y_width + column, h * sizes.x_width + w, i * sizes.kernel_width + j);
        }
      }
    }
  }
}

}  // namespace russet::reference
