// Weight gradients with vectors along the batch. A task is a few outputs with a few (channel, row of taps); it walks
// over the rows of pixels, and for each column of taps over the pixels that it meets.
#include "device/cpu/batch_weight.h"

#include <algorithm>

#include "base/parallel.h"
#include "device/cpu/batch_dots.h"
#include "device/cpu/lane_operand.h"
#include "device/cpu/layout.h"
#include "device/cpu/operand.h"
#include "device/cpu/taps.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Window;

/// Tasks that there should be; if blocks of the result are fewer, rows of pixels are cut into parts, added up in order.
constexpr std::int64_t least_tasks = 8;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 127) / 128 * 128; }

class BatchWeight final : public compile::Kernel {
 public:
  explicit BatchWeight(const Primitive& primitive)
      : x_(primitive.inputs[0], 0, batch_last(input_sizes(primitive, 0))),
        g_(primitive.inputs[1], 0, batch_last(input_sizes(primitive, 1))),
        weight_(primitive.output),
        window_(attribute<Window>(primitive)),
        outputs_(g_.sizes()[1] / window_.groups),
        channels_(weight_.sizes[1]),
        height_(weight_.sizes[2]),
        width_(weight_.sizes[3]),
        rows_(gathered_taps(window_, 0, height_, x_.sizes()[2], g_.sizes()[2])),
        threads_(base::thread_count()) {
    output_blocks_ = divide_up(outputs_, dots_outputs);
    output_block_ = divide_up(outputs_, output_blocks_);
    line_blocks_ = divide_up(channels_ * height_, dots_taps);
    line_block_ = divide_up(channels_ * height_, line_blocks_);
    parts_ = std::clamp<std::int64_t>(divide_up(least_tasks, blocks()), 1, g_.sizes()[2]);
    find_columns();
  }

  std::string name() const override { return "batch lanes"; }
  std::size_t scratch_bytes() const override {
    const std::size_t own = static_cast<std::size_t>(threads_) * sums_bytes();
    return partial_bytes() + x_.copy_bytes() + g_.copy_bytes() +
           std::max({own, x_.scratch_bytes(), g_.scratch_bytes()});
  }

  void run(const Bindings& bindings) const override {
    auto* const partial = reinterpret_cast<float*>(bindings.scratch);
    std::byte* const x_copy = bindings.scratch + partial_bytes();
    std::byte* const g_copy = x_copy + x_.copy_bytes();
    std::byte* const rest = g_copy + g_.copy_bytes();
    const auto* const x = reinterpret_cast<const float*>(x_.prepare(bindings, x_copy, rest));
    const auto* const g = reinterpret_cast<const float*>(g_.prepare(bindings, g_copy, rest));
    const std::int64_t tasks = blocks() * parts_;
    base::parallel_region([&](int thread, int threads) {
      if (thread >= threads_) return;
      auto* const sums = reinterpret_cast<float*>(rest + static_cast<std::size_t>(thread) * sums_bytes());
      for (std::int64_t task = thread; task < tasks; task += std::min(threads, threads_)) {
        run_task(task, x, g, sums, partial + task * totals());
      }
    });
    store(partial, address_as<float>(weight_.access, bindings));
  }

 private:
  std::int64_t blocks() const { return window_.groups * output_blocks_ * line_blocks_; }
  /// Sums of a task: (output, line of taps, column of taps).
  std::int64_t totals() const { return output_block_ * line_block_ * width_; }
  std::size_t sums_bytes() const { return rounded(static_cast<std::size_t>(totals() * dots_lanes()) * sizeof(float)); }
  std::size_t partial_bytes() const {
    return rounded(static_cast<std::size_t>(blocks() * parts_ * totals()) * sizeof(float));
  }

  /// The pixels of a row that meet a column of taps.
  struct Columns {
    std::int64_t first = 0, count = 0, from = 0;
  };
  void find_columns() {
    columns_.resize(static_cast<std::size_t>(width_));
    for (std::int64_t j = 0; j < width_; ++j) {
      Columns& columns = columns_[static_cast<std::size_t>(j)];
      for (std::int64_t pixel = 0; pixel < g_.sizes()[3]; ++pixel) {
        const std::int64_t from = pixel * window_.stride[1] - window_.padding[1] + j * window_.dilation[1];
        if (from < 0 || from >= x_.sizes()[3]) continue;
        if (columns.count++ == 0) {
          columns.first = pixel;
          columns.from = from;
        }
      }
    }
  }

