#pragma once
// Checkpoints: one safetensors file that holds tensors and a JSON text, with a checksum over the tensors' bytes.
#include <russet/io/state_dict.h>
#include <filesystem>
#include <string>

namespace russet::io {

struct Checkpoint {
  StateDict tensors;
  std::string state;  // a JSON text: counters, options, positions
};

/// Writes the file atomically. Throws ValueError if `state` is no JSON, FileError if the file cannot be written.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// Throws FileError if the file cannot be read, is no checkpoint, or was damaged.
Checkpoint load_checkpoint(const std::filesystem::path& path, Device device = {});

}  // namespace russet::io
