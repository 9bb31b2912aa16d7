#include "gpu/kernel_bench.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>

#include "base/philox.h"
#include "compile/emit.h"
#include "device/gpu/library.h"
#include "device/gpu/stream.h"
#include "device/gpu/templates/templates.h"
#include "device/reference/target.h"
#include "gpu/epilogues.h"
#include "gpu/mutants_driver.h"
#include "gpu/pool_reference.h"
#include "gpu/prologues.h"
#include "ops/table.h"

namespace russet::gputest {
namespace {

using compile::Operand;
using compile::Primitive;
using test::MutantsDriver;

/// Advises the tile that a case names, and notes those that there were.
class NamedTile final : public gpu::TileAdviser {
 public:
  gpu::Tile advise(const gpu::TileQuestion& question) override {
    candidates.assign(question.candidates.begin(), question.candidates.end());
    return tile;
  }
  gpu::Tile tile;
  std::vector<gpu::Tile> candidates;
};

struct Bench {
  MutantsDriver machine;
  gpu::Library library{machine};
  gpu::Stream stream{machine};
  NamedTile tiles;
  gpu::GpuContext context{library, stream, machine.gpu_properties(), &tiles};
};

Bench& bench() {
  static Bench bench;
  return bench;
}

/// Strides of a layout, offset of element (0, 0, ...), and the elements of the whole allocation.
Operand lay_out(const Array& array, std::int32_t slot, std::int64_t& elements) {
  const int rank = array.sizes.rank();
  Operand operand{{slot, array.dtype, array.margin, -1, contiguous_strides(array.sizes)}, array.sizes};
  Strides& strides = operand.access.strides;
  std::vector<int> order;  // axes from the outermost in memory
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  if (array.layout == Layout::reversed) std::reverse(order.begin(), order.end());
  if (array.layout == Layout::channels_last && rank == 4) order = {0, 2, 3, 1};
  std::int64_t stride = array.layout == Layout::spaced ? 2 : 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[order[static_cast<std::size_t>(i)]] = stride;
    stride *= std::max<std::int64_t>(array.sizes[order[static_cast<std::size_t>(i)]], 1);
    if (array.layout == Layout::spaced) stride += 3;
  }
  elements = stride + 2 * array.margin;
  if (array.layout == Layout::flipped && rank > 0) {
    operand.access.offset += strides[rank - 1] * (std::max<std::int64_t>(array.sizes[rank - 1], 1) - 1);
    strides[rank - 1] = -strides[rank - 1];
  }
  return operand;
}

/// Calls visit(element offset) for every element in row-major order.
template <class Visit>
void for_each(const Operand& operand, Visit&& visit) {
  const std::int64_t count = numel(operand.sizes);
  for (std::int64_t position = 0; position < count; ++position) {
    std::int64_t rest = position;
    std::int64_t at = operand.access.offset;
    for (int axis = operand.sizes.rank() - 1; axis >= 0; --axis) {
      at += rest % operand.sizes[axis] * operand.access.strides[axis];
      rest /= operand.sizes[axis];
    }
    visit(at);
  }
}

std::vector<std::byte> filled(const Operand& operand, const Fill& fill, std::int64_t elements, unsigned seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(operand.access.dtype), std::byte{1});
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> real(fill.low, fill.high);
  std::uniform_int_distribution<std::int64_t> whole(static_cast<std::int64_t>(fill.low),
                                                    static_cast<std::int64_t>(fill.high));
  std::uniform_real_distribution<double> chance(0, 1);
  visit_dtype(operand.access.dtype, [&]<class Element>() {
    for_each(operand, [&](std::int64_t at) {
      const bool integral = fill.whole || !is_floating(operand.access.dtype);
      double value = integral ? static_cast<double>(whole(engine)) : real(engine);
      if (fill.nan_share > 0 && chance(engine) < fill.nan_share) value = std::nan("");
      if (fill.infinity_share > 0 && chance(engine) < fill.infinity_share) value = HUGE_VAL;
      const auto element = convert_element<Element>(value);
      std::memcpy(bytes.data() + at * static_cast<std::int64_t>(sizeof(Element)), &element, sizeof(Element));
    });
  });
  return bytes;
}

