// The reference device: the oracle of every test, in host memory.
#include <unistd.h>

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <cstdlib>

#include "device/reference/target.h"
#include "runtime/device.h"

namespace russet::reference {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t line = 64;

class Driver final : public runtime::DeviceDriver {
 public:
  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = "interpreter of primitives in float64";
    for (int type = 0; type < dtype_count; ++type) properties.dtypes.push_back(static_cast<DType>(type));
    properties.memory_bytes =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return properties;
  }

  const compile::Target& target() const override { return reference::target(); }

  std::byte* allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= page ? page : line;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, std::max(bytes, line)) != 0) {
      throw OutOfMemoryError(fmt::format("reference: the system has no {} bytes to give", bytes));
    }
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t /*bytes*/) override { std::free(memory); }

  std::shared_ptr<const std::byte> peek(const std::byte* memory, std::size_t /*bytes*/) override {
    return runtime::in_place(memory);
  }
  void upload(std::byte* target, std::span<const std::byte> source) override {
    std::copy(source.begin(), source.end(), target);
  }
  void clear(std::byte* target, std::size_t bytes) override { std::fill_n(target, bytes, std::byte{0}); }
  void download(std::span<std::byte> target, const std::byte* source) override {
    std::copy_n(source, target.size(), target.begin());
  }
};

const bool registered = [] {
  runtime::register_device(DeviceType::reference, [] { return std::make_unique<Driver>(); });
  return true;
}();

}  // namespace
}  // namespace russet::reference
