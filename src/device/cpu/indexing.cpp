// Rows by index.
#include <fmt/format.h>

#include "base/parallel.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;

/// A row of an operand [n, ...], or of one whose leading `lead` axes count rows.
struct Rows {
  Shape sizes;      // of a row
  Strides strides;  // of a row
  Shape lead_sizes;
  Strides lead_strides;
  bool dense = true;  // the elements of a row lie in row-major order without gaps

  Rows(const Operand& operand, int lead) {
    for (int axis = 0; axis < operand.sizes.rank(); ++axis) {
      (axis < lead ? lead_sizes : sizes).push_back(operand.sizes[axis]);
      (axis < lead ? lead_strides : strides).push_back(operand.access.strides[axis]);
    }
    const Strides row_major = contiguous_strides(sizes);
    for (int axis = 0; axis < sizes.rank(); ++axis) {
      if (sizes[axis] != 1 && strides[axis] != row_major[axis]) dense = false;
    }
  }

  std::int64_t at(std::int64_t position) const {
    std::int64_t offset = 0;
    for (int axis = lead_sizes.rank() - 1; axis >= 0; --axis) {
      offset += position % lead_sizes[axis] * lead_strides[axis];
      position /= lead_sizes[axis];
    }
    return offset;
  }
};

/// What both operators have: rows of an array, an index, and rows that go along with the index.
class Indexed : public compile::Kernel {
 public:
  Indexed(const Primitive& primitive, const Operand& array, const Operand& along)
      : primitive_(primitive),
        rows_(array, 1),
        index_(primitive.inputs[1], primitive.inputs[1].sizes.rank()),
        along_(along, primitive.inputs[1].sizes.rank()),
        count_(numel(primitive.inputs[1].sizes)),
        limit_(array.sizes[0]),
        row_size_(numel(rows_.sizes)) {}

  std::string name() const override { return rows_.dense && along_.dense ? "rows" : "rows:strided"; }

 protected:
  /// The row that entry `i` names.
  std::int64_t row_of(const Bindings& bindings, std::int64_t i) const {
    const compile::Access& access = input_access(primitive_, 1);
    std::int64_t row = 0;
    const std::int64_t at = index_.at(i);
    if (access.dtype == DType::int64) {
      row = address_as<const std::int64_t>(access, bindings)[at];
    } else {
      visit_dtype(access.dtype, [&]<class Element>() {
        row = convert_element<std::int64_t>(address_as<const Element>(access, bindings)[at]);
      });
    }
    if (row < 0 || row >= limit_) {
      throw IndexError(fmt::format("{}: index {} (number {} of {}) is out of range for {} rows",
                                   ops::row(primitive_.op).name, row, i, count_, limit_));
    }
    return row;
  }

  double row_cost() const { return 5 + 0.1 * static_cast<double>(row_size_ * size_of(primitive_.output.access.dtype)); }

  Primitive primitive_;
  Rows rows_, index_, along_;
  std::int64_t count_, limit_, row_size_;
};

class Take final : public Indexed {
 public:
  explicit Take(const Primitive& primitive) : Indexed(primitive, primitive.inputs[0], primitive.output) {}

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() {
      const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings);
      auto* const to = address_as<Element>(primitive_.output.access, bindings);
      base::parallel_for(count_, row_cost(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Element* const source = from + row_of(bindings, i) * rows_.lead_strides[0];
          Element* const target = to + along_.at(i);
          if (rows_.dense && along_.dense) {
            std::copy_n(source, row_size_, target);
          } else {
            walk(
                rows_.sizes, [&](std::int64_t s, std::int64_t t) { target[t] = source[s]; }, rows_.strides,
                along_.strides);
          }
        }
      });
    });
  }
};

