// Elements by index.
#include <array>
#include <vector>

#include "base/parallel.h"
#include "compile/indices.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"
#include "graph/strided.h"
#include "ops/failures.h"
#include "ops/indexing.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;

/// An operand as an array of pieces: its first `lead` axes count the places, the other axes are the piece at a place.
struct Pieces {
  Shape sizes;      // of a piece
  Strides strides;  // of a piece
  Shape lead_sizes;
  Strides lead_strides;
  std::int64_t piece_size;
  std::int64_t step = -1;  // from place to place, where that is one distance
  bool dense = true;       // the elements of a piece lie in row-major order without gaps

  Pieces(const Operand& operand, int lead) {
    for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
      (axis < lead ? lead_sizes : sizes).push_back(operand.sizes[axis]);
      (axis < lead ? lead_strides : strides).push_back(operand.access.strides[axis]);
    }
    piece_size = numel(sizes);
    const Strides row_major = contiguous_strides(sizes);
    for (int axis = 0; axis < sizes.rank(); ++axis) {
      if (sizes[axis] != 1 && strides[axis] != row_major[axis]) dense = false;
    }
    find_step();
  }

  void find_step() {
    std::int64_t innermost = 0;
    std::int64_t expected = 0;
    for (int axis = lead_sizes.rank() - 1; axis >= 0; --axis) {
      if (lead_sizes[axis] == 1) continue;
      if (expected == 0) {
        innermost = lead_strides[axis];
      } else if (lead_strides[axis] != expected) {
        return;
      }
      expected = lead_strides[axis] * lead_sizes[axis];
    }
    if (innermost >= 0) step = innermost;
  }

  std::int64_t at(std::int64_t place) const {
    if (step >= 0) return place * step;
    std::int64_t offset = 0;
    for (int axis = lead_sizes.rank() - 1; axis >= 0; --axis) {
      offset += place % lead_sizes[axis] * lead_strides[axis];
      place /= lead_sizes[axis];
    }
    return offset;
  }
};

/// The places that an index's entries name: for each entry the sum, over the named axes, of index times step.
class Index {
 public:
  /// `first`: the primitive's first index tensor. `steps`: along the array's named axes.
  Index(const Primitive& primitive, std::size_t first, const Shape& array, const Strides& steps)
      : op_(primitive.op),
        indexing_(attribute<ops::Indexing>(primitive)),
        along_(Strides::filled(indexing_.lead.rank(), 0)),
        count_(numel(indexing_.lead)) {
    for (int axis = 0; axis < indexing_.axes; ++axis) {
      if (!indexing_.is_by_tensor(axis)) {
        along_[indexing_.sources[static_cast<std::size_t>(axis)]] += steps[axis];
        continue;
      }
      const Operand& operand = primitive.inputs[first++];
      tensors_.push_back({operand.access,
                          graph::broadcast_strides(operand.sizes, operand.access.strides, indexing_.lead), axis,
                          array[axis], steps[axis]});
    }
  }

  std::int64_t count() const { return count_; }

