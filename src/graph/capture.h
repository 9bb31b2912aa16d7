#pragma once
// Capture: the work that a function recorded, kept so that it runs again without being recorded.
#include <russet/tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/function_ref.h"
#include "graph/executor.h"
#include "graph/geometry.h"
#include "graph/index_check.h"
#include "graph/tensor_state.h"

namespace russet::graph {

/// A function's work, with where its leaves come from and where its outputs go. One thread at a time uses it.
class CapturedWork {
 public:
  /// What the host does in each call, before anything is written, and once all that is written is pending.
  struct Effect {
    std::function<void()> before;
    std::function<void()> after;
  };

  /// Whether the other one is the same work on the same tensors, with the same numbers.
  bool agrees_with(const CapturedWork& other) const;
  Device device() const { return work_.device; }
  /// The captured call began at `offset` and drew `count` times; other runs begin elsewhere. False if its random
  /// operators took other offsets.
  bool note_draws(std::uint64_t offset, std::uint64_t count);
  /// Runs it on what its tensors hold now; `draw` gives the first of its random offsets. The calling thread has nothing
  /// pending. Nothing, and nothing has happened, if something is not as it was when it was captured. Throws why it
  /// failed; what was not written then is as after a flush that failed.
  std::optional<std::vector<Tensor>> run(std::span<const Tensor> inputs, base::FunctionRef<std::uint64_t()> draw);

 private:
  friend class Capture;
  /// A place where a leaf is found.
  struct Source {
    std::int32_t input = -1;  // of the function; else it is the cell's value
    Ref<Cell> cell{};
    bool operator==(const Source&) const = default;
  };
  struct Leaf {
    std::size_t position = 0;  // among the work's nodes
    std::vector<Source> sources;
  };
  struct Output {
    std::size_t position = 0;
    NodeInfo info;
    std::vector<Ref<Cell>> cells;  // that hold it afterwards
  };
  /// What the function returns: a new tensor, or one that somebody else holds, too, whose cell is written.
  struct Result {
    std::size_t output = 0;
    Geometry geometry;
    Ref<TensorState> held{};
  };
  /// A leaf whose elements lay within bounds when the host looked at them.
  struct Bounded {
    std::size_t leaf = 0;  // position
    ElementRange range;
  };
  /// A cell that the function reads or writes, and how often this holds it: if nobody else does, the program has
  /// another tensor in its place by now.
  struct HeldCell {
    const Cell* cell;
    std::uint32_t references;
    const TensorState* tensor;  // among the results; nullptr if none
    bool is_gone() const {
      const bool holds_tensor_alone = tensor != nullptr && tensor->reference_count() == 1;
      return cell->reference_count() <= references + (holds_tensor_alone ? 1 : 0);
    }
  };
  struct RandomNode {
    std::size_t position = 0;
    std::uint64_t offset = 0;
    bool operator==(const RandomNode&) const = default;
  };

  /// A number that is asked for in each run.
  struct LiveNumber {
    std::size_t position = 0;
    DType dtype = DType::float32;
    std::function<double()> value;
    std::uint64_t argument = 0;  // of this run
  };

  bool bind(const Leaf& leaf, std::span<const Tensor> inputs);
  bool is_as_before(std::span<const Tensor> inputs);
  void put_arguments(std::uint64_t random_offset);
  bool holds(const Bounded& bounded) const;
  static bool can_write(const Output& output);
  void begin(Output& output);
  void count_held_cells();
  void let_go();
  std::vector<Tensor> results() const;

  Work work_;
  /// Of work_, and without inputs. Those of leaves and outputs are each run's own, and empty in between.
  std::vector<NodeRef> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<Output> outputs_;
  std::vector<Result> results_;
  std::vector<RandomNode> random_nodes_;
  std::vector<LiveNumber> live_numbers_;
  std::vector<Effect> effects_;
  std::vector<Bounded> bounded_;
  std::vector<HeldCell> held_cells_;
  Outcome outcome_;
};

/// While one lives, the calling thread's recording is watched. What the function reads in memory has to be in a tensor
/// that lives on, or among its inputs.
class Capture {
 public:
  /// The thread has nothing pending.
  explicit Capture(std::span<const Tensor> inputs);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// That of the calling thread; nullptr if there is none.
  static Capture* current();
  /// What is recorded cannot run again by itself. The first reason stays.
  void decline(std::string reason);
  const std::string& why_declined() const { return why_declined_; }

  /// A cell is made.
  void note_new(const Cell& cell) { new_cells_.insert(&cell); }
  /// A cell, perhaps a new one, becomes a gradient, as later calls would have it.
  void note_gradient(const Cell& cell) { gradients_.insert(&cell); }
  /// A cell's value is read.
  void note_read(const Ref<Cell>& cell);
  /// The elements of a value in memory were looked at: they lie within bounds.
  void note_range(const ElementRange& range, const Node& value);
  /// `node`: a scalar.
  void note_number(const NodeRef& node, std::function<double()> value);
  void note_effect(CapturedWork::Effect effect);
  /// A flush begins.
  void note_flush();
  /// What a flush computes, before it does. `cells`: those that wait for values of this thread.
  void note_work(const Work& work, std::span<Cell* const> cells);

  /// Computes what was recorded. nullptr if it was declined.
  std::unique_ptr<CapturedWork> finish(std::span<const Tensor> results);

 private:
  using Source = CapturedWork::Source;
  std::vector<Source> sources_of(const Node& value, std::span<Cell* const> cells) const;
  void add_leaf(const Node& leaf, std::span<Cell* const> cells);
  void add_output(std::size_t position, const Node& node, std::span<Cell* const> cells);
  void add_node(const WorkNode& node);
  void add_results();
  void check_new_cells();
  void add_ranges(const Work& work);

  std::span<const Tensor> inputs_;
  std::span<const Tensor> returned_;
  std::uint64_t begin_;  // nodes recorded since then have larger numbers
  bool finishing_ = false;
  std::string why_declined_;
  std::unordered_set<const Cell*> new_cells_;
  std::unordered_set<const Cell*> gradients_;
  std::unordered_map<const Cell*, Ref<Cell>> cells_;  // that were read
  std::unordered_map<const Node*, std::vector<const Cell*>> reads_;
  std::vector<std::pair<const Node*, ElementRange>> ranges_;
  std::unordered_map<const Node*, std::function<double()>> numbers_;
  std::vector<NodeRef> number_nodes_;  // none takes the place of another
  std::vector<CapturedWork::Effect> effects_;
  std::unique_ptr<CapturedWork> captured_;
};

/// How many there are, in all threads: where a read is to be noted, this is looked at first.
inline std::atomic<int> captures_under_way{0};

/// Changes with every setting that recordings depend on and that no tensor holds.
inline std::atomic<std::uint64_t> settings_version{0};
inline void note_changed_setting() { settings_version.fetch_add(1, std::memory_order_relaxed); }

}  // namespace russet::graph
