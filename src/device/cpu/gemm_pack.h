#pragma once
// Copies blocks of a matrix into panels, converted to the type that products add up in.
#include "device/cpu/operand.h"
#include "device/cpu/product.h"

namespace russet::cpu {

/// Where the i-th row or column of a matrix lies.
struct Point {
  std::int64_t offset;
  std::int32_t height, width;
};

/// Points of rows or columns [begin, begin + count).
inline void locate(const Side& side, std::int64_t begin, std::int64_t count, Point* out) {
  std::array<std::int64_t, 3> at{begin / (side.size[1] * side.size[2]), begin / side.size[2] % side.size[1],
                                 begin % side.size[2]};
  for (std::int64_t i = 0; i < count; ++i) {
    Point point{0, 0, 0};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      point.offset += at[axis] * side.step[axis];
      point.height += static_cast<std::int32_t>(at[axis] * side.height[axis]);
      point.width += static_cast<std::int32_t>(at[axis] * side.width[axis]);
    }
    out[i] = point;
    for (std::size_t axis = 3; axis-- > 0;) {
      if (++at[axis] < side.size[axis]) break;
      at[axis] = 0;
    }
  }
}

/// A range of rows or columns.
struct Interval {
  std::int64_t begin, count;
};

/// Copies the block lanes x depth of a matrix into panels of `width` lanes: out[panel][depth][lane], zeros beyond the
/// last lane. `lanes` and `depth` are its rows and columns or its columns and rows.
template <class Element, class T>
class Packer {
 public:
  Packer(const Matrix& matrix, const Side& lanes, const Side& depth, const Element* data)
      : matrix_(matrix), lanes_(lanes), depth_(depth), data_(data) {}

  /// `points` has room for depth.count entries.
  void pack(Interval lanes, Interval depth, int width, T* out, Point* points) const {
    locate(depth_, depth.begin, depth.count, points);
    for (std::int64_t first = 0; first < lanes.count; first += width) {
      Point panel[64];
      const int count = static_cast<int>(std::min<std::int64_t>(width, lanes.count - first));
      locate(lanes_, lanes.begin + first, count, panel);
      for (int j = 0; matrix_.in_plane && j < count; ++j) {
        panel[j].height += static_cast<std::int32_t>(matrix_.origin_height);
        panel[j].width += static_cast<std::int32_t>(matrix_.origin_width);
      }
      if (count < width) std::fill_n(out, depth.count * width, T{});
      if (!matrix_.in_plane) {
        copy(panel, count, points, depth.count, width, out);
      } else if (matrix_.divisor_height == 1 && matrix_.divisor_width == 1) {
        copy_runs(panel, count, points, depth.count, width, out);
      } else {
        copy_spread(panel, count, points, depth.count, width, out);
      }
      out += depth.count * width;
    }
  }

 private:
  static T convert(Element value) { return convert_element<T>(value); }

  static bool consecutive(const Point* points, std::int64_t count) {
    for (std::int64_t i = 1; i < count; ++i) {
      if (points[i].offset != points[i - 1].offset + 1) return false;
    }
    return true;
  }

  void copy(const Point* lanes, int count, const Point* depth, std::int64_t depths, int width, T* out) const {
    if (consecutive(lanes, count)) {
      for (std::int64_t k = 0; k < depths; ++k) {
        const Element* const from = data_ + lanes[0].offset + depth[k].offset;
        for (int j = 0; j < count; ++j) out[k * width + j] = convert(from[j]);
      }
      return;
    }
    const bool depth_runs = consecutive(depth, depths);
    // The depth is walked in short pieces, so that the cache lines written for one lane are still there for the next.
    constexpr std::int64_t stretch = 16;
    for (std::int64_t begin = 0; begin < depths; begin += stretch) {
      const std::int64_t end = std::min(begin + stretch, depths);
      for (int j = 0; j < count; ++j) {
        const Element* const from = data_ + lanes[j].offset;
        if (depth_runs) {
          for (std::int64_t k = begin; k < end; ++k) out[k * width + j] = convert(from[depth[0].offset + k]);
        } else {
          for (std::int64_t k = begin; k < end; ++k) out[k * width + j] = convert(from[depth[k].offset]);
        }
      }
    }
  }

