#pragma once
// Cases of each primitive that has kernels of its own.
#include "gpu/kernel_bench.h"

namespace russet::gputest {

/// What float32 sums lose, and half an ulp of the type.
double tolerance(DType type);
/// An array of small numbers, whole for integers.
Array array(DType type, const Shape& sizes, Layout layout = Layout::contiguous);

Case product(DType type, const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
             Layout right_layout);

struct ConvolutionShape {
  std::int64_t images, inputs, height, width, outputs, kernel_height, kernel_width;
  ops::Window window;
};

/// The convolution and both gradients.
void add_convolutions(std::vector<Case>& cases, DType type, const ConvolutionShape& s, Layout layout);

/// max_pool and max_unpool and, if not `maxima_only`, sum_pool and sum_unpool, of floating types with a bias and relu,
/// too.
void add_pools(std::vector<Case>& cases, DType type, const Shape& x, const ops::Window& window, Layout layout,
               bool maxima_only);

/// max_pool that stores where its maxima were, and max_unpool that reads it.
void add_pools_with_positions(std::vector<Case>& cases, DType type, const Shape& x, const ops::Window& window,
                              Layout layout);

/// take or put, with index tensors of these sizes.
Case by_index(ops::Op op, DType type, const Shape& x, const ops::Indexing& indexing, const std::vector<Shape>& index,
              Layout layout, DType index_type = DType::int64);
/// Both, along several axes and by several index tensors.
void add_indexing(std::vector<Case>& cases, DType type, Layout layout);
/// take or put of rows.
Case rows_by_index(ops::Op op, DType type, const Shape& x, const Shape& index, Layout layout, bool adds);

/// Contractions whose epilogues update in place what lies like their result.
void add_updates(std::vector<Case>& cases, DType type);

/// Contractions that compute what they read, and store it: as many tiles as lie side by side read each element.
void add_storing(std::vector<Case>& cases, DType type);

struct AttentionShape {
  Shape batch;
  std::int64_t rows, columns, width, values;
  bool causal = false;
  std::optional<Shape> mask{};
  bool additive = false;
  double dropout = 0;
  bool draws = true;  // the random numbers
};

/// The five operators of attention, and both pairs that one kernel computes.
void add_attentions(std::vector<Case>& cases, DType type, const AttentionShape& s, Layout layout = Layout::contiguous);

/// The three gradients by one kernel.
Case attention_gradients_at_once(DType type, const AttentionShape& s);

/// argsort or cumsum.
Case along_axis(ops::Op op, DType type, const Shape& x, int axis, Layout layout, bool descending = false,
                std::int64_t first = 0);

/// Elements before and after those of each array: 8, where they are read and written in vectors.
void set_margin(Case& one, std::int64_t margin);
/// Attention on a GPU that has tensor cores: probabilities and slopes are rounded, too.
void put_on_tensor_cores(Case& one);
/// All of them, and each once more with rows in whole vectors.
void put_on_tensor_cores_in_vectors_too(std::vector<Case>& cases);
/// On a GPU whose warpgroups multiply by tensor cores.
void put_on_warpgroups(Case& one);
/// All of them sample by sample, but for gradients of weights, which need all samples.
void put_on_samples(std::vector<Case>& cases);

}  // namespace russet::gputest
