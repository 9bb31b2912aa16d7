#include "calls/call.h"

namespace golden {

Call::Call(const Json& arguments, russet::DType floating, russet::Device device)
    : floating_(floating), device_(device) {
  for (const Json& value : arguments) {
    Argument argument{value, {}, {}};
    if (value.is_object()) argument.tensor = make(value);
    if (value.is_array()) {
      for (const Json& entry : value) argument.tensors.push_back(entry.is_object() ? make(entry) : Tensor());
    }
    arguments_.push_back(std::move(argument));
  }
}

Tensor Call::make(const Json& spec) {
  ++offset_;
  const russet::Shape shape = shape_of(spec.at("s"));
  const std::string type = spec.at("t");
  const russet::DType dtype = dtype_of(type, floating_);
  Tensor tensor;
  if (spec.contains("v")) {
    tensor = Tensor::from(numbers(spec.at("v")), shape, device_).to(dtype);
  } else if (type == "float") {
    tensor = golden::real(seed, offset_, shape, spec.at("lo"), spec.at("hi"), dtype, device_);
  } else if (type == "bool") {
    tensor = golden::boolean(seed, offset_, shape, device_);
  } else {
    tensor = golden::integer(seed, offset_, shape, spec.at("lo"), spec.at("hi"), dtype, device_);
  }
  if (spec.contains("g")) leaves_.push_back(tensor.requires_grad_());
  return tensor;
}

Scalar Call::scalar(std::size_t i) const {
  const Json& number = value(i);
  if (number.is_boolean()) return number.get<bool>();
  if (number.is_number_integer()) return number.get<std::int64_t>();
  return real(i);
}

double Call::real(std::size_t i) const {
  const Json& number = value(i);
  return number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>();
}

std::vector<std::int64_t> Call::integers(std::size_t i) const {
  const Json& numbers = value(i);
  if (!numbers.is_array()) return {numbers.get<std::int64_t>()};
  return numbers.get<std::vector<std::int64_t>>();
}

russet::Size2 Call::size2(std::size_t i) const {
  const std::vector<std::int64_t> sizes = integers(i);
  return sizes.size() == 1 ? russet::Size2(sizes[0]) : russet::Size2(sizes[0], sizes[1]);
}

const Functions& functions() {
  static const Functions table = [] {
    Functions made;
    add_elementwise(made);
    add_reductions(made);
    add_movement(made);
    add_indexing(made);
    add_contractions(made);
    add_layers(made);
    add_losses(made);
    return made;
  }();
  return table;
}

}  // namespace golden