std::vector<double> numbers(const Operand& operand, const std::vector<std::byte>& bytes) {
  std::vector<double> values;
  visit_dtype(operand.access.dtype, [&]<class Element>() {
    for_each(operand, [&](std::int64_t at) {
      Element element;
      std::memcpy(&element, bytes.data() + at * static_cast<std::int64_t>(sizeof(Element)), sizeof(Element));
      values.push_back(convert_element<double>(element));
    });
  });
  return values;
}

/// What plus_one makes of the elements, in their memory.
void add_one(const Operand& input, std::vector<std::byte>& bytes) {
  visit_dtype(input.access.dtype, [&]<class Element>() {
    for_each(input, [&](std::int64_t at) {
      Element element;
      std::byte* const place = bytes.data() + at * static_cast<std::int64_t>(sizeof(Element));
      std::memcpy(&element, place, sizeof(Element));
      element = convert_element<Element>(convert_element<double>(element) + 1);
      std::memcpy(place, &element, sizeof(Element));
    });
  });
}

unsigned seed_of(const Array& array, std::size_t place) {
  return array.seed != 0 ? array.seed : static_cast<unsigned>(place) + 1;
}

/// A case as a step over slots with memory of their own: one for each input, then the output, then what the kernel or
/// its epilogue reads or writes besides.
struct Setup {
  Primitive primitive;
  std::vector<std::vector<std::byte>> memory;
  Operand bias, sums;
  std::vector<Operand> stored;  // by prologues
  /// What an epilogue updates: the output and a state. Their old values have the slots behind the memory's.
  std::vector<Operand> updated;
  std::vector<std::vector<double>> old_values;
  std::uint64_t argument = 0;

