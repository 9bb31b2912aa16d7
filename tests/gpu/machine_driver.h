#pragma once
// A driver without a driver: launches go straight to the simulated GPU. For tests of what lies above drivers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "device/gpu/simulator/machine.h"
#include "device/gpu/target.h"

namespace russet::test {

class MachineDriver : public gpu::Driver {
 public:
  MachineDriver() : target_(gpu::make_target(*this, DeviceType::mps)) {}

  runtime::DeviceProperties properties() const override { return {}; }
  const compile::Target& target() const override { return *target_; }
  gpu::Properties gpu_properties() const override {
    gpu::Properties properties{"apple9", simulator::options().max_threads, 32768};
    properties.longest_launch = longest_launch;
    if (adjust) adjust(properties);
    return properties;
  }

  std::byte* allocate(std::size_t bytes) override {
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    simulator::mark_uninitialised(memory, bytes);
    return memory;
  }
  void release(std::byte* memory, std::size_t bytes) override {
    simulator::mark_initialised(memory, bytes);
    std::free(memory);
  }
  void upload(std::byte* target, std::span<const std::byte> source) override {
    synchronize();
    std::copy(source.begin(), source.end(), target);
    simulator::mark_initialised(target, source.size());
  }
  void clear(std::byte* target, std::size_t bytes) override { upload(target, std::vector<std::byte>(bytes)); }
  void download(std::span<std::byte> target, const std::byte* source) override {
    synchronize();
    std::copy_n(source, target.size(), target.begin());
  }

  std::vector<std::shared_ptr<const gpu::Pipeline>> build(std::span<const gpu::CompilationUnit> units) override {
    std::vector<std::shared_ptr<const gpu::Pipeline>> pipelines;
    for (const gpu::CompilationUnit& unit : units) {
      const auto module = simulator::compile(unit.text);
      for (const gpu::EntryPoint& entry : unit.entry_points) {
        auto pipeline = std::make_shared<Pipeline>();
        pipeline->module = module;
        pipeline->kernel = module->find(entry.name);
        if (pipeline->kernel == nullptr) throw std::runtime_error("no entry " + entry.name);
        pipelines.push_back(std::move(pipeline));
      }
      ++units_built;
    }
    return pipelines;
  }

  void launch(const gpu::Launch& launch) override {
    simulator::Dispatch dispatch;
    dispatch.kernel = static_cast<const Pipeline*>(launch.pipeline)->kernel;
    dispatch.groups = launch.groups;
    dispatch.threads = launch.threads;
    for (const gpu::Binding& buffer : launch.buffers) {
      dispatch.buffers.push_back({buffer.address, buffer.bytes, buffer.writes, "tensor"});
    }
    dispatch.values.assign(launch.parameters.begin(), launch.parameters.end());
    reach(launch, dispatch);
    waiting_.push_back(std::move(dispatch));
    ++launches;
  }
  /// Every block is told apart by the bits of its addresses above `block_bits`; the base of all is address 0.
  const void* block_of(const std::byte* address, std::size_t) const override {
    return reinterpret_cast<const void*>(block_bits == 64 ? 1
                                                          : reinterpret_cast<std::uintptr_t>(address) >> block_bits);
  }
  void barrier() override {
    simulator::execute(waiting_);
    waiting_.clear();
    ++barriers;
  }
  void commit() override {
    if (launches > committed_launches_) command_buffers.push_back(launches - committed_launches_);
    committed_launches_ = launches;
  }
  void synchronize() override {
    simulator::execute(waiting_);
    waiting_.clear();
  }

  /// Changes what the GPU says of itself; set before the target is asked for anything.
  std::function<void(gpu::Properties&)> adjust;
  double longest_launch = gpu::Properties().longest_launch;  // seconds; asked for once
  std::vector<int> command_buffers;                          // how many launches were committed together
  int block_bits = 64;
  int launches = 0;
  int barriers = 0;
  int units_built = 0;

 private:
  static void reach(const gpu::Launch& launch, simulator::Dispatch& dispatch) {
    dispatch.bases.assign(launch.bases, nullptr);
    for (std::size_t i = 0; i < launch.places.size(); ++i) {
      const auto address = reinterpret_cast<std::uintptr_t>(launch.buffers[i].address);
      std::memcpy(dispatch.values.data() + launch.places[i], &address, sizeof(address));
      dispatch.reached.push_back({0, launch.places[i]});
    }
  }

  struct Pipeline final : gpu::Pipeline {
    std::shared_ptr<const simulator::Module> module;
    const simulator::Kernel* kernel = nullptr;
  };

  std::unique_ptr<compile::Target> target_;
  int committed_launches_ = 0;

 protected:
  std::vector<simulator::Dispatch> waiting_;  // since the last barrier
};

/// Memory of a driver that ends with this.
class DeviceMemory {
 public:
  DeviceMemory(gpu::Driver& driver, std::size_t bytes)
      : driver_(driver), bytes_(std::max<std::size_t>(bytes, 64)), data_(driver.allocate(bytes_)) {}
  ~DeviceMemory() { driver_.release(data_, bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  gpu::Driver& driver_;
  std::size_t bytes_;
  std::byte* data_;
};

inline void expect_no_reports() {
  for (const simulator::CheckReport& report : simulator::take_reports()) {
    ADD_FAILURE() << report.check << " in " << report.kernel << ": " << report.message;
  }
}

}  // namespace russet::test
