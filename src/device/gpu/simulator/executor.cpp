#include "executor.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "line.h"
#include "machine.h"

namespace russet::simulator {
namespace {

std::byte* map(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemoryError(fmt::format("simulated GPU: no {} bytes of address space", bytes));
  return static_cast<std::byte*>(memory);
}

}  // namespace

Executor& Executor::mine() {
  thread_local const std::unique_ptr<Executor> own = std::make_unique<Executor>();
  return *own;
}

Executor::Executor() : stacks_(*this) {
  threadgroup_.group_memory = reinterpret_cast<char*>(map(GroupShadow::memory_bytes));
  free_stacks_.reserve(max_threads);
  for (Simdgroup& group : simdgroups_) group.operands.coarse = options().coarse;
}

Executor::~Executor() { munmap(threadgroup_.group_memory, GroupShadow::memory_bytes); }

void Executor::reset() {
  threadgroup_.next = threadgroup_.current = threadgroup_.finished = 0;
  abandoned_ = false;
  steps_ = 0;
  ready_simdgroups_ = 0;
  arrived_ = 0;
  for (std::uint32_t i = 0; i < threadgroup_.threads / lanes; ++i) {
    ready_[i] = 0;
    at_barrier_[i] = 0;
    simdgroups_[i].waiting = 0;
    if (!simdgroups_[i].accesses.empty()) forget_accesses(simdgroups_[i]);
  }
  // After a group that came to its end all stacks are back.
  if (free_stacks_.size() == max_threads) return;
  stacks_.forget();
  free_stacks_.clear();
  for (std::uint32_t i = max_threads; i > 0; --i) free_stacks_.push_back(static_cast<std::uint16_t>(i - 1));
}

void Executor::run_checked_group(const EntryPoint& entry, std::span<const std::byte> module, std::uint32_t serial) {
  module_ = module;
  shadow_.begin(threadgroup_, serial);
  run(entry, true);
}

void Executor::run(const EntryPoint& entry, bool checked) {
  entry_ = &entry;
  checked_ = checked;
  threadgroup_.group_bytes = threadgroup_.group_arrays = 0;
  reset();
  start_fiber(&main_);
  if (abandoned_) return;
  if (threadgroup_.finished != threadgroup_.threads) return report_stall();
  for (std::uint32_t i = 0; i < threadgroup_.threads / lanes; ++i) compare_accesses(i);
}

void Executor::start_fiber(Context* from) {
  // Stacks begin at different lines of the cache: the same variables of all threads would compete for one set.
  const std::uint16_t stack = free_stacks_.back();
  const std::size_t stagger = (stack % 61) * 192;
  std::byte* const top = stacks_.begin() + (stack + std::size_t{1}) * stack_bytes - stagger;
  switch_context(from, make_context(top, fiber));
}

void Executor::fiber() {
  Executor& executor = running();
  const std::uint16_t stack = executor.free_stacks_.back();
  executor.free_stacks_.pop_back();
  executor.entry_->run(executor.threadgroup_);
  executor.free_stacks_.push_back(stack);
  Context nowhere;
  executor.run_another(&nowhere);
  __builtin_unreachable();
}

void Executor::run_another(Context* from) {
  steps_ += steps_of_a_switch;
  std::uint32_t group = simdgroup();
  if (ready_[group] == 0) {
    if (threadgroup_.next < threadgroup_.threads) return start_fiber(from);
    if (ready_simdgroups_ == 0) return switch_context(from, main_);
    group = static_cast<std::uint32_t>(std::countr_zero(ready_simdgroups_));
  }
  const std::uint32_t lane = static_cast<std::uint32_t>(std::countr_zero(ready_[group]));
  ready_[group] &= ready_[group] - 1;
  if (ready_[group] == 0) ready_simdgroups_ &= ~(1u << group);
  threadgroup_.current = group * lanes + lane;
  switch_context(from, suspended_[threadgroup_.current]);
}

void Executor::barrier(std::uint32_t spaces, const void* site) {
  const std::uint32_t me = threadgroup_.current;
  if (arrived_ == 0) {
    barrier_site_ = site;
  } else if (site != barrier_site_) {
    report_divergence("threads of one threadgroup wait at different barriers", barrier_site_, site);
    abandon();
  }
  ++arrived_;
  at_barrier_[simdgroup()] |= lane_bit();
  if (arrived_ < threadgroup_.threads) return run_another(&suspended_[me]);
  for (std::uint32_t i = 0; i < threadgroup_.threads / lanes; ++i) compare_accesses(i);
  if (checked_) shadow_.barrier(spaces);
  arrived_ = 0;
  at_barrier_[simdgroup()] &= ~lane_bit();
  for (std::uint32_t i = 0; i < threadgroup_.threads / lanes; ++i) {
    ready_[i] = std::exchange(at_barrier_[i], 0);
    if (ready_[i] != 0) ready_simdgroups_ |= 1u << i;
  }
}

bool Executor::wait_in_simdgroup(Combine combine, const void* site) {
  const std::uint32_t me = threadgroup_.current;
  Simdgroup& group = simdgroups_[simdgroup()];
  if (group.waiting == 0) {
    group.site = site;
    group.combine = combine;
  } else if (group.site != site || group.combine != combine) {
    report_divergence("lanes of one simdgroup are in different simdgroup functions", group.site, site);
    abandon();
  }
  group.waiting |= lane_bit();
  if (group.waiting != ~0u) {
    run_another(&suspended_[me]);
    return false;
  }
  group.waiting = 0;
  compare_accesses(simdgroup());
  if (combine != nullptr) combine(group.operands);
  ready_[simdgroup()] = ~lane_bit();
  ready_simdgroups_ |= 1u << simdgroup();
  return true;
}

void Executor::simdgroup_function(Combine combine, const void* in, void* out, const void* site) {
  Lanes& operands = simdgroups_[simdgroup()].operands;
  operands.in[threadgroup_.current % lanes] = in;
  operands.out[threadgroup_.current % lanes] = out;
  wait_in_simdgroup(combine, site);
}

void Executor::simdgroup_barrier(std::uint32_t spaces, const void* site) {
  const bool last = wait_in_simdgroup(nullptr, site);
  if (last && checked_) shadow_.simdgroup_barrier(spaces, simdgroup());
}

void Executor::matrix_access(const MatrixAccess& access) {
  Simdgroup& group = simdgroups_[simdgroup()];
  std::uint32_t& made = group.accessed[threadgroup_.current % lanes];
  if (made == group.accesses.size()) {
    group.accesses.push_back(access);
  } else if (group.accesses[made] != access) {
    report_divergence("lanes of one simdgroup load or store a matrix at different places", group.accesses[made].site,
                      access.site);
    abandon();
  }
  ++made;
}

void Executor::compare_accesses(std::uint32_t simdgroup) {
  Simdgroup& group = simdgroups_[simdgroup];
  if (group.accesses.empty()) return;
  const std::uint32_t fewest = *std::ranges::min_element(group.accessed);
  if (fewest < group.accesses.size()) {
    const auto others = std::ranges::count_if(group.accessed, [&](std::uint32_t made) { return made > fewest; });
    add_report({"divergence", entry_->name,
                fmt::format("{} of 32 lanes of simdgroup {} load or store the matrix at {}, the others do not; "
                            "threadgroup {}",
                            others, simdgroup, line_of(group.accesses[fewest].site), group_name(threadgroup_))});
  }
  forget_accesses(group);
}

void Executor::forget_accesses(Simdgroup& group) {
  group.accesses.clear();
  group.accessed.fill(0);
}

void Executor::report_lane(std::uint32_t lane, std::uint32_t given) {
  if (!checked_) return;
  add_report(
      {"divergence", entry_->name,
       fmt::format("{}: lane {} of simdgroup {} is given {}, which names no lane, or not the same for all lanes; "
                   "threadgroup {}",
                   line_of(simdgroups_[simdgroup()].site), lane, simdgroup(), static_cast<std::int32_t>(given),
                   group_name(threadgroup_))});
}

void Executor::report_endless(const void* site) {
  add_report({"endless", entry_->name,
              fmt::format("{}: thread {} of threadgroup {} has not come to an end after {} rounds of loops",
                          line_of(site), threadgroup_.current, group_name(threadgroup_), max_steps)});
  abandon();
}

void Executor::abandon() {
  abandoned_ = true;
  free_stacks_.clear();
  Context nowhere;
  switch_context(&nowhere, main_);
  __builtin_unreachable();
}

void Executor::report_divergence(std::string_view what, const void* one, const void* other) {
  add_report({"divergence", entry_->name,
              fmt::format("{}, at {} and at {}; thread {} of threadgroup {}", what, line_of(one), line_of(other),
                          threadgroup_.current, group_name(threadgroup_))});
}

void Executor::report_stall() {
  free_stacks_.clear();
  for (std::uint32_t i = 0; i < threadgroup_.threads / lanes; ++i) {
    const Simdgroup& group = simdgroups_[i];
    if (group.waiting == 0) continue;
    add_report({"divergence", entry_->name,
                fmt::format("{} of 32 lanes of simdgroup {} came to the simdgroup function at {}, the others never; "
                            "threadgroup {}",
                            std::popcount(group.waiting), i, line_of(group.site), group_name(threadgroup_))});
  }
  if (arrived_ > 0) {
    add_report({"divergence", entry_->name,
                fmt::format("{} of {} threads came to the barrier at {}, the others never; threadgroup {}", arrived_,
                            threadgroup_.threads, line_of(barrier_site_), group_name(threadgroup_))});
  }
}

}  // namespace russet::simulator
