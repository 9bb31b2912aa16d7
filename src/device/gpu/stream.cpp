#include "device/gpu/stream.h"

#include <algorithm>

namespace russet::gpu {

void Stream::launch(const Launch& launch) {
  const auto range_of = [](const Binding& binding) { return base::range_of(binding.address, binding.bytes); };
  const bool conflicts =
      !launch.is_further_part && std::any_of(launch.buffers.begin(), launch.buffers.end(), [&](const Binding& binding) {
        return written_.overlaps(range_of(binding)) || (binding.writes && read_.overlaps(range_of(binding)));
      });
  if (conflicts) {
    driver_.barrier();
    ++barriers_;
    read_.clear();
    written_.clear();
  }
  for (const Binding& binding : launch.buffers) {
    (binding.writes ? written_ : read_).add(range_of(binding));
  }
  driver_.launch(launch);
  ++launches_;
}

void Stream::commit() { driver_.commit(); }

void Stream::wait() {
  driver_.synchronize();
  read_.clear();
  written_.clear();
}

}  // namespace russet::gpu