  explicit Setup(const Case& one) {
    primitive.op = one.op;
    primitive.attributes = one.attributes;
    if (one.stray_indices) std::get<ops::Indexing>(primitive.attributes).checked = true;  // so they say
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      std::int64_t elements = 0;
      primitive.inputs.push_back(lay_out(one.inputs[i], static_cast<std::int32_t>(i), elements));
      memory.push_back(filled(primitive.inputs.back(), one.inputs[i].fill, elements, seed_of(one.inputs[i], i)));
    }
    if (one.in_place) {
      primitive.output = primitive.inputs[0];
      return;
    }
    if (one.op == ops::Op::max_pool && (one.shares_input || !one.companions.empty()))
      primitive.inputs[1] = primitive.inputs[0];
    std::int64_t elements = 0;
    primitive.output = lay_out(one.output, static_cast<std::int32_t>(one.inputs.size()), elements);
    memory.emplace_back(static_cast<std::size_t>(elements) * size_of(one.output.dtype), std::byte{0x7b});
    for (std::size_t i = 0; one.prologues && i < 2; ++i) add_prologue(i, one.storing);
    if (one.casts_image) add_cast(one.inputs[0].margin);
    if (one.column_sums) {
      const Array array{.dtype = one.output.dtype, .sizes = {one.output.sizes.back()}, .margin = one.output.margin};
      sums = lay_out(array, static_cast<std::int32_t>(memory.size()), elements);
      memory.emplace_back(static_cast<std::size_t>(elements) * size_of(one.output.dtype), std::byte{0x7b});
      primitive.epilogue =
          sums_of_columns(primitive, sums, one.of_deviations ? ops::Op::squared_deviations : ops::Op::sum);
    }
    for (const Companion& companion : one.companions) {
      const auto slot = static_cast<std::int32_t>(memory.size());
      primitive.companions.push_back({companion.op, lay_out(companion.output, slot, elements)});
      memory.emplace_back(static_cast<std::size_t>(elements) * size_of(companion.output.dtype), std::byte{0x7b});
    }
    if (one.drawn) draw(*one.drawn);
    if (one.updates) add_update(one);
    if (one.bias_axis < 0) return;
    const Array array{one.output.dtype, {one.output.sizes[one.bias_axis]}, Layout::contiguous, {-2, 2, true}};
    bias = lay_out(array, static_cast<std::int32_t>(memory.size()), elements);
    memory.push_back(filled(bias, array.fill, elements, 9));
    primitive.epilogue = bias_and_relu(primitive, bias, one.bias_axis);
  }

  void add_update(const Case& one) {
    std::int64_t elements = 0;
    const Operand state = lay_out(one.output, static_cast<std::int32_t>(memory.size()), elements);
    memory.emplace_back();
    updated = {primitive.output, state};
    for (const Operand& operand : updated) {
      memory_of(operand) = filled(operand, one.output.fill, elements, 11 + static_cast<unsigned>(operand.access.slot));
      old_values.push_back(numbers(operand, memory_of(operand)));
    }
    const auto next = static_cast<std::int32_t>(memory.size());
    primitive.epilogue = update(primitive, state, next + 1, next);
  }

  /// Planes of numbers that the image's elements are, rounded.
  void add_cast(std::int64_t margin) {
    constexpr float beside = 1 + 1 / 16384.0F;
    const std::vector<double> rounded = numbers(primitive.inputs[0], memory[0]);
    const Array array{.dtype = DType::float32, .sizes = primitive.inputs[0].sizes, .margin = margin};
    std::int64_t elements = 0;
    const Operand planes = lay_out(array, static_cast<std::int32_t>(memory.size()), elements);
    memory.emplace_back(static_cast<std::size_t>(elements) * sizeof(float), std::byte{0x7b});
    std::size_t next = 0;
    for_each(planes, [&](std::int64_t at) {
      const float number = static_cast<float>(rounded[next++]) * beside;
      std::memcpy(memory.back().data() + at * static_cast<std::int64_t>(sizeof(float)), &number, sizeof(number));
    });
    primitive.prologues[0] = cast_of(primitive.inputs[0], planes);
  }

  void add_prologue(std::size_t input, bool storing) {
    std::int32_t slot = -1;
    if (storing) {
      slot = static_cast<std::int32_t>(memory.size());
      stored.push_back(primitive.inputs[input]);
      stored.back().access.slot = slot;
      memory.emplace_back(memory[input].size(), std::byte{0x7b});
    }
    primitive.prologues[input] = plus_one(primitive.inputs[input], slot, Array{}.margin);
  }

  /// The last input holds the random numbers that a kernel which draws them itself finds at `offset`.
  void draw(std::uint64_t offset) {
    constexpr std::uint64_t seed = 77;
    argument = offset;
    std::get<ops::Attention>(primitive.attributes).seed = seed;
    std::uint64_t position = 0;
    for_each(primitive.inputs.back(), [&](std::int64_t at) {
      const float number = base::uniform_at(seed, offset, position++);
      std::memcpy(memory[primitive.inputs.size() - 1].data() + at * 4, &number, sizeof(number));
    });
  }
  void forget_drawn() {
    primitive.inputs.back().access.slot = -1;
    primitive.inputs.back().access.offset_argument = 0;
  }

  std::vector<std::byte>& memory_of(const Operand& operand) {
    return memory[static_cast<std::size_t>(operand.access.slot)];
  }
  std::vector<std::byte>& output() { return memory_of(primitive.output); }

  /// `bytes`: the memory, or a copy.
  std::vector<std::byte*> slots_in(std::span<std::vector<std::byte>> bytes) const {
    std::vector<std::byte*> slots;
    for (auto& piece : bytes) slots.push_back(piece.data());
    for (const Operand& operand : updated) slots.push_back(slots[static_cast<std::size_t>(operand.access.slot)]);
    return slots;
  }
};

/// Notes units and launches, in place of the simulated GPU.
class Recorder final : public test::MachineDriver {
 public:
  explicit Recorder(Recorded& record) : record_(record) {}

