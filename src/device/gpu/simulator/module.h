#pragma once
// Loaded modules and what the machine knows of a kernel.
#include <string>

#include "device/gpu/kernels/prelude/simulator/abi.h"
#include "machine.h"

namespace russet::simulator {

class Kernel {
 public:
  Kernel(const russet_simulator::EntryPoint& compiled, std::span<const std::byte> loaded, bool is_checked)
      : entry(&compiled), module(loaded), checked(is_checked) {}
  std::string name() const { return entry->name; }
  std::span<const russet_simulator::Argument> arguments() const { return {entry->arguments, entry->argument_count}; }

  const russet_simulator::EntryPoint* entry;
  std::span<const std::byte> module;  // code and constants, as they lie in memory
  bool checked;
};

/// As in machine.h, checked or not whatever the options say.
std::shared_ptr<const Module> compile(std::string_view text, bool checked);

}  // namespace russet::simulator
