#include "golden/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <optional>
#include <sstream>
#include <stdexcept>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::Dims;
using russet::Tensor;

/// "1,2,3"; "-" is no number.
Dims dims_of(const std::string& text) {
  Dims dims;
  if (text == "-") return dims;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) dims.push_back(std::stoll(part));
  return dims;
}

/// Numbers as PyTorch has them. Where a value was overwritten, PyTorch's gradients of what was there before are zeros;
/// russet has none.
std::string compare_values(const Tensor& found, const std::string& text) {
  if (text == "none") return found.defined() ? "it is defined, not none" : "";
  std::vector<double> expected;
  std::istringstream stream(text == "-" ? "" : text);
  for (std::string part; stream >> part;) expected.push_back(std::stod(part));
  if (found.defined()) return difference(found.to_vector<double>(), expected, 1e-9);
  for (const double number : expected) {
    if (number != 0) return fmt::format("it is undefined, not {}", text);
  }
  return {};
}

/// As use_often() of scripts/golden/random_programs.py.
Tensor used_often(const Tensor& a, const Tensor& b, std::int64_t count) {
  Tensor result = a * b;
  for (std::int64_t i = 1; i < count; ++i) {
    const Tensor product = russet::matmul(a.reshape({1, -1}), b.reshape({-1, 1})).reshape({});
    result = result + (a * b) * (1 + i % 2) + product * 0.5;
  }
  return result;
}

/// What kind of exception stands for a kind of PyTorch's error.
bool stands_for(const russet::Error& error, const std::string& kind) {
  if (kind == "shape") {
    return dynamic_cast<const russet::ShapeError*>(&error) || dynamic_cast<const russet::IndexError*>(&error) ||
           dynamic_cast<const russet::ValueError*>(&error);
  }
  if (kind == "index") return dynamic_cast<const russet::IndexError*>(&error) != nullptr;
  if (kind == "division") return dynamic_cast<const russet::ValueError*>(&error) != nullptr;
  if (kind == "overlap" || kind == "any") return dynamic_cast<const russet::InternalError*>(&error) == nullptr;
  return dynamic_cast<const russet::AutogradError*>(&error) != nullptr;
}

}  // namespace

Step parse_step(const std::string& line) {
  Step step;
  step.line = line;
  std::istringstream stream(line);
  stream >> step.name;
  for (std::string word; stream >> word;) {
    if (word == "=") {
      std::getline(stream >> std::ws, step.outcome);
    } else if (word.front() == '!') {
      step.error = word.substr(1);
    } else {
      step.arguments.push_back(word);
    }
  }
  return step;
}

std::size_t Program::handle(const Step& step, std::size_t i) const { return std::stoul(step.arguments.at(i)); }
const Tensor& Program::tensor(const Step& step, std::size_t i) const { return handles_.at(handle(step, i)); }
std::int64_t Program::number(const Step& step, std::size_t i) const { return std::stoll(step.arguments.at(i)); }

Tensor Program::integers(std::uint64_t offset, const russet::Shape& shape, std::int64_t low, std::int64_t high) const {
  return golden::integer(seed_, offset, shape, low, high, russet::DType::float64, device_);
}

std::string Program::run(const Step& step) {
  std::optional<russet::NoGrad> no_grad;
  if (!grad_mode_) no_grad.emplace();
  try {
    const std::string found = outcome_of(step);
    if (step.error == "freed-write") return {};
    if (!step.error.empty()) return fmt::format("nothing was thrown, PyTorch says '{}'", step.error);
    return found;
  } catch (const russet::Error& error) {
    if (step.error.empty()) return fmt::format("it throws: {}", error.what());
    if (!stands_for(error, step.error)) return fmt::format("'{}' is not '{}'", error.what(), step.error);
    return {};
  }
}