  /// Calls visit(i, sum) for entries [begin, end). Throws IndexError for one that names nothing.
  template <class Visitor>
  void walk(const Bindings& bindings, std::int64_t begin, std::int64_t end, Visitor&& visit) const {
    const Shape& lead = indexing_.lead;
    Dims place = Dims::filled(lead.rank(), 0);
    std::array<const std::byte*, max_rank> at{};
    std::int64_t along = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) at[t] = address(tensors_[t].access, bindings);
    const auto move = [&](int axis, std::int64_t steps) {
      along += steps * along_[axis];
      for (std::size_t t = 0; t < tensors_.size(); ++t) at[t] += steps * tensors_[t].byte_stride(axis);
    };
    std::int64_t rest = begin;
    for (int axis = lead.rank() - 1; axis >= 0; --axis) {
      place[axis] = rest % std::max<std::int64_t>(lead[axis], 1);
      rest /= std::max<std::int64_t>(lead[axis], 1);
      move(axis, place[axis]);
    }
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t sum = along;
      for (std::size_t t = 0; t < tensors_.size(); ++t) sum += position(tensors_[t], at[t], i) * tensors_[t].step;
      visit(i, sum);
      for (int axis = lead.rank() - 1; axis >= 0; --axis) {
        if (++place[axis] < lead[axis]) {
          move(axis, 1);
          break;
        }
        move(axis, 1 - lead[axis]);
        place[axis] = 0;
      }
    }
  }

 private:
  struct Tensor {
    compile::Access access;
    Strides strides;  // along the entries
    int axis;
    std::int64_t size;  // of that axis
    std::int64_t step;

    std::int64_t byte_stride(int lead_axis) const {
      return strides[lead_axis] * static_cast<std::int64_t>(size_of(access.dtype));
    }
  };

  std::int64_t position(const Tensor& tensor, const std::byte* at, std::int64_t i) const {
    std::int64_t index = 0;
    if (tensor.access.dtype == DType::int64) {
      std::memcpy(&index, at, sizeof(index));
    } else {
      visit_dtype(tensor.access.dtype, [&]<class Element>() {
        Element element;
        std::memcpy(&element, at, sizeof(element));
        index = convert_element<std::int64_t>(element);
      });
    }
    const std::int64_t position = ops::named_position(index, tensor.size, indexing_.from_end);
    if (position < 0) ops::throw_out_of_range(ops::row(op_).name, index, tensor.axis, tensor.size, i, count_);
    return position;
  }

  Op op_;
  ops::Indexing indexing_;
  std::vector<Tensor> tensors_;
  Strides along_;  // offsets of axes that are indexed by the entry's own position
  std::int64_t count_;
};

double piece_cost(const Pieces& pieces, DType dtype) {
  return 5 + 0.1 * static_cast<double>(pieces.piece_size) * static_cast<double>(size_of(dtype));
}

class Take final : public compile::Kernel {
 public:
  explicit Take(const Primitive& primitive)
      : primitive_(primitive),
        from_(primitive.inputs[0], attribute<ops::Indexing>(primitive).axes),
        to_(primitive.output, attribute<ops::Indexing>(primitive).lead.rank()),
        index_(primitive, 1, from_.lead_sizes, from_.lead_strides) {}

  std::string name() const override { return from_.dense && to_.dense ? "pieces" : "pieces:strided"; }

  void run(const Bindings& bindings) const override {
    const DType dtype = primitive_.output.access.dtype;
    // All indices are checked before the first element is written.
    if (!attribute<ops::Indexing>(primitive_).checked) compile::require_indices(primitive_, bindings);
    visit_dtype(dtype, [&]<class Element>() {
      const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings);
      auto* const to = address_as<Element>(primitive_.output.access, bindings);
      base::parallel_for(index_.count(), piece_cost(from_, dtype), [&](std::int64_t begin, std::int64_t end) {
        index_.walk(bindings, begin, end, [&](std::int64_t i, std::int64_t at) {
          const Element* const source = from + at;
          Element* const target = to + to_.at(i);
          if (from_.dense && to_.dense) {
            std::copy_n(source, from_.piece_size, target);
          } else {
            cpu::walk(
                from_.sizes, [&](std::int64_t s, std::int64_t t) { target[t] = source[s]; }, from_.strides,
                to_.strides);
          }
        });
      });
    });
  }

 private:
  Primitive primitive_;
  Pieces from_, to_;
  Index index_;
};

/// Threads share out the places of the array, so that the order of additions never depends on them.
class Put final : public compile::Kernel {
 public:
  explicit Put(const Primitive& primitive)
      : primitive_(primitive),
        base_(primitive.inputs[0], attribute<ops::Indexing>(primitive).axes),
        from_(primitive.inputs[1], attribute<ops::Indexing>(primitive).lead.rank()),
        to_(primitive.output, attribute<ops::Indexing>(primitive).axes),
        index_(primitive, 2, to_.lead_sizes, contiguous_strides(to_.lead_sizes)),
        places_(numel(to_.lead_sizes)) {}

