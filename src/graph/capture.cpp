#include "graph/capture.h"

#include <russet/error.h>

#include <algorithm>
#include <map>
#include <utility>

#include "graph/closure.h"
#include "graph/recorder.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

bool is_random(const Node& node) { return ops::row(node.op).family == ops::Family::random; }

bool does_the_same(const WorkNode& one, const WorkNode& other) {
  return static_cast<const NodeRole&>(one) == other && one.output == other.output &&
         one.operation() == other.operation();
}

}  // namespace

Capture::Capture(std::span<const Tensor> inputs) : inputs_(inputs), begin_(next_node()) {
  Recorder::current().capture_ = this;
  captures_under_way.fetch_add(1, std::memory_order_relaxed);
}

Capture::~Capture() {
  captures_under_way.fetch_sub(1, std::memory_order_relaxed);
  Recorder::current().capture_ = nullptr;
}

Capture* Capture::current() {
  return captures_under_way.load(std::memory_order_relaxed) == 0 ? nullptr : Recorder::current().capture_;
}

void Capture::decline(std::string reason) {
  if (why_declined_.empty()) why_declined_ = std::move(reason);
}

void Capture::note_read(const Ref<Cell>& cell) {
  const Node& value = *cell->value();
  if (!value.materialised()) return;
  cells_.emplace(cell.get(), cell);
  std::vector<const Cell*>& cells = reads_[&value];
  if (std::ranges::find(cells, cell.get()) == cells.end()) cells.push_back(cell.get());
}

void Capture::note_range(const ElementRange& range, const Node& value) { ranges_.emplace_back(&value, range); }

void Capture::note_number(const NodeRef& node, std::function<double()> value) {
  numbers_.emplace(node.get(), std::move(value));
  number_nodes_.push_back(node);
}

void Capture::note_effect(CapturedWork::Effect effect) { effects_.push_back(std::move(effect)); }

void Capture::note_flush() {
  if (!finishing_) decline("it reads a value, or computes what it recorded, before it ends");
}

/// Inputs, and cells that live on, whose value was this one when the function began.
std::vector<Capture::Source> Capture::sources_of(const Node& value, std::span<Cell* const> cells) const {
  std::vector<Source> sources;
  const auto add = [&](Cell& cell) {
    if (cell.value().get() != &value && cell.before_.value.get() != &value) return;
    bool is_input = false;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].state()->cell.get() != &cell) continue;
      sources.push_back({.input = static_cast<std::int32_t>(i)});
      is_input = true;
    }
    const auto is_there = [&](const Source& source) { return source.cell.get() == &cell; };
    if (!is_input && std::ranges::none_of(sources, is_there)) sources.push_back({.cell = Ref<Cell>(&cell)});
  };
  if (const auto read = reads_.find(&value); read != reads_.end()) {
    for (const Cell* cell : read->second) {
      if (const auto alive = cells_.find(cell); alive != cells_.end()) add(*alive->second);
    }
  }
  for (Cell* cell : cells) {
    if (cell) add(*cell);
  }
  return sources;
}

void Capture::add_leaf(const Node& leaf, std::span<Cell* const> cells) {
  std::vector<Source> sources = sources_of(leaf, cells);
  if (leaf.sequence() >= begin_) return decline("it brings values from the host, or makes a tensor's first memory");
  if (sources.empty()) return decline("it reads a tensor that is gone when it ends");
  captured_->leaves_.push_back({captured_->nodes_.size(), std::move(sources)});
}

void Capture::add_output(std::size_t position, const Node& node, std::span<Cell* const> cells) {
  CapturedWork::Output output{position, node, {}};
  for (Cell* cell : cells) {
    if (!cell || cell->value().get() != &node) continue;
    for (const Tensor& input : inputs_) {
      if (input.state()->cell.get() == cell) return decline("it writes to one of its inputs");
    }
    output.cells.emplace_back(cell);
  }
  if (output.cells.empty()) return decline("it computes what is kept for a gradient");
  captured_->outputs_.push_back(std::move(output));
}

void Capture::add_node(const WorkNode& node) {
  const Node& recorded = *node.recorded;
  auto own = make_ref<Node>(static_cast<const NodeInfo&>(recorded), NodeRefs{});
  if (node.leaf) {
    own->argument = 0;
  } else if (is_random(recorded)) {
    captured_->random_nodes_.push_back({captured_->nodes_.size(), recorded.argument});
    own->argument = 0;
  }
  if (const auto number = numbers_.find(&recorded); number != numbers_.end()) {
    captured_->live_numbers_.push_back({captured_->nodes_.size(), recorded.dtype, number->second});
    own->argument = 0;
  }
  WorkNode kept = node;
  kept.recorded = own.get();
  captured_->work_.nodes.push_back(kept);
  captured_->nodes_.push_back(std::move(own));
}