  std::vector<std::shared_ptr<const gpu::Pipeline>> build(std::span<const gpu::CompilationUnit> units) override {
    std::vector<std::shared_ptr<const gpu::Pipeline>> pipelines;
    for (const gpu::CompilationUnit& unit : units) {
      for (const gpu::EntryPoint& entry : unit.entry_points) {
        auto pipeline = std::make_shared<Named>();
        pipeline->unit = record_.units.size();
        pipeline->name = entry.name;
        pipelines.push_back(std::move(pipeline));
      }
      record_.units.push_back(unit);
    }
    return pipelines;
  }
  void launch(const gpu::Launch& launch) override {
    const auto& pipeline = static_cast<const Named&>(*launch.pipeline);
    Recorded::Launch note{pipeline.unit, pipeline.name, launch.groups, launch.threads, {}, {}};
    for (const gpu::Binding& buffer : launch.buffers) note.buffers.push_back(find(buffer));
    note.values.assign(launch.parameters.begin(), launch.parameters.end());
    record_.launches.push_back(std::move(note));
  }
  void barrier() override {}
  void synchronize() override {}

 private:
  struct Named final : gpu::Pipeline {
    std::size_t unit = 0;
    std::string name;
  };
  std::pair<std::size_t, std::size_t> find(const gpu::Binding& buffer) const {
    for (std::size_t i = 0; i < record_.memory.size(); ++i) {
      std::byte* const begin = record_.memory[i].data();
      if (std::less_equal<>()(begin, buffer.address) &&
          std::less_equal<>()(buffer.address + buffer.bytes, begin + record_.memory[i].size())) {
        return {i, static_cast<std::size_t>(buffer.address - begin)};
      }
    }
    if (buffer.bytes == 0) return {0, 0};
    throw InternalError("a launch binds memory that the case does not have");
  }
  Recorded& record_;
};

/// Every third index, from the second one on, becomes one of two rows in turn.
void stray(Setup& setup, std::int64_t even, std::int64_t odd) {
  const Operand& index = setup.primitive.inputs.back();
  std::int64_t i = 0;
  for_each(index, [&](std::int64_t at) {
    const std::int64_t row = i % 2 == 0 ? even : odd;
    if (i++ % 3 == 1) std::memcpy(setup.memory_of(index).data() + at * 8, &row, sizeof(row));
  });
}

/// Whether the step is a gradient whose pool stored where its maxima were.
bool knows_positions(const Case& one) {
  return one.op == ops::Op::max_unpool && one.inputs[0].sizes != one.output.sizes;
}

std::vector<double> numbers_of_input(const Setup& setup, std::size_t input) {
  return numbers(setup.primitive.inputs[input], setup.memory[input]);
}

/// The same step by the reference device, floating results in float64. Stray indices name a row more, of zeros.
std::vector<double> expected(const Case& one) {
  Case exact = one;
  exact.in_place = exact.prologues = exact.storing = exact.casts_image = exact.updates = false;
  const std::int64_t rows = one.inputs[0].sizes.empty() ? 0 : one.inputs[0].sizes[0];
  if (one.stray_indices) {
    ++exact.inputs[0].sizes[0];
    if (one.op == ops::Op::put) ++exact.output.sizes[0];
  }
  if (is_floating(exact.output.dtype)) exact.output.dtype = DType::float64;
  Setup setup(exact);
  if (knows_positions(one)) {
    return spread(std::get<ops::Window>(one.attributes), one.output.sizes, one.inputs[1].sizes,
                  numbers_of_input(setup, 0), numbers_of_input(setup, 1));
  }
  if (one.stray_indices) {
    stray(setup, rows, rows);
    Operand last = setup.primitive.inputs[0];
    last.sizes[0] = 1;
    last.access.offset += rows * last.access.strides[0];
    const std::size_t size = size_of(last.access.dtype);
    for_each(last, [&](std::int64_t at) {
      std::memset(setup.memory[0].data() + at * static_cast<std::int64_t>(size), 0, size);
    });
  }
  for (std::size_t i = 0; one.prologues && i < 2; ++i) add_one(setup.primitive.inputs[i], setup.memory[i]);
  setup.primitive.epilogue = {};
  const auto kernel = reference::target().compile(setup.primitive);
  kernel->run({setup.slots_in(setup.memory).data(), &setup.argument, nullptr});
  std::vector<double> result = numbers(setup.primitive.output, setup.output());
  if (one.bias_axis >= 0) {
    const std::vector<double> bias = numbers(setup.bias, setup.memory.back());
    std::int64_t inner = 1;
    for (int axis = one.bias_axis + 1; axis < one.output.sizes.rank(); ++axis) inner *= one.output.sizes[axis];
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) / inner % one.output.sizes[one.bias_axis];
      result[i] = std::max(result[i] + bias[static_cast<std::size_t>(at)], 0.0);
    }
  }
  result.resize(static_cast<std::size_t>(numel(one.output.sizes)));
  return result;
}