  std::string name() const override { return from_.dense && to_.dense ? "pieces" : "pieces:strided"; }

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { put<Element>(bindings); });
  }

  std::size_t scratch_bytes() const override {
    const std::size_t keys = static_cast<std::size_t>(index_.count()) * sizeof(std::int64_t);
    return keys + (wide_sums() ? static_cast<std::size_t>(places_ * to_.piece_size) * sizeof(float) : 0);
  }

 private:
  bool accumulates() const { return attribute<ops::Indexing>(primitive_).accumulates; }
  /// Additions of 16-bit types are rounded once, at the end.
  bool wide_sums() const {
    const DType type = primitive_.output.access.dtype;
    return accumulates() && (type == DType::float16 || type == DType::bfloat16);
  }
  double cost() const { return piece_cost(to_, primitive_.output.access.dtype); }

  template <class Element>
  void put(const Bindings& bindings) const {
    // All indices are checked before the first element is written.
    auto* const keys = reinterpret_cast<std::int64_t*>(bindings.scratch);
    index_.walk(bindings, 0, index_.count(), [&](std::int64_t i, std::int64_t place) { keys[i] = place; });
    const auto* const base = address_as<const Element>(input_access(primitive_, 0), bindings);
    const auto* const values = address_as<const Element>(input_access(primitive_, 1), bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    if (wide_sums()) {
      auto* const sums = reinterpret_cast<float*>(keys + index_.count());
      const Pieces dense(
          {{-1, DType::float32, 0, -1, contiguous_strides(primitive_.output.sizes)}, primitive_.output.sizes},
          to_.lead_sizes.rank());
      copy_pieces(base, base_, sums, dense);
      add_pieces(keys, values, sums, dense);
      copy_pieces(sums, dense, to, to_);
      return;
    }
    if (base != to || base_.lead_strides != to_.lead_strides || base_.strides != to_.strides) {
      copy_pieces(base, base_, to, to_);
    }
    add_pieces(keys, values, to, to_);
  }

  template <class From, class To>
  void copy_pieces(const From* from, const Pieces& source, To* to, const Pieces& target) const {
    base::parallel_for(places_, cost(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const From* const own = from + source.at(place);
        To* const its = to + target.at(place);
        if (source.dense && target.dense) {
          for (std::int64_t j = 0; j < target.piece_size; ++j) its[j] = convert_element<To>(own[j]);
          continue;
        }
        cpu::walk(
            target.sizes, [&](std::int64_t s, std::int64_t t) { its[t] = convert_element<To>(own[s]); }, source.strides,
            target.strides);
      }
    });
  }

  /// Each thread goes through all keys and takes those of its own range of places.
  template <class Element, class Sum>
  void add_pieces(const std::int64_t* keys, const Element* values, Sum* to, const Pieces& target) const {
    const bool add = accumulates();
    const bool dense = from_.dense && target.dense;
    const double share =
        cost() * static_cast<double>(index_.count()) / static_cast<double>(std::max<std::int64_t>(places_, 1));
    base::parallel_for(places_, share, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < index_.count(); ++i) {
        if (keys[i] < begin || keys[i] >= end) continue;
        const Element* const source = values + from_.at(i);
        Sum* const piece = to + target.at(keys[i]);
        const auto write = [&](std::int64_t s, std::int64_t t) {
          const auto value = convert_element<Sum>(source[s]);
          if (!add) {
            piece[t] = value;
          } else if constexpr (std::is_same_v<Sum, bool>) {
            piece[t] = piece[t] || value;
          } else if constexpr (!std::is_same_v<Sum, float16> && !std::is_same_v<Sum, bfloat16>) {
            piece[t] = static_cast<Sum>(wrapping_add(piece[t], value));
          }
        };
        if (dense) {
          for (std::int64_t j = 0; j < target.piece_size; ++j) write(j, j);
        } else {
          cpu::walk(target.sizes, write, from_.strides, target.strides);
        }
      }
    });
  }

  Primitive primitive_;
  Pieces base_, from_, to_;
  Index index_;
  std::int64_t places_;  // of the array
};

}  // namespace

Verdict judge_indexing(const Primitive& primitive) {
  return accept([&primitive]() -> KernelPtr {
    if (primitive.op == Op::take) return std::make_unique<Take>(primitive);
    return std::make_unique<Put>(primitive);
  });
}

}  // namespace russet::cpu