void Capture::note_work(const Work& work, std::span<Cell* const> cells) {
  if (!why_declined_.empty()) return;
  if (captured_) return decline("it computes on several devices, or in several parts");
  captured_ = std::make_unique<CapturedWork>();
  captured_->work_.device = work.device;
  captured_->work_.further_inputs = work.further_inputs;
  for (std::size_t i = 0; i < work.nodes.size() && why_declined_.empty(); ++i) {
    const WorkNode& node = work.nodes[i];
    if (node.leaf) add_leaf(*node.recorded, cells);
    if (node.output) add_output(i, *node.recorded, cells);
    add_node(node);
  }
  if (why_declined_.empty()) add_ranges(work);
  if (why_declined_.empty()) add_results();
  if (why_declined_.empty()) check_new_cells();
}

/// Recorded calls would leave a tensor each, and what runs again has but one. Gradients are looked up where they are.
void Capture::check_new_cells() {
  for (const CapturedWork::Output& output : captured_->outputs_) {
    for (const Ref<Cell>& cell : output.cells) {
      if (gradients_.contains(cell.get())) {
        cell->mark_captured_gradient();
      } else if (new_cells_.contains(cell.get())) {
        return decline("it leaves a new tensor behind, which it should return alone");
      }
    }
  }
}

void Capture::add_ranges(const Work& work) {
  for (const auto& [value, range] : ranges_) {
    const auto is_value = [&, node = value](const WorkNode& one) { return one.leaf && one.recorded == node; };
    const auto found = std::ranges::find_if(work.nodes, is_value);
    if (found == work.nodes.end()) return decline("the host looks at a value that the work does not read");
    captured_->bounded_.push_back({static_cast<std::size_t>(found - work.nodes.begin()), range});
  }
}

void Capture::add_results() {
  for (const Tensor& tensor : returned_) {
    const Ref<TensorState>& state = tensor.state();
    CapturedWork::Result result{0, state->geometry, {}};
    const auto holds = [&](const CapturedWork::Output& output) {
      return std::ranges::find(output.cells, state->cell) != output.cells.end();
    };
    const auto found = std::ranges::find_if(captured_->outputs_, holds);
    if (found == captured_->outputs_.end()) return decline("it returns a tensor that it does not compute");
    result.output = static_cast<std::size_t>(found - captured_->outputs_.begin());
    // The captured output holds the cell, too.
    if (state->reference_count() == 1 && state->cell->reference_count() == 2) {
      std::erase(found->cells, state->cell);
    } else {
      result.held = state;
    }
    captured_->results_.push_back(std::move(result));
  }
}

std::unique_ptr<CapturedWork> Capture::finish(std::span<const Tensor> results) {
  // What is gone but for this would keep its memory from being overwritten.
  std::erase_if(cells_, [](const auto& entry) { return entry.second->reference_count() == 1; });
  returned_ = results;
  finishing_ = true;
  Recorder& recorder = Recorder::current();
  recorder.compute();
  recorder.tell();
  if (!captured_) decline("it computes nothing");
  if (!why_declined_.empty()) return nullptr;
  captured_->count_held_cells();
  captured_->effects_ = std::move(effects_);
  return std::move(captured_);
}

bool CapturedWork::agrees_with(const CapturedWork& other) const {
  const auto same_numbers = [](const NodeRef& one, const NodeRef& two) { return one->argument == two->argument; };
  const auto same_sources = [](const Leaf& one, const Leaf& two) { return one.sources == two.sources; };
  const auto same_result = [](const Result& one, const Result& two) {
    return one.output == two.output && one.geometry == two.geometry && !one.held == !two.held;
  };
  return work_.device == other.work_.device && work_.further_inputs == other.work_.further_inputs &&
         std::ranges::equal(work_.nodes, other.work_.nodes, does_the_same) &&
         std::ranges::equal(nodes_, other.nodes_, same_numbers) && random_nodes_ == other.random_nodes_ &&
         std::ranges::equal(live_numbers_, other.live_numbers_, {}, &LiveNumber::position, &LiveNumber::position) &&
         std::ranges::equal(leaves_, other.leaves_, same_sources) &&
         std::ranges::equal(results_, other.results_, same_result);
}

void CapturedWork::count_held_cells() {
  std::map<const Cell*, std::uint32_t> references;
  for (const Leaf& leaf : leaves_) {
    for (const Source& source : leaf.sources) {
      if (source.cell) ++references[source.cell.get()];
    }
  }
  for (const Output& output : outputs_) {
    for (const Ref<Cell>& cell : output.cells) ++references[cell.get()];
  }
  for (const auto& [cell, count] : references) {
    const auto is_of = [&, of = cell](const Result& result) { return result.held && result.held->cell.get() == of; };
    const auto result = std::ranges::find_if(results_, is_of);
    held_cells_.push_back({cell, count, result == results_.end() ? nullptr : result->held.get()});
  }
}