/// The case of what the kernel computes along, by its own operator.
Case case_of(const Companion& companion, const Case& one) {
  Case alone = one;
  alone.op = companion.op;
  alone.output = companion.output;
  alone.companions.clear();
  alone.inputs.clear();
  for (const std::size_t input : companion.inputs) {
    alone.inputs.push_back(one.inputs[input]);
    alone.inputs.back().seed = seed_of(one.inputs[input], input);
  }
  if (companion.op == ops::Op::attention_logsumexp) {
    std::get<ops::Attention>(alone.attributes).dropout = 0;
    alone.drawn.reset();
  }
  return alone;
}

/// The largest difference that the case allows.
double bound_of(const std::vector<double>& wanted, const Case& one) {
  double largest = one.scale;
  for (const double value : wanted) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  // An update in 16 bits rounds the result, the state and the output.
  const int roundings = one.updates && size_of(one.output.dtype) == 2 ? 3 : 1;
  return roundings * one.tolerance * largest;
}

std::string difference(const std::vector<double>& actual, const std::vector<double>& wanted, const Case& one) {
  const double bound = bound_of(wanted, one);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same = actual[i] == wanted[i] || (std::isnan(actual[i]) && std::isnan(wanted[i])) ||
                      std::abs(actual[i] - wanted[i]) <= bound;
    if (!same) return fmt::format("element {}: {} instead of {} (bound {})", i, actual[i], wanted[i], bound);
  }
  return "";
}

/// What the output holds at last, of a contraction whose result is `wanted`.
std::vector<double> output_of(const Setup& setup, std::vector<double> wanted) {
  for (std::size_t i = 0; !setup.updated.empty() && i < wanted.size(); ++i) {
    wanted[i] = setup.old_values[0][i] - (setup.old_values[1][i] + wanted[i]);
  }
  return wanted;
}

/// A result of a case besides its output: where it lies, what it should hold, and the case that says by how much it may
/// differ.
struct Besides {
  std::string name;
  Operand operand;
  std::vector<double> wanted;
  Case one;
};

/// `wanted`: of the primitive alone.
std::vector<Besides> results_besides(const Setup& setup, const Case& one, const std::vector<double>& wanted) {
  std::vector<Besides> results;
  if (one.column_sums) {
    const auto columns = static_cast<std::size_t>(one.output.sizes.back());
    std::vector<double> sums(columns, 0.0);
    for (std::size_t i = 0; i < wanted.size(); ++i) sums[i % columns] += wanted[i];
    if (one.of_deviations) {
      const double rows = static_cast<double>(wanted.size()) / static_cast<double>(columns);
      const std::vector<double> totals = std::exchange(sums, std::vector<double>(columns, 0.0));
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        sums[i % columns] += std::pow(wanted[i] - totals[i % columns] / rows, 2);
      }
    }
    results.push_back({"sums", setup.sums, sums, one});
  }
  for (std::size_t i = 0; i < one.companions.size(); ++i) {
    const Case alone = case_of(one.companions[i], one);
    const bool is_pool = one.op == ops::Op::max_pool;
    results.push_back({is_pool ? "positions" : std::string(ops::row(alone.op).name),
                       setup.primitive.companions[i].output,
                       is_pool ? positions_of_maxima(std::get<ops::Window>(one.attributes), one.inputs[0].sizes,
                                                     one.output.sizes, numbers_of_input(Setup(one), 0))
                               : expected(alone),
                       alone});
  }
  if (one.updates) {
    std::vector<double> state = wanted;
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += setup.old_values[1][i];
    results.push_back({"state", setup.updated[1], state, one});
  }
  for (std::size_t i = 0; i < setup.stored.size(); ++i) {
    std::vector<std::byte> bytes = setup.memory[i];
    add_one(setup.stored[i], bytes);
    Case exact;
    exact.tolerance = 0;
    results.push_back({fmt::format("stored factor {}", i), setup.stored[i], numbers(setup.stored[i], bytes), exact});
  }
  return results;
}

