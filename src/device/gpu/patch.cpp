#include "device/gpu/patch.h"

#include <russet/dtype.h>

#include <bit>
#include <cstring>

namespace russet::gpu {

void apply(const Patch& patch, std::uint64_t argument, std::byte* bytes) {
  const auto put = [&](auto value) { std::memcpy(bytes + patch.at, &value, sizeof(value)); };
  const auto single = static_cast<float>(std::bit_cast<double>(argument));
  switch (patch.form) {
    case Patch::Form::bits: return put(argument);
    case Patch::Form::int32: return put(static_cast<std::uint32_t>(argument));
    case Patch::Form::float32: return put(single);
    case Patch::Form::float16: return put(static_cast<float>(float16(single)));
    case Patch::Form::bfloat16: return put(static_cast<float>(bfloat16(single)));
  }
}

}  // namespace russet::gpu
