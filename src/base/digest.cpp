#include "base/digest.h"

#include <fmt/format.h>

namespace russet::base {

std::string digest_name(std::string_view text, std::string_view maker) {
  constexpr std::uint64_t other_start = 0x84222325CBF29CE4ULL;
  return fmt::format("{:016x}{:016x}", digest(text, digest(maker)), digest(text, digest(maker, other_start)));
}

}  // namespace russet::base