bool CapturedWork::note_draws(std::uint64_t offset, std::uint64_t count) {
  for (RandomNode& random : random_nodes_) random.offset -= offset;
  return std::ranges::all_of(random_nodes_, [&](const RandomNode& random) { return random.offset < count; });
}

bool CapturedWork::bind(const Leaf& leaf, std::span<const Tensor> inputs) {
  WorkNode& node = work_.nodes[leaf.position];
  NodeRef found;
  for (const Source& source : leaf.sources) {
    const Ref<Cell>& cell =
        source.input < 0 ? source.cell : inputs[static_cast<std::size_t>(source.input)].state()->cell;
    NodeRef value = cell->value();
    if (!value || !value->materialised() || (found && value != found)) return false;
    found = std::move(value);
  }
  const Buffer& memory = *found->buffer();
  const std::uint32_t holders = 2;  // its cell and `found`
  const bool donatable = found->reference_count() == holders && !memory.shared();
  // What is visible outside may change as soon as the caller has control again: whoever records a read waits for it.
  if (memory.pinned() || (node.donatable && !donatable)) return false;
  node.recorded = found.get();
  nodes_[leaf.position] = std::move(found);
  return true;
}

/// Where the elements do not, recording says so.
bool CapturedWork::holds(const Bounded& bounded) const {
  const Node& value = *nodes_[bounded.leaf];
  const std::shared_ptr<const std::byte> memory = executor_of(value.device).peek(*value.buffer(), byte_size(value));
  const auto& [geometry, low, high, except] = bounded.range;
  return memory && !find_stray(memory.get(), value.dtype, geometry, low, high, except);
}

/// Memory that is visible outside is written by who records the write, and another thread may be about to write.
bool CapturedWork::can_write(const Output& output) {
  return std::ranges::all_of(output.cells, [](const Ref<Cell>& cell) {
    const Node& before = *cell->value();
    return before.materialised() && !before.buffer()->pinned();
  });
}

/// The values of the run's outputs, which whoever reads them waits for.
void CapturedWork::begin(Output& output) {
  NodeRef& own = nodes_[output.position];
  own = make_ref<Node>(output.info, NodeRefs{});
  work_.nodes[output.position].recorded = own.get();
  {
    const std::lock_guard lock(graph_mutex());
    own->set_computing(true);
  }
  for (const Ref<Cell>& cell : output.cells) cell->write(own);
}

bool CapturedWork::is_as_before(std::span<const Tensor> inputs) {
  return std::ranges::none_of(held_cells_, [](const HeldCell& held) { return held.is_gone(); }) &&
         std::ranges::all_of(leaves_, [&](const Leaf& leaf) { return bind(leaf, inputs); }) &&
         std::ranges::all_of(bounded_, [&](const Bounded& one) { return holds(one); }) &&
         std::ranges::all_of(outputs_, [](const Output& output) { return can_write(output); });
}

/// Run-time arguments, once there are nodes for the outputs.
void CapturedWork::put_arguments(std::uint64_t random_offset) {
  for (const RandomNode& random : random_nodes_) nodes_[random.position]->argument = random_offset + random.offset;
  for (const LiveNumber& number : live_numbers_) nodes_[number.position]->argument = number.argument;
}

std::optional<std::vector<Tensor>> CapturedWork::run(std::span<const Tensor> inputs,
                                                     base::FunctionRef<std::uint64_t()> draw) {
  struct LettingGo {
    CapturedWork& work;
    ~LettingGo() { work.let_go(); }
  };
  const LettingGo at_the_end{*this};
  if (!is_as_before(inputs)) return std::nullopt;
  // What may throw comes first: whoever reads an output that has begun waits for it.
  for (const Effect& effect : effects_) effect.before();
  for (LiveNumber& number : live_numbers_) {
    number.argument = scalar_argument(number.value(), number.dtype);
  }
  const std::uint64_t random_offset = draw();
  for (Output& output : outputs_) begin(output);
  put_arguments(random_offset);
  for (const Effect& effect : effects_) effect.after();
  Recorder::current().compute_again(work_, nodes_, outcome_);
  return results();
}

void CapturedWork::let_go() {
  for (const Leaf& leaf : leaves_) nodes_[leaf.position].reset();
  for (const Output& output : outputs_) nodes_[output.position].reset();
}

std::vector<Tensor> CapturedWork::results() const {
  std::vector<Tensor> tensors;
  for (const Result& result : results_) {
    if (result.held) {
      tensors.emplace_back(result.held);
    } else {
      tensors.push_back(wrap(nodes_[outputs_[result.output].position], result.geometry));
    }
  }
  return tensors;
}

}  // namespace russet::graph
