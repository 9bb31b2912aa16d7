// Sorting, selection of the first of an order, running sums and products: operators along one axis.
#include <algorithm>
#include <bit>
#include <numeric>

#include "base/parallel.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"
#include "device/cpu/workers.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;

/// The lines of an array along one axis.
class Lines {
 public:
  explicit Lines(const Primitive& primitive) {
    const Operand& input = primitive.inputs[0];
    const int axis = input.sizes.empty() ? -1 : std::countr_zero(attribute<ops::Axes>(primitive).mask);
    for (int i = 0; i < input.sizes.rank(); ++i) {
      if (i == axis) {
        length = input.sizes[i];
        from_step = input.access.strides[i];
        to_step = primitive.output.access.strides[i];
      } else {
        sizes_.push_back(input.sizes[i]);
        from_.push_back(input.access.strides[i]);
        to_.push_back(primitive.output.access.strides[i]);
      }
    }
    count = numel(sizes_);
  }

  struct Start {
    std::int64_t from = 0, to = 0;
  };
  Start start(std::int64_t line) const {
    Start start;
    for (int axis = sizes_.rank() - 1; axis >= 0; --axis) {
      start.from += line % sizes_[axis] * from_[axis];
      start.to += line % sizes_[axis] * to_[axis];
      line /= sizes_[axis];
    }
    return start;
  }

  std::int64_t count = 1, length = 1, from_step = 0, to_step = 0;

 private:
  Shape sizes_;
  Strides from_, to_;
};

template <class Element>
struct SortItem {
  Element key;
  std::int64_t position;
};

/// An estimate for ordering all lines.
double nanoseconds(const Lines& lines) { return 4 * static_cast<double>(lines.count * lines.length); }

template <class Element>
bool precedes(const Element& a, const Element& b, bool descending) {
  if constexpr (std::is_same_v<Element, float16> || std::is_same_v<Element, bfloat16>) {
    return precedes(static_cast<float>(a), static_cast<float>(b), descending);
  } else {
    return descending ? exceeds(a, b) : exceeds(b, a);
  }
}

/// Merge sort between the array of items and as much scratch space; a line longer than a chunk is sorted in chunks in
/// parallel, which are merged in pairs. std::stable_sort would allocate.
class Argsort final : public compile::Kernel {
 public:
  explicit Argsort(const Primitive& primitive)
      : primitive_(primitive), lines_(primitive), workers_(long_lines() ? 1 : lines_.count) {
    visit_dtype(input_access(primitive, 0).dtype, [&]<class Element>() { item_bytes_ = sizeof(SortItem<Element>); });
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(workers_.count()) * 2 * static_cast<std::size_t>(lines_.length) * item_bytes_;
  }
  std::string name() const override { return "merge sort"; }

  void run(const Bindings& bindings) const override {
    if (lines_.count == 0 || lines_.length == 0) return;
    visit_dtype(input_access(primitive_, 0).dtype, [&]<class Element>() { sort_all<Element>(bindings); });
  }

 private:
  static constexpr std::int64_t chunk = 1 << 14;

  bool long_lines() const { return lines_.length > chunk; }

  template <class Element>
  void sort_all(const Bindings& bindings) const {
    auto* const scratch = reinterpret_cast<SortItem<Element>*>(bindings.scratch);
    if (long_lines()) {
      for (std::int64_t line = 0; line < lines_.count; ++line) sort_line(bindings, line, scratch, true);
      return;
    }
    workers_.each(lines_.count, nanoseconds(lines_), [&](std::int64_t line, int worker) {
      sort_line(bindings, line, scratch + worker * 2 * lines_.length, false);
    });
  }

  template <class Element>
  void sort_line(const Bindings& bindings, std::int64_t line, SortItem<Element>* scratch, bool parallel) const {
    const bool descending = attribute<ops::Axes>(primitive_).descending;
    const std::int64_t length = lines_.length;
    const Lines::Start start = lines_.start(line);
    const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings) + start.from;
    auto* const to = address_as<std::int64_t>(primitive_.output.access, bindings) + start.to;
    const auto before = [descending](const auto& a, const auto& b) { return precedes(a.key, b.key, descending); };
    SortItem<Element>* sorted = scratch;
    SortItem<Element>* other = scratch + length;
    // Runs of eight by insertion.
    constexpr std::int64_t run = 8;
    const auto in_parallel = [&](std::int64_t pieces, double cost, auto&& body) {
      if (parallel) {
        base::parallel_for(pieces, cost, body);
      } else {
        body(0, pieces);
      }
    };
    in_parallel((length + run - 1) / run, 40, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * run; i < std::min(end * run, length); ++i) {
        const SortItem<Element> item{from[i * lines_.from_step], i};
        std::int64_t at = i;
        for (; at > i / run * run && before(item, sorted[at - 1]); --at) sorted[at] = sorted[at - 1];
        sorted[at] = item;
      }
    });
    for (std::int64_t width = run; width < length; width *= 2) {
      const std::int64_t pairs = (length + 2 * width - 1) / (2 * width);
      in_parallel(pairs, 4 * static_cast<double>(width), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t pair = begin; pair < end; ++pair) {
          const std::int64_t first = pair * 2 * width;
          const std::int64_t middle = std::min(first + width, length);
          const std::int64_t last = std::min(first + 2 * width, length);
          std::merge(sorted + first, sorted + middle, sorted + middle, sorted + last, other + first, before);
        }
      });
      std::swap(sorted, other);
    }
    const std::int64_t first = attribute<ops::Axes>(primitive_).first;
    in_parallel(first == 0 ? length : first, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i * lines_.to_step] = sorted[i].position;
    });
  }

  Primitive primitive_;
  Lines lines_;
  Workers workers_;
  std::size_t item_bytes_ = 0;
};

