#include "device/gpu/cuda/proposals.h"

#include <fmt/format.h>

#include <algorithm>

namespace russet::cuda {

std::string to_string(const LibraryVersion& library) {
  return fmt::format("{} {} sm_{}", library.name, library.version, library.capability);
}

std::size_t fastest_known(std::span<const MeasuredProposal> table, const LibraryVersion& library,
                          std::string_view question) {
  const auto known = std::ranges::find_if(table, [name = to_string(library), question](const MeasuredProposal& one) {
    return one.library == name && one.question == question;
  });
  return known == table.end() ? 0 : known->proposal;
}

}  // namespace russet::cuda
