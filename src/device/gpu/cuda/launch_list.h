#pragma once
// LaunchList: the launches of a submission as CUDA takes them, apart from what changes from run to run.
#include <memory>
#include <vector>

#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/driver/memory_blocks.h"
#include "device/gpu/driver/queue.h"
#include "device/gpu/launch.h"

namespace russet::cuda {

class LaunchList final : public gpu::Encoded {
 public:
  struct Item {
    std::shared_ptr<const Pipeline> pipeline;
    Grid grid;
    // Where the launch's part of each of the lists begins; it ends where the next one's begins.
    std::size_t addresses = 0;
    std::size_t bindings = 0;
    std::size_t values = 0;
    bool has_values = false;
    /// Where in what changes the launch's values or table lie; -1 if they do not change.
    std::int64_t changes = -1;
    bool is_further_part = false;  // see gpu::Launch
    bool operator==(const Item&) const = default;
  };

  /// `blocks`: of the memory that launches touch.
  void add(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks);
  void clear();

  const std::vector<Item>& items() const { return items_; }
  std::span<const gpu::Binding> bindings() const override { return bindings_; }
  /// What an item touches.
  std::span<const gpu::Binding> bindings_of(std::size_t item) const;
  /// Values and tables that change: they lie in the GPU's memory when the launches run.
  std::span<const std::byte> changing() const { return changing_; }
  bool takes_other_arguments() const override { return !buffers_move_; }
  /// Puts a plan's run-time arguments into what changes, given as it is with others.
  void put_arguments(std::span<const std::uint64_t> arguments, std::span<std::byte> changing) const;
  void set_changing(std::span<const std::byte> changing) { changing_.assign(changing.begin(), changing.end()); }
  /// Pointers to an item's arguments, as CUDA takes them. `changing`: where the GPU finds what changes.
  std::vector<void*> arguments_of(std::size_t item, const std::byte* changing) const;

  /// Of everything that same_launches() compares.
  std::uint64_t digest() const;
  /// Whether the other's launches are these, but for the content of what changes.
  bool same_launches(const LaunchList& other) const;

 private:
  void add_buffers(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks);
  void add_places(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks, std::span<std::byte> table);
  void write(const gpu::TensorMap& map, const gpu::Binding& buffer, const Item& item);
  std::span<std::byte> add_changing(std::span<const std::byte> parameters);

  std::vector<Item> items_;
  std::vector<const std::byte*> addresses_;  // arguments
  std::vector<const std::byte*> reached_;    // blocks, through tables
  std::vector<gpu::Binding> bindings_;
  std::vector<std::byte> values_;
  std::vector<std::byte> changing_;
  std::vector<gpu::Patch> patches_;  // of what changes
  bool buffers_move_ = false;
  mutable const std::byte* changing_argument_ = nullptr;  // what arguments_of() pointed at last
};

}  // namespace russet::cuda
