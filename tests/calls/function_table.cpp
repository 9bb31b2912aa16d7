#include "calls/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "calls/arguments.h"

namespace golden {
namespace {

using namespace russet;

template <DType To>
Results converted(const Call& call) {
  return {call.tensor(0).to(To)};
}

/// dim, start, stop, step.
Results sliced(const Call& call) {
  Slice range{.step = call.integer(4)};
  if (call.has(2)) range.start = call.integer(2);
  if (call.has(3)) range.stop = call.integer(3);
  return {call.tensor(0).slice(call.integer(1), range)};
}

/// indices, weight, padding, largest norm, kind of norm; then the result and the weight as it has become.
Results limited_embedding(const Call& call) {
  const Tensor result = embedding(call.tensor(0), call.tensor(1), {}, call.real(3), call.real(4));
  return {result, call.tensor(1).detach()};
}

/// The result, and the running statistics as they have become.
Results batch_norm_with_statistics(const Call& call) {
  BatchNormOptions options;
  if (call.has(5)) options.training = call.flag(5);
  if (call.has(6)) options.momentum = call.real(6);
  if (call.has(7)) options.eps = call.real(7);
  const Tensor mean = call.tensor(1);
  const Tensor variance = call.tensor(2);
  return {batch_norm(call.tensor(0), mean, variance, call.tensor(3), call.tensor(4), options), mean, variance};
}

/// What is no function of the table, or answers more than its result.
const std::map<std::string_view, Results (*)(const Call&)>& others() {
  static const std::map<std::string_view, Results (*)(const Call&)> table{
      {"to", [](const Call& call) -> Results { return {call.tensor(0).to(dtype_of(call.text(1), DType::float32))}; }},
      {"to_float64", converted<DType::float64>},
      {"to_float32", converted<DType::float32>},
      {"to_float16", converted<DType::float16>},
      {"to_bfloat16", converted<DType::bfloat16>},
      {"to_int64", converted<DType::int64>},
      {"to_int32", converted<DType::int32>},
      {"to_int8", converted<DType::int8>},
      {"to_uint8", converted<DType::uint8>},
      {"to_bool", converted<DType::boolean>},
      {"slice", sliced},
      {"embedding_max_norm", limited_embedding},
      {"batch_norm", batch_norm_with_statistics},
      {"promote_types", [](const Call& call) -> Results {
         return {zeros({}, {promote(call.tensor(0).dtype(), call.tensor(1).dtype()), call.device()})};
       }}};
  return table;
}

using Forms = std::map<std::string, NamedForm, std::less<>>;

void add_forms(const FunctionRow& row, std::string_view name, Forms& forms) {
  if (row.has(&Overload::function)) forms[std::string(name)] = {&row, &Overload::function};
  if (row.has(&Overload::method)) {
    const NamedForm method{&row, &Overload::method};
    forms.try_emplace(std::string(name), method);
    forms[fmt::format("Tensor.{}", name)] = method;
  }
  if (row.has(&Overload::in_place)) forms[fmt::format("{}_", name)] = {&row, &Overload::in_place};
}

/// Functions first: a method's plain name is the function's where there are both.
Forms all_forms() {
  Forms forms;
  for (const bool functions : {true, false}) {
    for (const FunctionRow& row : function_table()) {
      if (row.has(&Overload::function) != functions) continue;
      add_forms(row, row.name, forms);
      for (const std::string_view alias : row.aliases) add_forms(row, alias, forms);
    }
  }
  return forms;
}

}  // namespace

bool FunctionRow::has(Overload::Form Overload::*form) const {
  return std::any_of(overloads.begin(), overloads.end(), [&](const Overload& o) { return o.*form != nullptr; });
}

Results NamedForm::operator()(const Call& call) const {
  for (const Overload& overload : row->overloads) {
    if (overload.*form == nullptr) continue;
    if (const auto arguments = Arguments::bound(call, overload)) return (overload.*form)(*arguments);
  }
  throw std::runtime_error(fmt::format("no overload of {} takes these arguments", row->name));
}

NamedForm form_named(std::string_view name) {
  static const Forms forms = all_forms();
  const auto found = forms.find(name);
  return found == forms.end() ? NamedForm{} : found->second;
}

Function function_named(std::string_view name) {
  if (const auto other = others().find(name); other != others().end()) return other->second;
  const NamedForm named = form_named(name);
  if (named.row == nullptr) throw std::runtime_error(fmt::format("there is no function {}", name));
  return named;
}

}  // namespace golden
