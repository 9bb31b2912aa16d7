// Any pickle is read or refused by a FileError; it never crashes, hangs or takes memory that it has no claim to.
#include "io/pickle.h"

#include <russet/error.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/torch_weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  russet::io::pickle::Objects objects;
  try {
    const auto tensors = russet::io::find_state_dict(russet::io::pickle::unpickle(bytes, objects));
    if (tensors.empty()) __builtin_trap();
  } catch (const russet::FileError&) {
  }
  return 0;
}
