// Gradient sums: the kernel that computes the three gradients of an attention also adds up their columns, over the rows
// of each matrix, so that the gradients of biases need not read them. Before:   After:
//   attention gradients: store q, k, v of [n, h, l, e]      attention gradients: ..., and their sums, of [n, h, 1, e]
//   column group: load q as [n l, h e]; store its sum       column group: load q's sums as [n, h e]; store their sum
#include <algorithm>
#include <array>
#include <optional>

#include "compile/layouts.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

constexpr int gradients = 3;

/// A column group that adds up what one access loads, and does nothing else with it.
bool adds_up(const Group& group) {
  if (group.kind != Group::Kind::column || group.space.rank() != 2 || group.split != 1 || group.code.size() < 2) {
    return false;
  }
  const Instruction& load = group.code[0];
  const Instruction& sum = group.code[1];
  const bool is_sum = load.kind == Instruction::Kind::load && load.extent == Extent::full &&
                      sum.kind == Instruction::Kind::reduce && sum.op == Op::sum && sum.inputs[0] == 0 &&
                      sum.dtype == load.dtype && size_of(load.dtype) < size_of(DType::float32);
  return is_sum && std::all_of(group.code.begin() + 2, group.code.end(), [&](const Instruction& in) {
           const bool reads_memory = in.kind == Instruction::Kind::load || in.kind == Instruction::Kind::store;
           return in.extent == Extent::reduced && in.inputs[0] != 0 && in.inputs[1] != 0 && in.inputs[2] != 0 &&
                  !(reads_memory && in.access == load.access);
         });
}

const Access& loaded_by(const Group& group) { return group.accesses[static_cast<std::size_t>(group.code[0].access)]; }

/// The column of what the group loads where the gradient of [n, h, l, e] begins, if it is h e of its columns.
std::optional<std::int64_t> column_of(const Group& group, const Operand& gradient) {
  const Access& whole = loaded_by(group);
  const Access& part = gradient.access;
  const Shape& sizes = gradient.sizes;
  if (sizes.rank() != 4 || whole.strides[1] != 1 || whole.slot != part.slot) return {};
  if (whole.offset_argument >= 0 || part.offset_argument >= 0) return {};
  const std::int64_t line = whole.strides[0];
  const std::int64_t column = part.offset - whole.offset;
  const bool is_inside = column >= 0 && column + sizes[1] * sizes[3] <= group.space[1] &&
                         group.space[0] == sizes[0] * sizes[2] &&
                         has_strides(gradient, {sizes[2] * line, sizes[3], line, 1});
  return is_inside ? std::optional(column) : std::nullopt;
}

/// The group, of sums that lie one after the other, of so many matrices.
Group of_sums(const Group& group, std::int32_t slot, std::int64_t matrices) {
  Group sums = group;
  sums.space[0] = matrices;
  Access& access = sums.accesses[static_cast<std::size_t>(sums.code[0].access)];
  access = {slot, DType::float32, 0, -1, {sums.space[1], 1}};
  sums.code[0].dtype = DType::float32;
  sums.code[1].dtype = DType::float32;
  Instruction rounded;
  rounded.op = Op::cast;
  rounded.dtype = group.code[1].dtype;
  rounded.extent = Extent::reduced;
  rounded.inputs[0] = 1;
  for (auto in = sums.code.begin() + 2; in != sums.code.end(); ++in) {
    for (std::int16_t& input : in->inputs) input = static_cast<std::int16_t>(input < 1 ? input : input + 1);
  }
  sums.code.insert(sums.code.begin() + 2, rounded);
  return sums;
}

class GradientSums {
 public:
  GradientSums(Program& program, const Target& target) : program_(program), target_(target) {}

  void run() {
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      const auto* const gradient = std::get_if<Primitive>(&program_.steps[step]);
      if (gradient != nullptr && gradient->op == Op::attention_key_gradient && gradient->companions.size() == 2) {
        add_up(step);
      }
    }
  }

 private:
  /// Where one of the gradients is added up.
  struct Sum {
    std::size_t group;  // a step
    std::int64_t column;
  };

  void add_up(std::size_t step) {
    Primitive with_sums = std::get<Primitive>(program_.steps[step]);
    const std::array<Companion, gradients> all{Companion{with_sums.op, with_sums.output}, with_sums.companions[0],
                                               with_sums.companions[1]};
    const std::optional<std::array<Sum, gradients>> sums = sums_of(all, step);
    if (!sums) return;
    for (std::size_t i = 0; i < gradients; ++i) {
      const auto& [group, column] = (*sums)[i];
      const Shape& sizes = all[i].output.sizes;
      const std::int64_t columns = std::get<Group>(program_.steps[group]).space[1];
      const Access access{-1, DType::float32, column, -1, {columns, sizes[3], columns, 1}};
      with_sums.companions.push_back({all[i].op, {access, {sizes[0], sizes[1], 1, sizes[3]}}, true});
    }
    if (!target_.has_kernel(with_sums)) return;
    for (std::size_t i = 0; i < gradients; ++i) {
      std::int32_t& slot = with_sums.companions[2 + i].output.access.slot;
      slot = slot_of_sums((*sums)[i].group, all[i].output.sizes[0]);
    }
    program_.steps[step] = std::move(with_sums);
  }

  /// The groups after the step that add up its gradients, all of them.
  std::optional<std::array<Sum, gradients>> sums_of(const std::array<Companion, gradients>& all,
                                                    std::size_t step) const {
    std::array<std::optional<Sum>, gradients> found;
    for (std::size_t next = step + 1; next < program_.steps.size(); ++next) {
      const auto* const group = std::get_if<Group>(&program_.steps[next]);
      if (group == nullptr || !adds_up(*group)) continue;
      std::int64_t columns = group->space[1];
      std::array<std::optional<std::int64_t>, gradients> places;
      for (std::size_t i = 0; i < gradients; ++i) {
        places[i] = column_of(*group, all[i].output);
        if (places[i]) columns -= all[i].output.sizes[1] * all[i].output.sizes[3];
      }
      if (columns != 0 || is_overwritten(loaded_by(*group).slot, step, next)) continue;
      for (std::size_t i = 0; i < gradients; ++i) {
        if (places[i] && !found[i]) found[i] = Sum{next, *places[i]};
      }
    }
    if (!found[0] || !found[1] || !found[2]) return {};
    return std::array{*found[0], *found[1], *found[2]};
  }

  bool is_overwritten(std::int32_t slot, std::size_t after, std::size_t before) const {
    bool is = false;
    for (std::size_t step = after + 1; step < before; ++step) {
      for_each_access(program_.steps[step], [&](std::int32_t other, bool writes) { is |= writes && other == slot; });
    }
    return is;
  }

  /// Of a group, which adds up sums from then on.
  std::int32_t slot_of_sums(std::size_t step, std::int64_t matrices) {
    auto& group = std::get<Group>(program_.steps[step]);
    if (!adds_up(group)) return loaded_by(group).slot;  // of another gradient's sums
    const auto bytes = static_cast<std::size_t>(matrices * group.space[1]) * size_of(DType::float32);
    const std::int32_t slot = add_temporary(program_, bytes);
    group = of_sums(group, slot, matrices);
    return slot;
  }

  Program& program_;
  const Target& target_;
};

}  // namespace

void gradient_sums(Program& program, const Target& target) {
  // Where memory is limited, there may be no room for sums beside the gradients.
  if (!program.room) GradientSums(program, target).run();
}

}  // namespace russet::compile::passes