/// What lies around a result's elements must stay as it was.
std::string damage(const Operand& operand, const std::vector<std::byte>& bytes, const std::vector<std::byte>& before) {
  const std::size_t size = size_of(operand.access.dtype);
  std::vector<bool> own(before.size(), false);
  for_each(operand, [&](std::int64_t at) {
    for (std::size_t i = 0; i < size; ++i) own[static_cast<std::size_t>(at) * size + i] = true;
  });
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!own[i] && bytes[i] != before[i]) return fmt::format("byte {} beside a result was written", i);
  }
  return "";
}

std::string reports() {
  std::string text;
  for (const simulator::CheckReport& report : simulator::take_reports()) {
    text += fmt::format("[{}: {}: {}] ", report.check, report.kernel, report.message);
    if (text.size() > 1000) break;
  }
  return text;
}

void execute(Setup& setup, const compile::Kernel& kernel) {
  std::vector<std::byte> scratch(kernel.scratch_bytes() + 64);
  simulator::mark_uninitialised(scratch.data(), scratch.size());
  for (auto& bytes : setup.memory) simulator::mark_initialised(bytes.data(), bytes.size());
  const bool in_place = setup.primitive.output.access.slot < static_cast<std::int32_t>(setup.primitive.inputs.size());
  if (!in_place && setup.updated.empty()) {
    simulator::mark_uninitialised(setup.output().data(), setup.output().size());
  }
  std::vector<Operand> others = setup.stored;
  for (const compile::Companion& companion : setup.primitive.companions) others.push_back(companion.output);
  for (const Operand& other : others) {
    auto& bytes = setup.memory_of(other);
    simulator::mark_uninitialised(bytes.data(), bytes.size());
  }
  const std::vector<std::byte*> slots = setup.slots_in(setup.memory);
  kernel.run({slots.data(), &setup.argument, scratch.data()});
  bench().stream.wait();
  simulator::mark_initialised(scratch.data(), scratch.size());
  for (auto& bytes : setup.memory) simulator::mark_initialised(bytes.data(), bytes.size());
}

compile::KernelPtr make_kernel(const Case& one, const Primitive& primitive, std::string& reason) {
  bench().tiles.tile = one.tile;
  bench().tiles.candidates.clear();
  bench().context.properties.has_fragments = one.fragments;
  bench().context.properties.has_warpgroups = bench().context.properties.has_bulk_copies = one.warpgroups;
  const auto list = gpu::implementations(primitive.op);
  const gpu::Verdict verdict = one.by_samples
                                   ? gpu::judge_sample_product(primitive, bench().context)
                                   : compile::choose<const gpu::GpuContext&>(list, primitive, false, bench().context);
  reason = verdict.reason;
  if (!verdict.accepted()) return nullptr;
  compile::KernelPtr kernel = verdict.make();
  gpu::GpuContext context = bench().context;
  context.properties.longest_launch = 1.0 / one.slices;
  dynamic_cast<gpu::GpuKernel&>(*kernel).model(1.0, context);
  return kernel;
}

}  // namespace

std::string name_of(Layout layout) {
  constexpr const char* names[] = {"contiguous", "reversed", "channels_last", "spaced", "flipped"};
  return names[static_cast<int>(layout)];
}

