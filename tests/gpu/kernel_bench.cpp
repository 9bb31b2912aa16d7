#include "gpu/kernel_bench.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "device/gpu/library.h"
#include "device/gpu/stream.h"
#include "device/reference/target.h"
#include "gpu/machine_driver.h"
#include "ops/table.h"

namespace russet::gputest {
namespace {

using compile::Operand;
using compile::Primitive;

struct Bench {
  test::MachineDriver machine;
  gpu::Library library{machine};
  gpu::Stream stream{machine};
  gpu::Context context{library, stream, machine.gpu_properties()};
};

Bench& bench() {
  static Bench bench;
  return bench;
}

constexpr std::int64_t margin = 5;  // elements before and after those of an operand

/// Strides of a layout, offset of element (0, 0, ...), and the elements of the whole allocation.
Operand lay_out(const Array& array, std::int32_t slot, std::int64_t& elements) {
  const int rank = array.sizes.rank();
  Operand operand{{slot, array.dtype, margin, -1, contiguous_strides(array.sizes)}, array.sizes};
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
  elements = stride + 2 * margin;
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

/// A case as a step over slots with memory of their own: one for each input, then the output.
struct Setup {
  Primitive primitive;
  std::vector<std::vector<std::byte>> memory;

  explicit Setup(const Case& one) {
    primitive.op = one.op;
    primitive.attributes = one.attributes;
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      std::int64_t elements = 0;
      primitive.inputs.push_back(lay_out(one.inputs[i], static_cast<std::int32_t>(i), elements));
      memory.push_back(filled(primitive.inputs.back(), one.inputs[i].fill, elements, static_cast<unsigned>(i) + 1));
    }
    if (one.in_place) {
      primitive.output = primitive.inputs[0];
      return;
    }
    std::int64_t elements = 0;
    primitive.output = lay_out(one.output, static_cast<std::int32_t>(one.inputs.size()), elements);
    memory.emplace_back(static_cast<std::size_t>(elements) * size_of(one.output.dtype), std::byte{0x7b});
  }

  std::vector<std::byte>& output() { return memory[static_cast<std::size_t>(primitive.output.access.slot)]; }

  compile::Bindings bindings(std::vector<std::byte*>& slots, std::vector<std::byte>& scratch) {
    for (auto& bytes : memory) slots.push_back(bytes.data());
    return {slots.data(), nullptr, scratch.data()};
  }
};

/// The same step by the reference device, floating results in float64.
std::vector<double> expected(const Case& one) {
  Case exact = one;
  exact.in_place = false;
  if (is_floating(exact.output.dtype)) exact.output.dtype = DType::float64;
  Setup setup(exact);
  const auto kernel = reference::target().compile(setup.primitive);
  std::vector<std::byte*> slots;
  std::vector<std::byte> scratch;
  kernel->run(setup.bindings(slots, scratch));
  return numbers(setup.primitive.output, setup.output());
}

std::string difference(const std::vector<double>& actual, const std::vector<double>& wanted, const Case& one) {
  double largest = one.scale;
  for (const double value : wanted) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same = actual[i] == wanted[i] || (std::isnan(actual[i]) && std::isnan(wanted[i])) ||
                      std::abs(actual[i] - wanted[i]) <= one.tolerance * largest;
    if (!same) return fmt::format("element {}: {} instead of {} (largest {})", i, actual[i], wanted[i], largest);
  }
  return "";
}

/// What lies around the output's elements must stay as it was.
std::string damage(Setup& setup, const std::vector<std::byte>& before) {
  const std::size_t size = size_of(setup.primitive.output.access.dtype);
  std::vector<bool> own(before.size(), false);
  for_each(setup.primitive.output, [&](std::int64_t at) {
    for (std::size_t i = 0; i < size; ++i) own[static_cast<std::size_t>(at) * size + i] = true;
  });
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!own[i] && setup.output()[i] != before[i]) return fmt::format("byte {} beside the output was written", i);
  }
  return "";
}

std::string reports() {
  std::string text;
  for (const simulator::Report& report : simulator::take_reports()) {
    text += fmt::format("[{}: {}: {}] ", report.check, report.kernel, report.message);
    if (text.size() > 1000) break;
  }
  return text;
}

void execute(Setup& setup, const compile::Kernel& kernel) {
  std::vector<std::byte> scratch(kernel.scratch_bytes() + 64);
  simulator::mark_uninitialised(scratch.data(), scratch.size());
  for (auto& bytes : setup.memory) simulator::mark_initialised(bytes.data(), bytes.size());
  if (setup.primitive.output.access.slot == static_cast<std::int32_t>(setup.primitive.inputs.size())) {
    simulator::mark_uninitialised(setup.output().data(), setup.output().size());
  }
  std::vector<std::byte*> slots;
  kernel.run(setup.bindings(slots, scratch));
  bench().stream.wait();
  simulator::mark_initialised(scratch.data(), scratch.size());
  for (auto& bytes : setup.memory) simulator::mark_initialised(bytes.data(), bytes.size());
}

compile::KernelPtr make_kernel(const Primitive& primitive, std::string& reason) {
  const auto list = gpu::implementations(primitive.op);
  const gpu::Verdict verdict = compile::choose<const gpu::Context&>(list, primitive, false, bench().context);
  reason = verdict.reason;
  return verdict.accepted() ? verdict.make() : nullptr;
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
    Outcome outcome{one.name, "", ""};
    kernels.push_back(make_kernel(setups.back().primitive, outcome.complaint));
    if (kernels.back()) {
      outcome.kernel = kernels.back()->name();
      for (const gpu::Call& call : static_cast<const gpu::GpuKernel&>(*kernels.back()).calls()) {
        functions.push_back(call.function);
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  bench().library.build(functions);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!kernels[i]) continue;
    const std::vector<std::byte> before = setups[i].output();
    execute(setups[i], *kernels[i]);
    std::string& complaint = outcomes[i].complaint;
    complaint = reports();
    complaint += difference(numbers(setups[i].primitive.output, setups[i].output()), expected(cases[i]), cases[i]);
    complaint += damage(setups[i], before);
  }
  return outcomes;
}

std::vector<std::byte> result_bits(const Case& one) {
  Setup setup(one);
  std::string reason;
  const auto kernel = make_kernel(setup.primitive, reason);
  if (!kernel) throw InternalError(one.name + ": " + reason);
  execute(setup, *kernel);
  reports();
  return setup.output();
}

}  // namespace russet::gputest
