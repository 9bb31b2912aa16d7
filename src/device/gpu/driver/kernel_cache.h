#pragma once
// KernelCache: what was compiled, by its text, as long as somebody uses it.
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/gpu/launch.h"

namespace russet::gpu {

using PipelinePtr = std::shared_ptr<const Pipeline>;

/// Thread-safe.
class KernelCache {
 public:
  /// `compile` makes the pipelines of a unit's entries, in order. It is called from several threads.
  using Compile = std::function<std::vector<PipelinePtr>(const CompilationUnit&)>;
  explicit KernelCache(Compile compile) : compile_(std::move(compile)) {}

  /// Pipelines of all entries of all units, in order; compilations_at_once() of them are made side by side. Throws what
  /// `compile` does.
  std::vector<PipelinePtr> build(std::span<const CompilationUnit> units);

 private:
  struct Known {
    CompilationUnit unit;
    std::vector<std::weak_ptr<const Pipeline>> pipelines;
  };

  std::vector<PipelinePtr> find(const CompilationUnit& unit);
  void remember(const CompilationUnit& unit, const std::vector<PipelinePtr>& pipelines);

  Compile compile_;
  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Known> known_;  // by a hash of the text
};

}  // namespace russet::gpu
