#include "calls/arguments.h"

#include <algorithm>

namespace golden {
namespace {

bool is_number(const Json& value) {
  if (value.is_number()) return true;
  return value.is_string() && (value == "inf" || value == "-inf" || value == "nan");
}

bool is_list_of_integers(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_number_integer(); });
}

/// Whether a value can be the argument of a parameter of a type of the table.
bool fits(std::string_view type, const Json& value) {
  if (type == "Tensor") return value.is_object();
  if (type == "Tensor[]" || type == "Index[]") return value.is_array();
  if (type == "Scalar") return is_number(value) || value.is_boolean();
  if (type == "float") return is_number(value);
  if (type == "float[2]") return value.is_array() && value.size() == 2 && is_number(value[0]) && is_number(value[1]);
  if (type == "bool") return value.is_boolean();
  if (type == "int" || type == "dim") return value.is_number_integer();
  if (type == "int[]") return is_list_of_integers(value);
  if (type == "dims" || type == "shape" || type == "int[2]" || type == "int[3]")
    return value.is_number_integer() || is_list_of_integers(value);
  if (type == "str") return value.is_string() && !is_number(value);
  if (type.starts_with("padding")) return value.is_string() || value.is_number_integer() || is_list_of_integers(value);
  return value.is_string();
}

std::size_t position_of(const Call& call, const Overload& overload, std::size_t parameter) {
  if (parameter < call.unnamed()) return parameter;
  const auto& names = call.names();
  const auto found = std::find(names.begin(), names.end(), overload.parameters[parameter].name);
  return found == names.end() ? Call::nowhere : call.unnamed() + static_cast<std::size_t>(found - names.begin());
}

/// "i:3", "s:start:stop:step", ":", "..." or "new".
russet::Index entry_of(const std::string& text) {
  if (text == "...") return russet::Ellipsis{};
  if (text == "new") return russet::NewAxis{};
  if (text == ":") return russet::Slice{};
  if (text.starts_with("i:")) return static_cast<std::int64_t>(std::stoll(text.substr(2)));
  russet::Slice range;
  std::size_t start = 2;
  for (int part = 0; part < 3 && start <= text.size(); ++part) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) {
      const std::int64_t number = std::stoll(text.substr(start, end - start));
      if (part == 0) range.start = number;
      if (part == 1) range.stop = number;
      if (part == 2) range.step = number;
    }
    start = end + 1;
  }
  return range;
}

}  // namespace

std::optional<Arguments> Arguments::bound(const Call& call, const Overload& overload) {
  if (call.unnamed() > overload.parameters.size()) return {};
  Arguments arguments;
  arguments.call_ = &call;
  std::size_t used = 0;
  for (std::size_t i = 0; i < overload.parameters.size(); ++i) {
    const ParameterRow& parameter = overload.parameters[i];
    const std::size_t position = position_of(call, overload, i);
    arguments.positions_.push_back(position);
    if (position == Call::nowhere) {
      if (parameter.required) return {};
      continue;
    }
    ++used;
    const Json& value = call.value(position);
    if (value.is_null() ? !parameter.optional : !fits(parameter.type, value)) return {};
  }
  if (used != call.unnamed() + call.names().size()) return {};
  return arguments;
}

Results Arguments::results(bool result) const { return {russet::full({}, result, {{}, call_->device()})}; }

std::vector<russet::Index> index_of(const Call& call, std::size_t position) {
  std::vector<russet::Index> indices;
  const Json& entries = call.value(position);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_string()) {
      indices.push_back(entry_of(entries[i].get<std::string>()));
    } else {
      indices.push_back(call.tensors(position)[i]);
    }
  }
  return indices;
}

russet::Generator* fresh_generator() {
  static thread_local russet::Generator generator;
  generator.manual_seed(Call::seed);
  return &generator;
}

}  // namespace golden
