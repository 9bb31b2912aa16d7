// Einstein's summation: operands are multiplied from left to right, each pair as one batch of matrix products.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/matmul.h>
#include <russet/functional/reduction.h>

#include <algorithm>
#include <string>

#include "functional/build.h"

namespace russet {
namespace {

/// An operand whose axes have names: letters, and '0', '1', ... for the axes that "..." stands for, from the last.
struct Named {
  Tensor tensor;
  std::string axes;

  bool has(char name) const { return axes.find(name) != std::string::npos; }
  std::int64_t size(char name) const { return tensor.sizes()[static_cast<int>(axes.find(name))]; }
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool explicit_output = false;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& reason) {
  throw ValueError(fmt::format("einsum: \"{}\": {}", equation, reason));
}

Equation parse(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain.push_back(c);
  }
  Equation equation;
  const std::size_t arrow = plain.find("->");
  equation.explicit_output = arrow != std::string::npos;
  if (equation.explicit_output) equation.output = plain.substr(arrow + 2);
  const std::string left = plain.substr(0, arrow);
  for (std::size_t start = 0;;) {
    const std::size_t comma = left.find(',', start);
    equation.inputs.push_back(left.substr(start, comma - start));
    if (comma == std::string::npos) break;
    start = comma + 1;
  }
  return equation;
}

/// "ab...c" with the dots replaced by names of `count` axes.
std::string named(std::string_view equation, const std::string& subscripts, int count) {
  std::string names;
  bool dots = false;
  for (std::size_t i = 0; i < subscripts.size(); ++i) {
    const char c = subscripts[i];
    if (subscripts.compare(i, 3, "...") == 0) {
      if (dots) refuse(equation, "\"...\" stands twice in one operand");
      dots = true;
      for (int axis = count - 1; axis >= 0; --axis) names.push_back(static_cast<char>('0' + axis));
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      names.push_back(c);
    } else {
      refuse(equation, fmt::format("'{}' is not a letter", c));
    }
  }
  return names;
}

int dotted_axes(std::string_view equation, const std::string& subscripts, const Tensor& operand) {
  const std::size_t dots = subscripts.find("...");
  const int letters = static_cast<int>(subscripts.size()) - (dots == std::string::npos ? 0 : 3);
  const int rest = operand.dim() - letters;
  if (rest < 0 || (rest > 0 && dots == std::string::npos)) {
    refuse(equation,
           fmt::format("\"{}\" names {} dimensions of an operand {}", subscripts, letters, to_string(operand.sizes())));
  }
  return rest;
}

/// Axes of one name become their diagonal.
Named with_distinct_axes(Named operand) {
  for (std::size_t i = 0; i < operand.axes.size(); ++i) {
    const std::size_t again = operand.axes.find(operand.axes[i], i + 1);
    if (again == std::string::npos) continue;
    const auto a = static_cast<std::int64_t>(i);
    const auto b = static_cast<std::int64_t>(again);
    if (operand.tensor.size(a) != operand.tensor.size(b)) {
      throw ShapeError(fmt::format("einsum: dimension '{}' has sizes {} and {} in one operand", operand.axes[i],
                                   operand.tensor.size(a), operand.tensor.size(b)));
    }
    const char name = operand.axes[i];
    operand.tensor = operand.tensor.diagonal(0, a, b);
    operand.axes.erase(again, 1);
    operand.axes.erase(i, 1);
    operand.axes.push_back(name);
    --i;
  }
  return operand;
}

/// The operand with the axes `names`, in this order; missing ones have size 1.
Tensor arranged(const Named& operand, const std::string& names) {
  Dims order;
  for (const char name : names) {
    if (operand.has(name)) order.push_back(static_cast<std::int64_t>(operand.axes.find(name)));
  }
  Tensor result = operand.tensor.permute(order);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!operand.has(names[i])) result = result.unsqueeze(static_cast<std::int64_t>(i));
  }
  return result;
}

/// Sums the axes that nobody wants any more.
Named summed(Named operand, const std::string& wanted) {
  Dims gone;
  std::string left;
  for (std::size_t i = 0; i < operand.axes.size(); ++i) {
    if (wanted.find(operand.axes[i]) == std::string::npos) {
      gone.push_back(static_cast<std::int64_t>(i));
    } else {
      left.push_back(operand.axes[i]);
    }
  }
  if (!gone.empty()) operand.tensor = sum(operand.tensor, gone, false, operand.tensor.dtype());
  operand.axes = left;
  return operand;
}

/// What an axis is to a product of two operands.
struct Roles {
  std::string batch, inner, rows, columns;
};