  /// Lanes first ... first + count - 1 that lie on one line of the plane, evenly spaced.
  struct Run {
    int first, count;
    std::int64_t offset, step;
    std::int32_t height, width, width_step;
  };

  std::int64_t folded(const Point& point) const {
    return point.offset + point.height * matrix_.step_height + point.width * matrix_.step_width;
  }

  int find_runs(const Point* lanes, int count, Run* runs) const {
    int found = 0;
    for (int j = 0; j < count; ++j) {
      const Point& point = lanes[j];
      const std::int64_t offset = folded(point);
      Run* const last = found > 0 ? &runs[found - 1] : nullptr;
      if (last != nullptr && last->height == point.height) {
        const int next = last->count;
        if (next == 1 && point.width >= last->width) {
          last->step = offset - last->offset;
          last->width_step = point.width - last->width;
        }
        if (offset == last->offset + next * last->step && point.width == last->width + next * last->width_step) {
          ++last->count;
          continue;
        }
        if (next == 1) last->step = last->width_step = 0;
      }
      runs[found++] = {j, 1, offset, 0, point.height, point.width, 0};
    }
    return found;
  }

  void copy_runs(const Point* lanes, int count, const Point* depth, std::int64_t depths, int width, T* out) const {
    Run runs[64];
    const int found = find_runs(lanes, count, runs);
    for (std::int64_t k = 0; k < depths; ++k) {
      const std::int64_t shift = folded(depth[k]);
      for (int r = 0; r < found; ++r) copy_run(runs[r], depth[k], shift, out + k * width + runs[r].first);
    }
  }

  void copy_run(const Run& run, const Point& tap, std::int64_t shift, T* out) const {
    const std::int64_t height = run.height + tap.height;
    const std::int64_t first = run.width + tap.width;
    int begin = 0;
    int end = run.count;
    if (height < 0 || height >= matrix_.plane_height) {
      end = 0;
    } else if (run.width_step == 0) {
      if (first < 0 || first >= matrix_.plane_width) end = 0;
    } else {
      const auto lane_at = [&](std::int64_t width) {
        const std::int64_t lane = width <= first ? 0 : (width - first + run.width_step - 1) / run.width_step;
        return static_cast<int>(std::min<std::int64_t>(lane, run.count));
      };
      begin = lane_at(0);
      end = lane_at(matrix_.plane_width);
    }
    for (int j = 0; j < begin; ++j) out[j] = T{};
    const Element* const from = data_ + run.offset + shift;
    if (run.step == 1) {
      for (int j = begin; j < end; ++j) out[j] = convert(from[j]);
    } else {
      for (int j = begin; j < end; ++j) out[j] = convert(from[j * run.step]);
    }
    for (int j = std::max(begin, end); j < run.count; ++j) out[j] = T{};
  }

  void copy_spread(const Point* lanes, int count, const Point* depth, std::int64_t depths, int width, T* out) const {
    for (std::int64_t k = 0; k < depths; ++k) {
      for (int j = 0; j < count; ++j) {
        const std::int64_t height = lanes[j].height + depth[k].height;
        const std::int64_t column = lanes[j].width + depth[k].width;
        T value{};
        if (height >= 0 && column >= 0 && height % matrix_.divisor_height == 0 && column % matrix_.divisor_width == 0) {
          const std::int64_t h = height / matrix_.divisor_height;
          const std::int64_t w = column / matrix_.divisor_width;
          if (h < matrix_.plane_height && w < matrix_.plane_width) {
            value =
                convert(data_[lanes[j].offset + depth[k].offset + h * matrix_.step_height + w * matrix_.step_width]);
          }
        }
        out[k * width + j] = value;
      }
    }
  }

  const Matrix& matrix_;
  const Side& lanes_;
  const Side& depth_;
  const Element* data_;
};

}  // namespace russet::cpu
