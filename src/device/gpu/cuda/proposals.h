#pragma once
// Proposals: a library proposes several calls for a question, the best first by its judgement. The first is taken,
// unless another one was measured to be faster (proposals_table.h).
#include <russet/error.h>

#include <string>
#include <vector>

#include "device/gpu/cuda/proposal_times.h"
#include "device/gpu/cuda/proposals_table.h"

namespace russet::cuda {

/// The proposal that a table has for the question; 0 if it has none.
std::size_t fastest_known(std::span<const MeasuredProposal> table, const LibraryVersion& library,
                          std::string_view question);

/// A library's proposal, or the first if fewer are proposed here. `make` as for choose().
template <class Make>
auto proposed(std::size_t number, const Make& make) {
  if (number == 0) return make(0);
  try {
    return make(number);
  } catch (const DeviceError&) {
    return make(0);
  }
}

/// The call for a question; `make(n)` makes the library's proposal n, from 0, or throws DeviceError if there is none.
/// `regions`: the call's operands.
template <class Make>
auto choose(const Context& context, const LibraryVersion& library, const std::string& question,
            std::span<const gpu::Region> regions, const Make& make) {
  using CallPtr = decltype(make(std::size_t{0}));
  if (measures_proposals()) {
    std::vector<CallPtr> calls;
    std::vector<Proposal> proposals;
    try {
      while (calls.size() < most_proposals) {
        calls.push_back(make(calls.size()));
        proposals.push_back({calls.back(), calls.back()->workspace_bytes()});
      }
    } catch (const DeviceError&) {  // no more
      if (calls.empty()) throw;
    }
    try {
      return calls[fastest_of(context, library, question, regions, proposals)];
    } catch (const DeviceError&) {  // no memory to measure in
      return calls.front();
    }
  }
  return proposed(fastest_known(measured_proposals(), library, question), make);
}

}  // namespace russet::cuda
