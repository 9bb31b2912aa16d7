#pragma once
// Samples that are rows of two tensors.
#include <russet/data/dataset.h>
#include <russet/tensor.h>
#include <filesystem>
#include <memory>

namespace russet::data {

/// Sample i is (x[i], y[i]). Integer targets become int64; a target of shape [n, 1] stays one.
class TensorDataset final : public Dataset {
 public:
  /// Copies the tensors' values. Throws ShapeError unless both have the same number of rows.
  TensorDataset(const Tensor& x, const Tensor& y);
  /// Tensors `x` and `y` of a safetensors file; x is read from the mapped file, row by row. Throws FileError.
  explicit TensorDataset(const std::filesystem::path& file);

  std::int64_t size() const override { return size_; }
  Field input() const override { return input_; }
  Field target() const override { return target_; }
  void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const override;
  /// One more than the largest target, for integer targets that are scalars and not negative; else 0.
  std::int64_t classes() const override { return classes_; }

 private:
  void set_fields(DType x_dtype, const Shape& x_shape, DType y_dtype, const Shape& y_shape);
  void set_targets(std::span<const std::byte> bytes, DType dtype);

  std::int64_t size_ = 0;
  std::int64_t classes_ = 0;
  Field input_;
  Field target_;
  std::shared_ptr<const void> owner_;  // of the bytes of x
  std::span<const std::byte> inputs_;
  std::shared_ptr<const std::vector<std::byte>> targets_;
};

}  // namespace russet::data
