#include "device/gpu/cuda/memory.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::cuda {
namespace {

class DeviceBlock final : public gpu::Block {
 public:
  DeviceBlock(const Context& context, std::byte* begin, std::size_t bytes) : Block(begin, bytes), context_(context) {}
  ~DeviceBlock() override {
    if (context_.try_enter()) api().mem_free(device_address(begin()));
  }

 private:
  const Context& context_;
};

}  // namespace

// Not blocking: a copy neither waits for the work on other streams nor holds it up.
Memory::Memory(const Context& context) : context_(context) {
  check(api().stream_create(&copies_, CU_STREAM_NON_BLOCKING), "making a stream");
}

Memory::~Memory() {
  if (context_.try_enter()) api().stream_destroy(copies_);
}

std::unique_ptr<gpu::Block> Memory::grant(std::size_t bytes) {
  context_.enter();
  CUdeviceptr address = 0;
  const CUresult result = api().mem_alloc(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  check(result, fmt::format("allocating {} bytes", bytes));
  return std::make_unique<DeviceBlock>(context_, reinterpret_cast<std::byte*>(address), bytes);
}

void Memory::clear(std::byte* target, std::size_t bytes) const {
  context_.enter();
  check(api().memset_async(device_address(target), 0, bytes, copies_), "clearing memory");
  check(api().stream_synchronize(copies_), "clearing memory");
}

void Memory::copy_to_device(std::byte* target, std::span<const std::byte> source) const {
  context_.enter();
  check(api().memcpy_to_device_async(device_address(target), source.data(), source.size(), copies_),
        "a copy to the GPU");
  check(api().stream_synchronize(copies_), "a copy to the GPU");
}

void Memory::copy_to_host(std::span<std::byte> target, const std::byte* source) const {
  context_.enter();
  check(api().memcpy_to_host_async(target.data(), device_address(source), target.size(), copies_),
        "a copy from the GPU");
  check(api().stream_synchronize(copies_), "a copy from the GPU");
}

std::byte* allocate_pinned(const Context& context, std::size_t bytes) {
  context.enter();
  void* memory = nullptr;
  const CUresult result = api().mem_host_alloc(&memory, bytes, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw OutOfMemoryError(fmt::format("cuda: no {} bytes of the host's memory for copies to the GPU", bytes));
  }
  check(result, "allocating memory of the host");
  return static_cast<std::byte*>(memory);
}

void release_pinned(const Context& context, std::byte* memory) {
  if (context.try_enter()) api().mem_free_host(memory);
}

}  // namespace russet::cuda
