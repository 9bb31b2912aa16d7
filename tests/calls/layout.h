#pragma once
// Ways in which a tensor can lie in memory.
#include <russet/tensor.h>

#include <string_view>

namespace russet::test {

enum class Layout : std::uint8_t { contiguous, transposed, sliced, expanded };
inline constexpr Layout layouts[] = {Layout::contiguous, Layout::transposed, Layout::sliced, Layout::expanded};
std::string_view name_of(Layout layout);

/// The elements of `plain` laid out as asked: with the first and the last axis swapped in memory; as every second
/// element of longer rows, from the second on; as the first slice along axis 0 repeated without a copy. Tensors of too
/// few axes come back as they are.
Tensor laid_out(const Tensor& plain, Layout layout);

}  // namespace russet::test
