#pragma once
// Which of a library's proposals was measured to be the fastest. It is a table, so that results are the same bits
// wherever the same version of the library runs on the same kind of GPU. scripts/proposals_table.py writes it.
#include <cstddef>
#include <span>
#include <string_view>

namespace russet::cuda {

struct MeasuredProposal {
  std::string_view library;  // as to_string says it
  std::size_t proposal;      // not 0, which is taken anyway
  std::string_view question;
};

/// The table that russet has.
std::span<const MeasuredProposal> measured_proposals();
}  // namespace russet::cuda
