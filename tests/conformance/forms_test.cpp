// Methods and in-place forms of every function against the function itself, over all calls that tests know.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "calls/arguments.h"
#include "conformance/composites.h"

namespace russet::conformance {
namespace {

using golden::Arguments;
using golden::FunctionRow;
using golden::NamedForm;
using golden::Overload;

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.detach().contiguous().to_bytes() : std::vector<std::byte>{};
}

/// The names of the rows of which `check` met a call.
using Names = std::set<std::string_view>;

/// Calls `check` with every call of a function that has a form, and the overload that takes it.
template <class Check>
Names for_each_call(Overload::Form Overload::*form, Check&& check) {
  Names met;
  for (const auto& [name, calls] : composites()) {
    const NamedForm function = golden::form_named(name);
    if (function.row == nullptr || function.form != &Overload::function || !function.row->has(form)) continue;
    for (const Composite& composite : calls) {
      SCOPED_TRACE(composite.text.substr(0, 300));
      const golden::Call call(composite.record, DType::float32, Device());
      for (const Overload& overload : function.row->overloads) {
        const auto arguments = Arguments::bound(call, overload);
        if (!arguments) continue;
        if (overload.*form != nullptr) {
          check(overload, *arguments);
          met.insert(function.row->name);
        }
        break;
      }
    }
  }
  return met;
}

/// Rows with the form of which no call was met.
std::vector<std::string_view> left_out(Overload::Form Overload::*form, const Names& met) {
  std::vector<std::string_view> names;
  for (const FunctionRow& row : golden::function_table()) {
    if (row.has(&Overload::function) && row.has(form) && !met.contains(row.name)) names.push_back(row.name);
  }
  return names;
}

TEST(Forms, MethodsAreTheirFunctions) {
  const auto met = for_each_call(&Overload::method, [](const Overload& overload, const Arguments& arguments) {
    const Results expected = overload.function(arguments);
    const Results found = overload.method(arguments);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(bytes_of(found[i]), bytes_of(expected[i]));
  });
  EXPECT_GT(met.size(), 150);
  for (const std::string_view name : left_out(&Overload::method, met)) EXPECT_EQ(name, "") << "is not called";
}

TEST(Forms, InPlaceFormsWriteTheFunctionsResult) {
  std::size_t written = 0;
  const auto met = for_each_call(&Overload::in_place, [&](const Overload& overload, const Arguments& arguments) {
    const Tensor expected = overload.function(arguments).front();
    const Tensor target = arguments.get<Tensor>(0);
    try {
      const Tensor found = overload.in_place(arguments).front();
      EXPECT_EQ(found.dtype(), target.dtype());
      EXPECT_EQ(bytes_of(found), bytes_of(expected.to(target.dtype())));
      ++written;
    } catch (const ShapeError&) {
      EXPECT_NE(expected.sizes(), target.sizes());
    } catch (const TypeError&) {
      EXPECT_NE(expected.dtype(), target.dtype());
    }
  });
  EXPECT_GT(written, 100);
  for (const std::string_view name : left_out(&Overload::in_place, met)) EXPECT_EQ(name, "") << "is not called";
}

TEST(Forms, AliasesAreTheirFunctions) {
  for (const FunctionRow& row : golden::function_table()) {
    for (const std::string_view alias : row.aliases) EXPECT_EQ(golden::form_named(alias).row, &row) << alias;
  }
}

}  // namespace
}  // namespace russet::conformance