std::string Program::outcome_of(const Step& step) {
  if (step.name == "no_grad" || step.name == "grad_mode") {
    grad_mode_ = step.name == "grad_mode";
    return {};
  }
  if (step.name == "read") return compare_values(tensor(step, 0), step.outcome);
  if (step.name == "meta") return compare_meta(handle(step, 0), step.outcome);
  if (step.name == "grad_is") return compare_values(tensor(step, 0).grad(), step.outcome);
  if (step.name == "drop_grad") {
    tensor(step, 0).set_grad({});
    return {};
  }
  if (step.name == "backward") {
    const Tensor& root = tensor(step, 0);
    const std::string& offset = step.arguments.at(2);
    root.backward(offset == "-" ? Tensor() : integers(std::stoull(offset), root.sizes(), -3, 4), number(step, 1) != 0);
    return {};
  }
  if (step.name == "gradients") return gradients(step);
  if (step.name == "grad") {
    const Tensor gradient = tensor(step, 0).grad();
    if (gradient.defined() != (step.outcome != "none"))
      return fmt::format("it is {}", gradient.defined() ? "defined" : "none");
    return gradient.defined() ? add(gradient, step) : "";
  }
  if (lose(step)) return {};
  if (write(step)) return compare_meta(handle(step, 0), step.outcome);
  Tensor made;
  if (step.name == "leaf") {
    made = integers(leaves_++, dims_of(step.arguments.at(0)), -4, 5);
    made.requires_grad_(number(step, 1) != 0);
    return add(made, step);
  }
  if (make_view(step, made) || make_value(step, made)) return add(made, step);
  throw std::runtime_error("no operation is called " + step.name);
}

std::string Program::add(const Tensor& made, const Step& step) {
  if (!step.error.empty()) return {};
  handles_.push_back(made);
  return compare_meta(handles_.size() - 1, step.outcome);
}

bool Program::make_view(const Step& step, Tensor& made) const {
  const std::string& name = step.name;
  if (name == "leaf") return false;
  const Tensor& x = tensor(step, 0);
  if (name == "select") {
    made = x.select(number(step, 1), number(step, 2));
  } else if (name == "slice") {
    made = x.slice(number(step, 1), {number(step, 2), number(step, 3), number(step, 4)});
  } else if (name == "transpose") {
    made = x.transpose(number(step, 1), number(step, 2));
  } else if (name == "permute") {
    made = x.permute(dims_of(step.arguments.at(1)));
  } else if (name == "view") {
    made = x.view(dims_of(step.arguments.at(1)));
  } else if (name == "reshape") {
    made = x.reshape(dims_of(step.arguments.at(1)));
  } else if (name == "expand") {
    made = x.expand(dims_of(step.arguments.at(1)));
  } else if (name == "squeeze") {
    made = x.squeeze();
  } else if (name == "squeeze_axis") {
    made = x.squeeze(number(step, 1));
  } else if (name == "unsqueeze") {
    made = x.unsqueeze(number(step, 1));
  } else if (name == "diagonal") {
    made = x.diagonal(number(step, 1), number(step, 2), number(step, 3));
  } else if (name == "detach") {
    made = x.detach();
  } else if (name == "t") {
    made = x.t();
  } else if (name == "narrow") {
    made = x.narrow(number(step, 1), number(step, 2), number(step, 3));
  } else if (name == "flatten") {
    made = x.flatten();
  } else if (name == "contiguous") {
    made = x.contiguous();
  } else {
    return false;
  }
  return true;
}

bool Program::make_value(const Step& step, Tensor& made) const {
  const std::string& name = step.name;
  const Tensor& x = tensor(step, 0);
  if (name == "add") {
    made = x + tensor(step, 1);
  } else if (name == "sub") {
    made = x - tensor(step, 1);
  } else if (name == "mul") {
    made = x * tensor(step, 1);
  } else if (name == "matmul") {
    made = russet::matmul(x, tensor(step, 1));
  } else if (name == "cat") {
    made = russet::cat({x, tensor(step, 1)});
  } else if (name == "neg") {
    made = -x;
  } else if (name == "sin") {
    made = russet::sin(x);
  } else if (name == "tanh") {
    made = russet::tanh(x);
  } else if (name == "relu") {
    made = russet::relu(x);
  } else if (name == "square") {
    made = russet::square(x);
  } else if (name == "add_number") {
    made = x + number(step, 1);
  } else if (name == "mul_number") {
    made = x * number(step, 1);
  } else if (name == "div_number") {
    made = x / number(step, 1);
  } else if (name == "sum") {
    made = russet::sum(x);
  } else if (name == "sum_axis") {
    made = russet::sum(x, number(step, 1));
  } else if (name == "clone") {
    made = x.clone();
  } else if (name == "index_select") {
    made = selected(step);
  } else if (name == "shared") {
    made = used_often(x, tensor(step, 1), number(step, 2));
  } else {
    return false;
  }
  return true;
}

