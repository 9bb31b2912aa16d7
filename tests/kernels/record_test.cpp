// Cases for a machine that has an NVIDIA GPU: kernels compiled for it, with their memory and what the reference device
// makes of it, in a file that cuda/launch.cpp runs. RUSSET_TEST_CUDA_CASES names the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "gpu/kernel_cases.h"
#include "kernels/nvrtc.h"
#include "ops/table.h"

namespace russet::kernels {
namespace {

using gputest::along_axis;
using gputest::array;
using gputest::Case;
using gputest::Layout;
using gputest::product;
using gputest::Recorded;
using gputest::rows_by_index;
using ops::Op;

constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16};

Case of_elements(Op op, DType type, int inputs, double bound) {
  Case one;
  one.name = fmt::format("{} {}", ops::row(op).name, name_of(type));
  one.op = op;
  for (int i = 0; i < inputs; ++i) one.inputs.push_back(array(type, {37, 52}));
  one.output = array(type, {37, 52});
  one.tolerance = std::max(gputest::tolerance(type), bound);
  return one;
}

Case reduced(Op op, DType type, const Shape& sizes, int axis) {
  Case one;
  one.name = fmt::format("{} {} {} over axis {}", ops::row(op).name, name_of(type), to_string(sizes), axis);
  one.op = op;
  one.attributes = ops::Axes{1U << axis, false};
  one.inputs = {array(type, sizes)};
  Shape kept = sizes;
  kept[axis] = 1;
  one.output = array(op == Op::argmax ? DType::int64 : type, kept);
  one.tolerance = op == Op::sum ? gputest::tolerance(type) : 0;
  one.scale = std::sqrt(static_cast<double>(sizes[axis]));
  return one;
}

void add_groups(std::vector<Case>& cases) {
  for (const DType type : floats) {
    for (const Op op : {Op::neg, Op::exp, Op::tanh, Op::sqrt, Op::erf, Op::log1p, Op::sigmoid, Op::sin, Op::round}) {
      cases.push_back(of_elements(op, type, 1, 4e-7));
      if (op == Op::sqrt || op == Op::log1p) cases.back().inputs[0].fill = {0.1, 3};
    }
    for (const Op op : {Op::add, Op::mul, Op::div, Op::maximum, Op::floor_divide, Op::fmod, Op::atan2}) {
      cases.push_back(of_elements(op, type, 2, 4e-7));
      cases.back().inputs[1].fill = {0.5, 3};
    }
    for (const Shape& sizes : {Shape{300, 40}, Shape{5, 3000}, Shape{3000, 5}, Shape{2, 70000}}) {
      for (const int axis : {0, 1}) {
        cases.push_back(reduced(Op::sum, type, sizes, axis));
        cases.push_back(reduced(Op::amax, type, sizes, axis));
        cases.push_back(reduced(Op::argmax, type, sizes, axis));
      }
    }
  }
  for (const DType type : {DType::int32, DType::int64}) {
    for (const Op op : {Op::add, Op::mul, Op::maximum, Op::bitwise_xor}) cases.push_back(of_elements(op, type, 2, 0));
  }
}

void add_templates(std::vector<Case>& cases) {
  for (const DType type : floats) {
    for (const Layout left : {Layout::contiguous, Layout::reversed}) {
      for (const Layout right : {Layout::contiguous, Layout::reversed}) {
        cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, left, right));
      }
    }
    cases.push_back(product(type, {520, 70}, {70, 515}, {520, 515}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {20, 1500}, {1500, 17}, {20, 17}, Layout::contiguous, Layout::reversed));
    cases.push_back(product(type, {1, 33}, {33, 70}, {1, 70}, Layout::contiguous, Layout::contiguous));
    gputest::add_convolutions(cases, type,
                              {2, 5, 12, 11, 9, 3, 3, {.stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 1}}},
                              Layout::contiguous);
    gputest::add_pools(cases, type, {2, 3, 7, 9},
                       {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}, .padding_after = {1, 0}},
                       Layout::contiguous, false);
    cases.push_back(along_axis(Op::argsort, type, {2, 1700}, 1, Layout::contiguous));
    cases.push_back(along_axis(Op::cumsum, type, {2, 2100}, 1, Layout::contiguous));
    cases.push_back(rows_by_index(Op::take, type, {7, 5}, {3, 4}, Layout::contiguous, false));
    cases.push_back(rows_by_index(Op::put, type, {7, 5}, {4, 10}, Layout::contiguous, true));
  }
}

