#pragma once
// Runs the random programs of docs/golden.md, step by step, and says where russet and PyTorch part.
#include <russet/autograd.h>
#include <russet/tensor.h>

#include <string>
#include <vector>

namespace golden {

/// One line of a program: an operation with its arguments, and PyTorch's outcome.
struct Step {
  std::string line;
  std::string name;
  std::vector<std::string> arguments;
  std::string outcome;  // after "=", or empty
  std::string error;    // after "!", or empty
};
Step parse_step(const std::string& line);

class Program {
 public:
  explicit Program(std::uint64_t seed, russet::Device device) : seed_(seed), device_(device) {}

  /// Runs a step; an empty string if its outcome is PyTorch's, else what differs. Steps may run in several threads, one
  /// after another.
  std::string run(const Step& step);
  /// Whether what was lost is refused at each read, whatever happened since: empty, or what is wrong.
  std::string read_lost() const;

 private:
  using Numbers = std::vector<std::int64_t>;
  std::size_t handle(const Step& step, std::size_t i) const;
  const russet::Tensor& tensor(const Step& step, std::size_t i) const;
  std::int64_t number(const Step& step, std::size_t i) const;
  russet::Tensor integers(std::uint64_t offset, const russet::Shape& shape, std::int64_t low, std::int64_t high) const;

  std::string outcome_of(const Step& step);
  bool make_view(const Step& step, russet::Tensor& made) const;
  bool make_value(const Step& step, russet::Tensor& made) const;
  bool write(const Step& step) const;
  bool lose(const Step& step);
  russet::Tensor selected(const Step& step) const;
  std::string gradients(const Step& step) const;
  std::string add(const russet::Tensor& made, const Step& step);
  std::string compare_meta(std::size_t index, const std::string& expected) const;

  std::uint64_t seed_;
  russet::Device device_;
  std::uint64_t leaves_ = 0;
  std::vector<russet::Tensor> handles_;
  std::vector<russet::Tensor> lost_;  // what failing operators would have made
  bool grad_mode_ = true;
};

}  // namespace golden
