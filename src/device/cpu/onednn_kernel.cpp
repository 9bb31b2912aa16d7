#include "device/cpu/onednn_kernel.h"

#include <fmt/format.h>

#include "base/parallel.h"

namespace russet::cpu::onednn {

Location Kernel::reserve(const Desc& desc) {
  constexpr std::size_t page = 4096;
  const Location location{{}, bytes_};
  bytes_ = (bytes_ + desc.get_size() + page - 1) / page * page;
  return location;
}

void Kernel::add(dnnl::primitive primitive, std::vector<Argument> arguments, const Desc& scratchpad) {
  if (scratchpad.get_size() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, reserve(scratchpad)});
  Execution execution{std::move(primitive), {}, {}};
  for (const Argument& argument : arguments) {
    execution.bound.push_back({dnnl::memory(argument.desc, engine(), DNNL_MEMORY_NONE), argument.location});
    execution.arguments.push_back({argument.id, execution.bound.back().memory.get()});
  }
  executions_.push_back(std::move(execution));
}

void Kernel::add_reorder(const Desc& from, const Location& source, const Desc& to, const Location& target) {
  const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, attributes());
  add(dnnl::reorder(description), {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}},
      description.scratchpad_desc());
}

void Kernel::run(const compile::Bindings& bindings) const {
  base::thread_count();
  for (const Execution& execution : executions_) {
    for (const Bound& bound : execution.bound) {
      std::byte* const at = bound.location.access.slot >= 0 ? address(bound.location.access, bindings)
                                                            : bindings.scratch + bound.location.scratch_offset;
      if (at == bound.address) continue;
      bound.memory.set_data_handle(at);
      bound.address = at;
    }
    const auto status =
        dnnl_primitive_execute(execution.primitive.get(), stream().get(), static_cast<int>(execution.arguments.size()),
                               execution.arguments.data());
    if (status != dnnl_success) {
      throw InternalError(fmt::format("{}: oneDNN's status is {}", name_, static_cast<int>(status)));
    }
  }
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == DType::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace russet::cpu::onednn