  struct Task {
    std::int64_t group, output, outputs, line, lines, part;
  };
  Task task_of(std::int64_t number) const {
    Task task{};
    task.part = number % parts_;
    number /= parts_;
    task.line = number % line_blocks_ * line_block_;
    number /= line_blocks_;
    task.output = number % output_blocks_ * output_block_;
    task.group = number / output_blocks_;
    task.lines = std::max<std::int64_t>(0, std::min(line_block_, channels_ * height_ - task.line));
    task.outputs = std::max<std::int64_t>(0, std::min(output_block_, outputs_ - task.output));
    return task;
  }

  void run_task(std::int64_t number, const float* x, const float* g, float* sums, float* partial) const {
    const Task task = task_of(number);
    std::fill_n(sums, totals() * dots_lanes(), 0.0F);
    std::fill_n(partial, totals(), 0.0F);
    if (task.lines == 0 || task.outputs == 0) return;
    const std::int64_t height = g_.sizes()[2];
    const float* const image = x + task.group * channels_ * x_.step(1);
    const float* const gradient = g + (task.group * outputs_ + task.output) * g_.step(1);
    for (std::int64_t h = height * task.part / parts_; h < height * (task.part + 1) / parts_; ++h) {
      add_row(task, h, image, gradient + h * g_.step(2), sums);
    }
    sum_dots(sums, totals(), partial);
  }

  void add_row(const Task& task, std::int64_t h, const float* image, const float* gradient, float* sums) const {
    const TapRun& row = rows_[static_cast<std::size_t>(h)];
    for (std::int64_t j = 0; j < width_; ++j) {
      const Columns& columns = columns_[static_cast<std::size_t>(j)];
      if (columns.count == 0) continue;
      Dots dots;
      dots.g = gradient + columns.first * g_.step(3);
      dots.g_row = g_.step(1);
      dots.g_step = g_.step(3);
      dots.x_step = window_.stride[1] * x_.step(3);
      dots.pixels = columns.count;
      dots.images = x_.sizes()[0];
      dots.sums_row = line_block_ * width_ * dots_lanes();
      dots.outputs = static_cast<int>(task.outputs);
      for (std::int64_t line = 0; line < task.lines; ++line) {
        const std::int64_t channel = (task.line + line) / height_;
        const std::int64_t i = (task.line + line) % height_;
        if (i < row.tap || i >= row.tap + row.count) continue;
        dots.tap[dots.taps++] = {image + channel * x_.step(1) +
                                     (row.from + (i - row.tap) * row.from_step) * x_.step(2) +
                                     columns.from * x_.step(3),
                                 sums + (line * width_ + j) * dots_lanes()};
      }
      if (dots.taps > 0) add_dots(dots);
    }
  }

  void store(const float* partial, float* to) const {
    const Strides& s = weight_.access.strides;
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const Task task = task_of(block * parts_);
      for (std::int64_t o = 0; o < task.outputs; ++o) {
        for (std::int64_t at = 0; at < task.lines * width_; ++at) {
          float sum = 0;
          for (std::int64_t part = 0; part < parts_; ++part) {
            sum += partial[(block * parts_ + part) * totals() + o * line_block_ * width_ + at];
          }
          const std::int64_t line = task.line + at / width_;
          to[(task.group * outputs_ + task.output + o) * s[0] + line / height_ * s[1] + line % height_ * s[2] +
             at % width_ * s[3]] = sum;
        }
      }
    }
  }

  LaneOperand x_, g_;
  Operand weight_;
  Window window_;
  std::int64_t outputs_, channels_, height_, width_;
  std::vector<TapRun> rows_;
  int threads_;
  std::vector<Columns> columns_;
  std::int64_t output_blocks_ = 1, output_block_ = 1, line_blocks_ = 1, line_block_ = 1, parts_ = 1;
};

}  // namespace

KernelPtr make_batch_weight(const Primitive& primitive) { return std::make_unique<BatchWeight>(primitive); }

}  // namespace russet::cpu