/// Threads share out the columns of a row, or the rows by number, so that the order of additions never depends on them.
class Put final : public Indexed {
 public:
  explicit Put(const Primitive& primitive)
      : Indexed(primitive, primitive.output, primitive.inputs[2]), base_(primitive.inputs[0], 1) {}

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { put<Element>(bindings); });
  }

  std::size_t scratch_bytes() const override {
    // Additions of 16-bit types are rounded once, at the end.
    const bool narrow = wide_sums();
    return narrow ? static_cast<std::size_t>(limit_ * row_size_) * sizeof(float) : 0;
  }

 private:
  bool accumulates() const { return attribute<ops::Accumulate>(primitive_).value; }
  bool wide_sums() const {
    const DType type = primitive_.output.access.dtype;
    return accumulates() && (type == DType::float16 || type == DType::bfloat16);
  }

  template <class Element>
  void put(const Bindings& bindings) const {
    for (std::int64_t i = 0; i < count_; ++i) row_of(bindings, i);
    const auto* const base = address_as<const Element>(input_access(primitive_, 0), bindings);
    const auto* const values = address_as<const Element>(input_access(primitive_, 2), bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    if (wide_sums()) {
      auto* const sums = reinterpret_cast<float*>(bindings.scratch);
      const Strides dense = contiguous_strides(rows_.sizes);
      copy_rows(base, base_.lead_strides[0], base_.strides, sums, row_size_, dense);
      add_rows(bindings, values, sums, row_size_, dense);
      copy_rows(sums, row_size_, dense, to, rows_.lead_strides[0], rows_.strides);
      return;
    }
    if (base != to || base_.lead_strides != rows_.lead_strides || base_.strides != rows_.strides) {
      copy_rows(base, base_.lead_strides[0], base_.strides, to, rows_.lead_strides[0], rows_.strides);
    }
    add_rows(bindings, values, to, rows_.lead_strides[0], rows_.strides);
  }

  template <class From, class To>
  void copy_rows(const From* from, std::int64_t from_row, const Strides& from_strides, To* to, std::int64_t to_row,
                 const Strides& to_strides) const {
    const Strides row_major = contiguous_strides(rows_.sizes);
    base::parallel_for(limit_, row_cost(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        if (from_strides == row_major && to_strides == row_major) {
          const From* const source = from + row * from_row;
          To* const target = to + row * to_row;
          for (std::int64_t j = 0; j < row_size_; ++j) target[j] = convert_element<To>(source[j]);
          continue;
        }
        walk(
            rows_.sizes,
            [&](std::int64_t s, std::int64_t t) {
              to[row * to_row + t] = convert_element<To>(from[row * from_row + s]);
            },
            from_strides, to_strides);
      }
    });
  }

  /// Each thread goes through the whole index and takes the rows of its own range.
  template <class Element, class Sum>
  void add_rows(const Bindings& bindings, const Element* values, Sum* to, std::int64_t to_row,
                const Strides& to_strides) const {
    const bool add = accumulates();
    const bool dense = along_.dense && to_strides == contiguous_strides(rows_.sizes);
    const double cost =
        row_cost() * static_cast<double>(count_) / static_cast<double>(std::max<std::int64_t>(limit_, 1));
    base::parallel_for(limit_, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < count_; ++i) {
        const std::int64_t row = row_of(bindings, i);
        if (row < begin || row >= end) continue;
        const Element* const source = values + along_.at(i);
        Sum* const target = to + row * to_row;
        const auto write = [&](std::int64_t s, std::int64_t t) {
          const auto value = convert_element<Sum>(source[s]);
          if (!add) {
            target[t] = value;
          } else if constexpr (std::is_same_v<Sum, bool>) {
            target[t] = target[t] || value;
          } else if constexpr (!std::is_same_v<Sum, float16> && !std::is_same_v<Sum, bfloat16>) {
            target[t] = static_cast<Sum>(wrapping_add(target[t], value));
          }
        };
        if (dense) {
          for (std::int64_t j = 0; j < row_size_; ++j) write(j, j);
        } else {
          walk(rows_.sizes, write, along_.strides, to_strides);
        }
      }
    });
  }

  Rows base_;
};

}  // namespace

Verdict judge_indexing(const Primitive& primitive) {
  return accept([&primitive]() -> KernelPtr {
    if (primitive.op == Op::take) return std::make_unique<Take>(primitive);
    return std::make_unique<Put>(primitive);
  });
}

}  // namespace russet::cpu
