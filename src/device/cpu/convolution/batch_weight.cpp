// Weight gradients with vectors along the batch. A task is a few outputs with a few lines of taps (channel, row of
// taps); it walks over the rows of y, and for each column of taps over the pixels that it meets.
#include "device/cpu/convolution/convolution.h"
#include "device/cpu/convolution/strategies.h"
#include "device/cpu/convolution/weight_sums.h"
#include "device/cpu/lane_operand.h"
#include "device/cpu/layout.h"
#include "device/cpu/operand.h"
#include "device/cpu/workers.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Primitive;

/// Tasks that there should be; if blocks of the result are fewer, rows of pixels are cut into parts, added up in order.
constexpr std::int64_t least_tasks = 8;

class BatchWeight final : public compile::Kernel {
 public:
  explicit BatchWeight(const Primitive& primitive)
      : convolution_(primitive),
        x_(convolution_.x, 0, batch_last(convolution_.x.sizes), workspace_),
        g_(convolution_.y, 0, batch_last(convolution_.y.sizes), workspace_),
        height_(convolution_.kernel_height()),
        width_(convolution_.kernel_width()),
        rows_(convolution_.taps_of_y(0)),
        columns_(convolution_.windows_of_taps(1)),
        output_blocks_(divide_up(convolution_.outputs, sums_outputs)),
        output_block_(divide_up(convolution_.outputs, output_blocks_)),
        line_blocks_(divide_up(convolution_.channels * height_, image_taps)),
        line_block_(divide_up(convolution_.channels * height_, line_blocks_)),
        parts_(std::clamp<std::int64_t>(divide_up(least_tasks, blocks()), 1, g_.sizes()[2])),
        totals_(workspace_.add<float>(blocks() * parts_ * task_size())),
        sums_(workspace_.add<float>(task_size() * vector_lanes(), workers_.count())) {}

  std::string name() const override { return "batch lanes"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const Bindings& bindings) const override {
    const auto* const x = x_.prepare_as<float>(bindings);
    const auto* const g = g_.prepare_as<float>(bindings);
    float* const totals = totals_.at(bindings);
    const double products = static_cast<double>(numel(g_.sizes()) * convolution_.channels * convolution_.taps());
    workers_.each(blocks() * parts_, products / 64, [&](std::int64_t task, int worker) {
      run_task(task, x, g, sums_.at(bindings, worker), totals + task * task_size());
    });
    store(totals, address_as<float>(convolution_.weight.access, bindings));
  }

 private:
  std::int64_t blocks() const { return convolution_.groups * output_blocks_ * line_blocks_; }
  /// Sums of a task: (output, line of taps, column of taps).
  std::int64_t task_size() const { return output_block_ * line_block_ * width_; }

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
    task.lines = std::clamp<std::int64_t>(convolution_.channels * height_ - task.line, 0, line_block_);
    task.outputs = std::clamp<std::int64_t>(convolution_.outputs - task.output, 0, output_block_);
    return task;
  }

  void run_task(std::int64_t number, const float* x, const float* g, float* sums, float* totals) const {
    const Task task = task_of(number);
    std::fill_n(sums, task_size() * vector_lanes(), 0.0F);
    std::fill_n(totals, task_size(), 0.0F);
    if (task.lines == 0 || task.outputs == 0) return;
    const std::int64_t height = g_.sizes()[2];
    const float* const image = x + task.group * convolution_.channels * x_.step(1);
    const float* const gradient = g + (task.group * convolution_.outputs + task.output) * g_.step(1);
    for (std::int64_t h = height * task.part / parts_; h < height * (task.part + 1) / parts_; ++h) {
      add_row(task, h, image, gradient + h * g_.step(2), sums);
    }
    add_lanes(sums, task_size(), totals);
  }

  void add_row(const Task& task, std::int64_t h, const float* image, const float* gradient, float* sums) const {
    const TapRun& row = rows_[static_cast<std::size_t>(h)];
    for (std::int64_t j = 0; j < width_; ++j) {
      const WindowRun& column = columns_[static_cast<std::size_t>(j)];
      if (column.count == 0) continue;
      WeightSums<float> add;
      add.g = gradient + column.first * g_.step(3);
      add.g_row = g_.step(1);
      add.g_step = g_.step(3);
      add.x_step = convolution_.window.stride[1] * x_.step(3);
      add.pixels = column.count;
      add.lanes = x_.sizes()[0];
      add.sums_row = line_block_ * width_ * vector_lanes();
      add.outputs = static_cast<int>(task.outputs);
      for (std::int64_t line = 0; line < task.lines; ++line) {
        const std::int64_t channel = (task.line + line) / height_;
        const std::int64_t i = (task.line + line) % height_;
        if (i < row.tap || i >= row.tap + row.count) continue;
        add.tap[add.taps++] = {image + channel * x_.step(1) + (row.from + (i - row.tap) * row.from_step) * x_.step(2) +
                                   column.from * x_.step(3),
                               sums + (line * width_ + j) * vector_lanes()};
      }
      if (add.taps > 0) add_image_products(add);
    }
  }

  void store(const float* totals, float* to) const {
    const Strides& s = convolution_.weight.access.strides;
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const Task task = task_of(block * parts_);
      for (std::int64_t o = 0; o < task.outputs; ++o) {
        for (std::int64_t at = 0; at < task.lines * width_; ++at) {
          float sum = 0;
          for (std::int64_t part = 0; part < parts_; ++part) {
            sum += totals[(block * parts_ + part) * task_size() + o * line_block_ * width_ + at];
          }
          const std::int64_t line = task.line + at / width_;
          to[(task.group * convolution_.outputs + task.output + o) * s[0] + line / height_ * s[1] +
             line % height_ * s[2] + at % width_ * s[3]] = sum;
        }
      }
    }
  }

  Workers workers_;
  Workspace workspace_;
  Convolution convolution_;
  LaneOperand x_, g_;  // x and y's gradient
  std::int64_t height_, width_;
  std::vector<TapRun> rows_;
  std::vector<WindowRun> columns_;
  std::int64_t output_blocks_, output_block_, line_blocks_, line_block_, parts_;
  Scratch<float> totals_, sums_;
};

}  // namespace

KernelPtr make_batch_weight(const Primitive& primitive) { return std::make_unique<BatchWeight>(primitive); }

}  // namespace russet::cpu