/// Rows by numbers that the host does not see when it is asked.
Tensor Program::selected(const Step& step) const {
  const Dims numbers = dims_of(step.arguments.at(2));
  const Tensor given = Tensor::from(std::vector<std::int64_t>(numbers.begin(), numbers.end()),
                                    {static_cast<std::int64_t>(numbers.size())}, device_);
  return russet::index_select(tensor(step, 0), number(step, 1), given + Tensor::from<std::int64_t>({0}, {1}, device_));
}

/// Steps that PyTorch refuses at once, and russet when they are computed, with all that is pending.
bool Program::lose(const Step& step) {
  if (!step.name.starts_with("lost_")) return false;
  const Tensor x = tensor(step, 0);
  if (step.name == "lost_select") {
    lost_.push_back(selected(step));
  } else if (step.name == "lost_write") {
    x.add_(russet::sum(selected(step)));
  } else if (step.name == "lost_backward") {
    const Tensor loss = russet::sum(russet::square(selected(step)));
    loss.backward({}, true);
  } else {
    const Tensor zeros = russet::zeros_like(x, {.dtype = russet::DType::int64});
    const Tensor ones = russet::sum(zeros) * 0;
    lost_.push_back(russet::floor_divide(x.detach().to(russet::DType::int64), zeros + ones));
  }
  russet::flush();
  return true;
}

std::string Program::read_lost() const {
  for (const Tensor& tensor : lost_) {
    for (int times = 0; times < 2; ++times) {
      try {
        tensor.to_vector<double>();
        return "a value that was lost is there";
      } catch (const russet::Error&) {
      }
    }
  }
  return {};
}

bool Program::write(const Step& step) const {
  const std::string& name = step.name;
  if (name == "requires_grad_") {
    Tensor leaf = tensor(step, 0);
    leaf.requires_grad_();
  } else if (name == "zero_") {
    tensor(step, 0).zero_();
  } else if (name == "fill_") {
    tensor(step, 0).fill_(number(step, 1));
  } else if (name == "add_number_") {
    tensor(step, 0).add_(number(step, 1));
  } else if (name == "mul_number_") {
    tensor(step, 0).mul_(number(step, 1));
  } else if (name == "div_number_") {
    tensor(step, 0).div_(number(step, 1));
  } else if (name == "add_") {
    tensor(step, 0).add_(tensor(step, 1));
  } else if (name == "sub_") {
    tensor(step, 0).sub_(tensor(step, 1));
  } else if (name == "mul_") {
    tensor(step, 0).mul_(tensor(step, 1));
  } else if (name == "copy_") {
    tensor(step, 0).copy_(tensor(step, 1));
  } else {
    return false;
  }
  return true;
}

std::string Program::gradients(const Step& step) const {
  const Tensor& output = tensor(step, 0);
  std::vector<Tensor> inputs;
  for (const std::int64_t index : dims_of(step.arguments.at(3)))
    inputs.push_back(handles_.at(static_cast<std::size_t>(index)));
  const Tensor gradient = integers(static_cast<std::uint64_t>(number(step, 1)), output.sizes(), -3, 4);
  const bool allow_unused = number(step, 2) != 0;
  const auto found =
      russet::autograd::grad({output}, inputs, {gradient}, {.retain_graph = true, .allow_unused = allow_unused});
  std::size_t start = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t end = std::min(step.outcome.find(" | ", start), step.outcome.size());
    const std::string different = compare_values(found[i], step.outcome.substr(start, end - start));
    if (!different.empty()) return fmt::format("gradient {}: {}", i, different);
    start = end + 3;
  }
  return {};
}

// Sizes, strides, offset, requires_grad and is_leaf, version, the first handle on the same storage.
std::string Program::compare_meta(std::size_t index, const std::string& expected) const {
  const Tensor& t = handles_.at(index);
  const auto text = [](const Dims& dims) {
    return dims.empty() ? std::string("-") : fmt::format("{}", fmt::join(dims, ","));
  };
  std::size_t alias = 0;
  while (!handles_[alias].shares_storage(t)) ++alias;
  const bool known = expected.find("??") == std::string::npos;
  const std::string flags = known ? fmt::format("{}{}", t.requires_grad() ? 'r' : '-', t.is_leaf() ? 'l' : '-') : "??";
  const std::string version = expected.find('*') == std::string::npos ? std::to_string(t.version()) : "*";
  const std::string strides = t.numel() > 0 ? text(t.strides()) : "?";
  const std::string found =
      fmt::format("{};{};{};{};{};{}", text(t.sizes()), strides, t.storage_offset(), flags, version, alias);
  return found == expected ? "" : fmt::format("handle {} is {}, not {}", index, found, expected);
}

}  // namespace golden
