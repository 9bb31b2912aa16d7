#include "device/gpu/index_check.h"

#include <fmt/format.h>

namespace russet::gpu {

std::string IndexCheck::message(std::uint32_t word) const {
  return fmt::format("{}: index number {} of {} is out of range for {} rows", op, word, count, rows);
}

}  // namespace russet::gpu