std::vector<Outcome> run(const std::vector<Case>& cases) {
  std::vector<Setup> setups;
  std::vector<compile::KernelPtr> kernels;
  std::vector<Outcome> outcomes;
  std::vector<gpu::FunctionPtr> functions;
  setups.reserve(cases.size());
  for (const Case& one : cases) {
    setups.emplace_back(one);
    if (one.stray_indices) stray(setups.back(), -1, one.inputs[0].sizes[0]);
    if (one.drawn) setups.back().forget_drawn();
    Outcome outcome{one.name, "", "", 0, 0, {}};
    kernels.push_back(make_kernel(one, setups.back().primitive, outcome.complaint));
    if (kernels.back()) {
      outcome.kernel = kernels.back()->name();
      outcome.launches = kernels.back()->launches();
      for (const gpu::Call& call : static_cast<const gpu::GpuKernel&>(*kernels.back()).calls()) {
        functions.push_back(call.function);
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  bench().library.build(functions);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!kernels[i]) continue;
    const std::vector<std::vector<std::byte>> before = setups[i].memory;
    const std::uint64_t barriers = bench().stream.barriers();
    execute(setups[i], *kernels[i]);
    outcomes[i].waits = static_cast<int>(bench().stream.barriers() - barriers);
    std::string& complaint = outcomes[i].complaint;
    complaint = reports();
    const std::vector<double> wanted = expected(cases[i]);
    complaint +=
        difference(numbers(setups[i].primitive.output, setups[i].output()), output_of(setups[i], wanted), cases[i]);
    const Operand& output = setups[i].primitive.output;
    complaint += damage(output, setups[i].output(), before[static_cast<std::size_t>(output.access.slot)]);
    for (const Besides& besides : results_besides(setups[i], cases[i], wanted)) {
      const std::vector<std::byte>& bytes = setups[i].memory_of(besides.operand);
      std::string wrong = difference(numbers(besides.operand, bytes), besides.wanted, besides.one);
      if (wrong.empty()) {
        wrong = damage(besides.operand, bytes, before[static_cast<std::size_t>(besides.operand.access.slot)]);
      }
      if (!wrong.empty()) complaint += fmt::format("{}: {}", besides.name, wrong);
    }
    outcomes[i].bits = setups[i].output();
    if (cases[i].column_sums) {
      const std::vector<std::byte>& sums = setups[i].memory.back();
      outcomes[i].bits.insert(outcomes[i].bits.end(), sums.begin(), sums.end());
    }
  }
  return outcomes;
}

Recorded record(const Case& one) {
  Recorded record;
  Setup setup(one);
  if (one.stray_indices) stray(setup, -1, one.inputs[0].sizes[0]);
  if (one.drawn) setup.forget_drawn();
  Recorder recorder(record);
  std::vector<compile::KernelPtr> kernels;
  kernels.push_back(recorder.target().compile(setup.primitive));
  const std::string fallback = kernels[0]->fallback_reason();
  if (!fallback.empty()) throw InternalError(one.name + ": " + fallback);
  recorder.target().prepare(kernels);
  record.name = one.name;
  record.memory = setup.memory;
  record.memory.emplace_back(kernels[0]->scratch_bytes() + 64);
  const std::vector<std::byte*> slots = setup.slots_in(std::span(record.memory).first(setup.memory.size()));
  kernels[0]->run({slots.data(), &setup.argument, record.memory.back().data()});
  const auto add = [&](const Operand& operand, std::vector<double> wanted, const Case& of) {
    Recorded::Result result{static_cast<std::size_t>(operand.access.slot), operand.access.dtype, {}, std::move(wanted)};
    for_each(operand, [&](std::int64_t at) { result.places.push_back(at); });
    result.bound = bound_of(result.expected, of);
    record.results.push_back(std::move(result));
  };
  const std::vector<double> wanted = expected(one);
  add(setup.primitive.output, output_of(setup, wanted), one);
  for (const Besides& besides : results_besides(setup, one, wanted)) add(besides.operand, besides.wanted, besides.one);
  return record;
}

std::vector<gpu::Tile> tiles_of(const Case& one) {
  Setup setup(one);
  std::string reason;
  Case plain = one;
  plain.tile = {};
  make_kernel(plain, setup.primitive, reason);
  return bench().tiles.candidates;
}

std::vector<std::byte> result_bits(const Case& one) {
  Setup setup(one);
  std::string reason;
  const auto kernel = make_kernel(one, setup.primitive, reason);
  if (!kernel) throw InternalError(one.name + ": " + reason);
  execute(setup, *kernel);
  reports();
  std::vector<std::byte> bits = setup.output();
  if (one.column_sums) bits.insert(bits.end(), setup.memory.back().begin(), setup.memory.back().end());
  return bits;
}

}  // namespace russet::gputest