/// Sizes of 1 broadcast: an axis of size 1 on one side belongs to the other side alone.
Roles roles_of(const Named& a, const Named& b, const std::string& wanted) {
  Roles roles;
  const auto counts = [](const Named& operand, char name) { return operand.has(name) && operand.size(name) != 1; };
  std::string all = a.axes;
  for (const char name : b.axes) {
    if (all.find(name) == std::string::npos) all.push_back(name);
  }
  for (const char name : all) {
    const bool kept = wanted.find(name) != std::string::npos;
    if (counts(a, name) && counts(b, name)) {
      if (a.size(name) != b.size(name)) {
        throw ShapeError(fmt::format("einsum: dimension '{}' has sizes {} and {}", name, a.size(name), b.size(name)));
      }
      (kept ? roles.batch : roles.inner).push_back(name);
    } else if (counts(b, name)) {
      roles.columns.push_back(name);
    } else {
      roles.rows.push_back(name);
    }
  }
  return roles;
}

std::int64_t size_of(const Named& a, const Named& b, const std::string& names, Shape* sizes = nullptr) {
  std::int64_t count = 1;
  for (const char name : names) {
    const std::int64_t in_a = a.has(name) ? a.size(name) : 1;
    const std::int64_t size = in_a != 1 || !b.has(name) ? in_a : b.size(name);
    if (sizes) sizes->push_back(size);
    count *= size;
  }
  return count;
}

Named multiplied(const Named& a, const Named& b, const std::string& wanted) {
  const Roles roles = roles_of(a, b, wanted);
  Named result{{}, roles.batch + roles.rows + roles.columns};
  if (roles.inner.empty()) {
    // Nothing to sum: a product of elements.
    result.tensor = arranged(a, result.axes) * arranged(b, result.axes);
    return summed(std::move(result), wanted);
  }
  const auto only = [](const Named& operand, const std::string& names) {
    std::string found;
    for (const char name : names) {
      if (operand.has(name)) found.push_back(name);
    }
    return found;
  };
  // Axes of size 1 on the side that does not count them go first: they are summed away for free.
  const Named left = summed(a, roles.batch + roles.rows + roles.inner);
  const Named right = summed(b, roles.batch + roles.inner + roles.columns);
  const Shape left_sizes{size_of(a, b, roles.batch), size_of(left, left, only(left, roles.rows)),
                         size_of(a, b, roles.inner)};
  const Shape right_sizes{left_sizes[0], left_sizes[2], size_of(right, right, roles.columns)};
  const Tensor product = matmul(arranged(left, roles.batch + roles.rows + roles.inner).reshape(left_sizes),
                                arranged(right, roles.batch + roles.inner + roles.columns).reshape(right_sizes));
  Shape sizes;
  size_of(a, b, result.axes, &sizes);
  result.tensor = product.reshape(sizes);
  return summed(std::move(result), wanted);
}

/// Without "->": the names that occur once, in alphabetical order, after the dots.
std::string implied_output(const std::vector<Named>& operands, int dots) {
  std::string all;
  for (const Named& operand : operands) all += operand.axes;
  std::string output;
  for (int axis = dots - 1; axis >= 0; --axis) output.push_back(static_cast<char>('0' + axis));
  std::string letters;
  for (const char name : all) {
    if (name >= 'A' && std::count(all.begin(), all.end(), name) == 1) letters.push_back(name);
  }
  std::sort(letters.begin(), letters.end());
  return output + letters;
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  const Equation parsed = parse(equation);
  if (parsed.inputs.size() != operands.size() || operands.empty()) {
    refuse(equation, fmt::format("it names {} operands, {} were given", parsed.inputs.size(), operands.size()));
  }
  int dots = 0;
  std::vector<Named> all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int count = dotted_axes(equation, parsed.inputs[i], operands[i]);
    dots = std::max(dots, count);
    all.push_back({operands[i], named(equation, parsed.inputs[i], count)});
  }
  const std::string output = parsed.explicit_output ? named(equation, parsed.output, dots) : implied_output(all, dots);
  for (const char name : output) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const Named& operand) { return operand.has(name); });
    if (!known) refuse(equation, fmt::format("the result's '{}' names no dimension", name));
    if (std::count(output.begin(), output.end(), name) > 1)
      refuse(equation, fmt::format("the result has two '{}'", name));
  }
  for (Named& operand : all) operand = with_distinct_axes(std::move(operand));
  Named result = std::move(all.front());
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::string wanted = output;
    for (std::size_t later = i + 1; later < all.size(); ++later) wanted += all[later].axes;
    Named right = summed(all[i], wanted + result.axes);
    Named left = summed(std::move(result), wanted + all[i].axes);
    result = multiplied(left, right, wanted);
  }
  return arranged(summed(std::move(result), output), output);
}

}  // namespace russet
