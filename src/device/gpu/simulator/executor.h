#pragma once
// Executes threadgroups on one thread of this computer. A simulated thread runs until it waits for others, at a barrier
// or in a function of its simdgroup; then another one runs. A thread that never waits costs no switch, and its stack
// serves the next one.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "checked/group_shadow.h"
#include "checked/stacks.h"
#include "context.h"
#include "device/gpu/kernels/prelude/simulator/abi.h"

namespace russet::simulator {

using Threadgroup = russet_simulator::Threadgroup;
using EntryPoint = russet_simulator::EntryPoint;
using Lanes = russet_simulator::Lanes;
using Combine = void (*)(const Lanes&);
constexpr std::uint32_t lanes = russet_simulator::lanes;

class Executor {
 public:
  /// The executor of the calling thread; made when first asked for.
  static Executor& mine();
  /// The same, from a simulated thread. Hooks ask for it at every access, so that it is found by the stack: a variable
  /// of each thread costs a call where a library may be loaded late (dlopen).
  static Executor& running() { return *Stacks::owner_of(__builtin_frame_address(0)); }

  Executor();
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Executes one threadgroup of `entry`. The caller has filled in `call`'s bindings, group and number of threads.
  void run_group(const EntryPoint& entry) { run(entry, false); }
  /// As run_group, for a checked module, which lies at `module`; `serial` is the group's number in the dispatch.
  void run_checked_group(const EntryPoint& entry, std::span<const std::byte> module, std::uint32_t serial);
  Threadgroup& threadgroup() { return threadgroup_; }
  const Threadgroup& threadgroup() const { return threadgroup_; }
  const EntryPoint& entry() const { return *entry_; }
  GroupShadow& shadow() { return shadow_; }

  // What kernels call, from the simulated thread that runs; `site` is the address behind the call.
  void barrier(std::uint32_t spaces, const void* site);
  void simdgroup_barrier(std::uint32_t spaces, const void* site);
  void simdgroup_function(Combine combine, const void* in, void* out, const void* site);
  /// A lane loads or stores a matrix: all lanes do so together, in one order.
  struct MatrixAccess {
    const void* site = nullptr;
    const void* corner = nullptr;
    std::uint64_t elements_per_row = 0;
    bool transpose = false;
    bool operator==(const MatrixAccess&) const = default;
  };
  void matrix_access(const MatrixAccess& access);
  /// In a shuffle, a lane was given a number that names no lane, or that others were not given.
  void report_lane(std::uint32_t lane, std::uint32_t given);
  /// A round of a loop. A threadgroup that takes more than those that come to an end is given up, and so are the next.
  void step(const void* site) {
    if (++steps_ > max_steps) report_endless(site);
  }
  bool is_endless() const { return steps_ > max_steps; }
  /// Gives the threadgroup up. Does not return.
  [[noreturn]] void abandon();

  bool owns_stack(const void* address) const { return stacks_.hold(address); }
  /// Whether the address lies in the module that runs: its constants.
  bool in_module(std::uintptr_t address) const {
    return address - reinterpret_cast<std::uintptr_t>(module_.data()) < module_.size();
  }

 private:
  static constexpr std::uint32_t max_threads = russet_simulator::max_group_threads;
  static constexpr std::size_t stack_bytes = 65536;
  static constexpr std::uint64_t max_steps = 1'000'000'000;
  static constexpr std::uint64_t steps_of_a_switch = 16;  // which takes as long as so many rounds
  static_assert(stack_bytes * max_threads == Stacks::area);

  struct Simdgroup {
    Lanes operands;
    std::uint32_t waiting = 0;  // lanes in a simdgroup function
    const void* site = nullptr;
    Combine combine = nullptr;
    std::vector<MatrixAccess> accesses;           // since lanes were last together
    std::array<std::uint32_t, lanes> accessed{};  // how many of them a lane has made
  };

  void run(const EntryPoint& entry, bool checked);
  static void fiber();
  void reset();
  void start_fiber(Context* from);
  /// Suspends the running thread into `from` and runs another; if none can run, returns to run_group.
  void run_another(Context* from);
  /// Whether the caller is the last lane to come, which has then called `combine`.
  bool wait_in_simdgroup(Combine combine, const void* site);
  void report_stall();
  [[noreturn]] void report_endless(const void* site);
  /// Lanes are together: they have made the same accesses, or a report says who has not.
  void compare_accesses(std::uint32_t simdgroup);
  void forget_accesses(Simdgroup& group);
  void report_divergence(std::string_view what, const void* one, const void* other);
  std::uint32_t simdgroup() const { return threadgroup_.current / lanes; }
  std::uint32_t lane_bit() const { return 1u << (threadgroup_.current % lanes); }

  Threadgroup threadgroup_{};
  const EntryPoint* entry_ = nullptr;
  std::span<const std::byte> module_;
  Stacks stacks_;
  Context main_ = nullptr;
  bool abandoned_ = false;
  bool checked_ = false;
  std::uint64_t steps_ = 0;  // of the threadgroup
  GroupShadow shadow_;
  std::array<Context, max_threads> suspended_{};
  std::array<std::uint32_t, lanes> ready_{};  // by simdgroup: lanes that may run
  std::uint32_t ready_simdgroups_ = 0;
  std::array<std::uint32_t, lanes> at_barrier_{};
  std::uint32_t arrived_ = 0;
  const void* barrier_site_ = nullptr;
  std::array<Simdgroup, lanes> simdgroups_;
  std::vector<std::uint16_t> free_stacks_;
};

}  // namespace russet::simulator