/// Contractions that compute what they read.
void add_prologues(std::vector<Case>& cases) {
  for (const DType type : floats) {
    const std::size_t first = cases.size();
    cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, Layout::flipped, Layout::reversed));
    cases.push_back(product(type, {520, 70}, {70, 515}, {520, 515}, Layout::contiguous, Layout::contiguous));
    cases.push_back(product(type, {1, 33}, {33, 70}, {1, 70}, Layout::contiguous, Layout::contiguous));
    gputest::add_convolutions(cases, type,
                              {2, 9, 12, 11, 17, 3, 3, {.stride = {2, 1}, .padding = {1, 1}, .padding_after = {1, 1}}},
                              Layout::channels_last);
    for (std::size_t i = first; i < cases.size(); ++i) {
      cases[i].prologues = true;
      cases[i].name += " with prologues";
    }
  }
}

/// Contractions that store what they compute to read it, since others read it too.
void add_storing(std::vector<Case>& cases) {
  for (const DType type : floats) {
    const std::size_t first = cases.size();
    gputest::add_storing(cases, type);
    cases.push_back(product(type, {520, 70}, {70, 515}, {520, 515}, Layout::contiguous, Layout::reversed));
    cases.back().prologues = cases.back().storing = true;
    for (std::size_t i = first; i < cases.size(); ++i) cases[i].name += " with storing prologues";
  }
}

/// Contractions that update in place what they would else store the gradient for.
void add_updates(std::vector<Case>& cases) {
  for (const DType type : floats) {
    const std::size_t first = cases.size();
    gputest::add_updates(cases, type);
    cases.push_back(product(type, {520, 70}, {70, 515}, {520, 515}, Layout::contiguous, Layout::reversed));
    cases.back().updates = true;
    for (std::size_t i = first; i < cases.size(); ++i) cases[i].name += " with updates";
  }
}

/// Attention in both sizes of blocks, and in heads that fit none.
void add_attentions(std::vector<Case>& cases) {
  for (const DType type : floats) {
    gputest::add_attentions(cases, type, {{2}, 70, 45, 20, 33, true});
    gputest::add_attentions(cases, type, {{1}, 33, 70, 64, 64, false, Shape{1, 1, 70}, true, 0.25});
    gputest::add_attentions(cases, type, {{2}, 19, 21, 100, 90});
    gputest::add_attentions(cases, type, {{1}, 9, 11, 130, 5});
  }
}

class Writer {
 public:
  explicit Writer(const char* path) : file_(path, std::ios::binary) {}
  template <class T>
  void number(T value) {
    file_.write(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void size(std::uint64_t value) { number(value); }
  void bytes(std::string_view text) {
    size(text.size());
    file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  void bytes(const std::vector<std::byte>& bytes_of) {
    bytes({reinterpret_cast<const char*>(bytes_of.data()), bytes_of.size()});
  }

 private:
  std::ofstream file_;
};

void write(Writer& out, const Recorded& record) {
  out.bytes(record.name);
  out.size(record.units.size());
  for (const gpu::CompilationUnit& unit : record.units) out.bytes(compile_for_cuda(unit).code);
  out.size(record.memory.size());
  for (const auto& memory : record.memory) out.bytes(memory);
  out.size(record.launches.size());
  for (const Recorded::Launch& launch : record.launches) {
    out.size(launch.unit);
    out.bytes(launch.kernel);
    for (const std::uint32_t groups : launch.groups) out.size(groups);
    out.size(launch.threads);
    out.size(launch.buffers.size());
    for (const auto& [memory, offset] : launch.buffers) {
      out.size(memory);
      out.size(offset);
    }
    out.bytes(launch.values);
  }
  out.size(record.results.size());
  for (const Recorded::Result& result : record.results) {
    out.size(result.memory);
    out.bytes(name_of(result.dtype));
    out.number(result.bound);
    out.size(result.places.size());
    for (std::size_t i = 0; i < result.places.size(); ++i) {
      out.number(result.places[i]);
      out.number(result.expected[i]);
    }
  }
}

TEST(Cuda, CasesAreRecorded) {
  const char* const path = std::getenv("RUSSET_TEST_CUDA_CASES");
  if (path == nullptr) GTEST_SKIP() << "nobody asks for them";
  if (const std::string reason = nvrtc_missing(); !reason.empty()) GTEST_SKIP() << reason;
  std::vector<Case> cases;
  add_groups(cases);
  add_templates(cases);
  add_prologues(cases);
  add_storing(cases);
  add_updates(cases);
  add_attentions(cases);
  Writer out(path);
  out.size(cases.size());
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    write(out, gputest::record(one));
  }
}

}  // namespace
}  // namespace russet::kernels
