#include "device/gpu/driver/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "device/gpu/compilations.h"

namespace russet::gpu {
namespace {

/// Runs work(0) ... work(count - 1), several at once; the first exception is thrown when all are done. Threads of our
/// own: a compiler may work elsewhere, and they wait for it.
void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> failures(count);
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(count, compilations_at_once()); ++i) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

std::vector<PipelinePtr> KernelCache::build(std::span<const CompilationUnit> units) {
  std::vector<std::vector<PipelinePtr>> built(units.size());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < units.size(); ++i) {
    built[i] = find(units[i]);
    if (built[i].size() < units[i].entry_points.size()) missing.push_back(i);
  }
  side_by_side(missing.size(), [&](std::size_t i) { built[missing[i]] = compile_(units[missing[i]]); });
  for (const std::size_t i : missing) remember(units[i], built[i]);
  std::vector<PipelinePtr> result;
  for (auto& pipelines : built) result.insert(result.end(), pipelines.begin(), pipelines.end());
  return result;
}

std::vector<PipelinePtr> KernelCache::find(const CompilationUnit& unit) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = known_.equal_range(std::hash<std::string>{}(unit.text));
  for (auto it = first; it != last; ++it) {
    if (it->second.unit.text != unit.text || it->second.unit.entry_points != unit.entry_points) continue;
    std::vector<PipelinePtr> pipelines;
    for (const auto& pipeline : it->second.pipelines) {
      if (PipelinePtr alive = pipeline.lock()) pipelines.push_back(std::move(alive));
    }
    if (pipelines.size() == unit.entry_points.size()) return pipelines;
  }
  return {};
}

void KernelCache::remember(const CompilationUnit& unit, const std::vector<PipelinePtr>& pipelines) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) {
    return std::all_of(entry.second.pipelines.begin(), entry.second.pipelines.end(),
                       [](const auto& pipeline) { return pipeline.expired(); });
  });
  known_.emplace(std::hash<std::string>{}(unit.text), Known{unit, {pipelines.begin(), pipelines.end()}});
}

}  // namespace russet::gpu
