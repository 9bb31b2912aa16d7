#pragma once
// Runs a group of a Builder on the simulated GPU, in place of the Builder's memory.
#include "../unit/group_builder.h"
#include "machine_driver.h"

namespace russet::test {

/// Copies the slots to the device, runs the kernel, and copies them back. A report of the simulator is a failure.
inline void run_on(MachineDriver& driver, const compile::Kernel& kernel, Memory& memory,
                   const std::vector<std::uint64_t>& arguments) {
  const std::vector<std::byte*> host = memory.pointers();
  std::vector<std::unique_ptr<DeviceMemory>> device;
  std::vector<std::byte*> slots;
  for (std::size_t slot = 0; slot < host.size(); ++slot) {
    const auto bytes = static_cast<std::size_t>(memory.bytes(static_cast<int>(slot)));
    device.push_back(std::make_unique<DeviceMemory>(driver, bytes));
    slots.push_back(device.back()->data());
    driver.upload(slots.back(), {host[slot], bytes});
  }
  const DeviceMemory scratch(driver, kernel.scratch_bytes());
  kernel.run({slots.data(), arguments.data(), scratch.data()});
  for (std::size_t slot = 0; slot < host.size(); ++slot) {
    driver.download({host[slot], static_cast<std::size_t>(memory.bytes(static_cast<int>(slot)))}, slots[slot]);
  }
  expect_no_reports();
}

}  // namespace russet::test
