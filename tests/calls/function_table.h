#pragma once
// The table of public functions (src/functional/table) as data: every function, method and in-place form can be called
// by its name.
#include <russet/tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace golden {

class Arguments;
class Call;
using Results = std::vector<russet::Tensor>;

struct ParameterRow {
  std::string_view name;
  std::string_view type;  // as the table says it
  bool optional;          // may be None
  bool required;
};

struct Overload {
  using Form = Results (*)(const Arguments&);

  std::vector<ParameterRow> parameters;
  Form function;  // each null where there is no such form; in-place forms write a copy of their receiver
  Form method;
  Form in_place;
};

struct FunctionRow {
  std::string_view name;
  std::string_view family;
  std::string_view python_name;
  std::vector<std::string_view> aliases;
  std::string_view parameters;     // of the first overload, as Python has them
  std::string_view documentation;  // likewise
  std::vector<Overload> overloads;

  /// Whether an overload has it.
  bool has(Overload::Form Overload::*form) const;
};
const std::vector<FunctionRow>& function_table();

/// A function as calls name it: a row in one of its forms, or what calls.cpp adds (conversions and the like).
using Function = std::function<Results(const Call&)>;

/// A row and one of its forms.
struct NamedForm {
  const FunctionRow* row = nullptr;
  Overload::Form Overload::*form = nullptr;

  /// Calls the first overload that takes the call's arguments. Throws std::runtime_error if there is none.
  Results operator()(const Call& call) const;
};

/// The form that a name stands for: "add", an alias, "add_", "Tensor.unfold" for a method whose name a function has,
/// too; without a row if there is none.
NamedForm form_named(std::string_view name);

/// What a recorded call names. Throws std::runtime_error for an unknown name.
Function function_named(std::string_view name);

}  // namespace golden