/// The first `wanted` positions of a sorted line. Elements that come before the last of the `wanted` found so far are
/// collected; when there are twice as many, nth_element drops the later half. So each element costs constant time on
/// average, in whatever order they come.
class Select final : public compile::Kernel {
 public:
  explicit Select(const Primitive& primitive)
      : primitive_(primitive),
        lines_(primitive),
        wanted_(attribute<ops::Axes>(primitive).first),
        workers_(lines_.count) {
    visit_dtype(input_access(primitive, 0).dtype, [&]<class Element>() { item_bytes_ = sizeof(SortItem<Element>); });
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(workers_.count()) * 2 * static_cast<std::size_t>(wanted_) * item_bytes_;
  }
  std::string name() const override { return "selection"; }

  void run(const Bindings& bindings) const override {
    if (lines_.count == 0) return;
    visit_dtype(input_access(primitive_, 0).dtype, [&]<class Element>() { select_all<Element>(bindings); });
  }

 private:
  template <class Element>
  void select_all(const Bindings& bindings) const {
    auto* const scratch = reinterpret_cast<SortItem<Element>*>(bindings.scratch);
    workers_.each(lines_.count, nanoseconds(lines_),
                  [&](std::int64_t line, int worker) { select_line(bindings, line, scratch + worker * 2 * wanted_); });
  }

  template <class Element>
  void select_line(const Bindings& bindings, std::int64_t line, SortItem<Element>* found) const {
    const bool descending = attribute<ops::Axes>(primitive_).descending;
    const auto before = [descending](const SortItem<Element>& a, const SortItem<Element>& b) {
      if (precedes(a.key, b.key, descending)) return true;
      return a.position < b.position && !precedes(b.key, a.key, descending);
    };
    const Lines::Start start = lines_.start(line);
    const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings) + start.from;
    std::int64_t count = 0;
    for (; count < wanted_; ++count) found[count] = {from[count * lines_.from_step], count};
    Element last = std::max_element(found, found + wanted_, before)->key;
    for (std::int64_t i = wanted_; i < lines_.length; ++i) {
      const Element key = from[i * lines_.from_step];
      if (!precedes(key, last, descending)) continue;
      found[count++] = {key, i};
      if (count < 2 * wanted_) continue;
      std::nth_element(found, found + wanted_ - 1, found + count, before);
      count = wanted_;
      last = found[wanted_ - 1].key;
    }
    std::sort(found, found + count, before);
    auto* const to = address_as<std::int64_t>(primitive_.output.access, bindings) + start.to;
    for (std::int64_t i = 0; i < wanted_; ++i) to[i * lines_.to_step] = found[i].position;
  }

  Primitive primitive_;
  Lines lines_;
  std::int64_t wanted_;
  Workers workers_;
  std::size_t item_bytes_ = 0;
};

/// Whether selecting is used: for a quarter of a line and more, sorting all of it in parallel is as fast.
bool selects(const Primitive& primitive) {
  if (primitive.op != Op::argsort) return false;
  const std::int64_t first = attribute<ops::Axes>(primitive).first;
  return first > 0 && first < Lines(primitive).length / 4;
}

struct Sums {
  static constexpr const char* name = "running sums";
  static constexpr int start = 0;
  template <class T>
  static T combine(T a, T b) {
    return wrapping_add(a, b);
  }
};

struct Products {
  static constexpr const char* name = "running products";
  static constexpr int start = 1;
  template <class T>
  static T combine(T a, T b) {
    return wrapping_multiply(a, b);
  }
};

/// Running sums or products, a line after the other.
template <class Kind>
class Running final : public compile::Kernel {
 public:
  explicit Running(const Primitive& primitive) : primitive_(primitive), lines_(primitive) {}

  std::string name() const override { return Kind::name; }

  void run(const Bindings& bindings) const override {
    visit_dtype(input_access(primitive_, 0).dtype, [&]<class Element>() {
      visit_dtype(primitive_.output.access.dtype, [&]<class Result>() {
        const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings);
        auto* const to = address_as<Result>(primitive_.output.access, bindings);
        base::parallel_for(lines_.count, static_cast<double>(lines_.length), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t line = begin; line < end; ++line) {
            const Lines::Start start = lines_.start(line);
            run_line(from + start.from, to + start.to);
          }
        });
      });
    });
  }

 private:
  template <class Element, class Result>
  void run_line(const Element* from, Result* to) const {
    using Wide = std::conditional_t<std::is_same_v<SumType<Result>, float>, double, SumType<Result>>;
    Wide value{Kind::start};
    for (std::int64_t i = 0; i < lines_.length; ++i) {
      value = Kind::combine(value, convert_element<Wide>(from[i * lines_.from_step]));
      to[i * lines_.to_step] = convert_element<Result>(value);
    }
  }

  Primitive primitive_;
  Lines lines_;
};

}  // namespace

Verdict judge_ordering(const Primitive& primitive) {
  return accept([&primitive]() -> KernelPtr {
    if (selects(primitive)) return std::make_unique<Select>(primitive);
    if (primitive.op == Op::argsort) return std::make_unique<Argsort>(primitive);
    if (primitive.op == Op::cumprod) return std::make_unique<Running<Products>>(primitive);
    return std::make_unique<Running<Sums>>(primitive);
  });
}

}  // namespace russet::cpu
