#include "calls/layout.h"

#include <russet/functional.h>

namespace russet::test {

std::string_view name_of(Layout layout) {
  constexpr std::string_view names[] = {"contiguous", "transposed", "sliced", "expanded"};
  return names[static_cast<int>(layout)];
}

Tensor laid_out(const Tensor& plain, Layout layout) {
  const int rank = plain.dim();
  if (layout == Layout::transposed && rank >= 2) {
    return plain.transpose(0, rank - 1).contiguous().transpose(0, rank - 1);
  }
  if (layout == Layout::sliced && rank >= 1) {
    Shape wide = plain.sizes();
    wide[rank - 1] = 2 * plain.size(-1) + 3;
    const Tensor inside =
        zeros(wide, {.dtype = plain.dtype(), .device = plain.device()}).slice(rank - 1, {1, 1 + 2 * plain.size(-1), 2});
    inside.copy_(plain);
    return inside;
  }
  if (layout == Layout::expanded && rank >= 1 && plain.numel() > 0) {
    return plain.narrow(0, 0, 1).contiguous().expand(plain.sizes());
  }
  return plain;
}

}  // namespace russet::test
