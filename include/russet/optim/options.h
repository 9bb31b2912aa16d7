#pragma once
// Options of optimizers. A struct of options names its members once, in each(); checks, saving and loading follow.
//
//     struct SignSGDOptions {
//       static constexpr const char* optimizer = "SignSGD";
//       double lr = 1e-3;
//       template <class Options, class Visit>
//       static void each(Options& o, Visit visit) {
//         visit("lr", o.lr, Range::at_least_zero);
//       }
//     };
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace russet::optim {

/// The values that an option may have; below_one and to_one start at 0.
enum class Range : std::uint8_t { any, at_least_zero, at_most_zero, at_least_one, below_one, to_one };

/// Throws ValueError if `value` is outside of `range`.
void require_in_range(const char* optimizer, const std::string& option, double value, Range range);

/// How an optional number that is absent is saved; those that are there are 0 or more.
inline constexpr double absent_option = -1;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Calls `visit(name, number, may_be_absent)` for every number of an option and stores what `visit` makes of the
/// number. Elements of pairs and arrays are "betas.0", "betas.1".
template <class Option, class Visit>
void each_number(const std::string& name, Option& option, const Visit& visit) {
  if constexpr (is_optional<Option>) {
    double number = option ? static_cast<double>(*option) : absent_option;
    visit(name, number, true);
    option.reset();
    if (number != absent_option) option = static_cast<typename Option::value_type>(number);
  } else if constexpr (std::is_arithmetic_v<Option> || std::is_enum_v<Option>) {
    auto number = static_cast<double>(option);
    visit(name, number, false);
    option = static_cast<Option>(number);
  } else {
    std::size_t place = 0;
    std::apply([&](auto&... parts) { (each_number(name + "." + std::to_string(place++), parts, visit), ...); }, option);
  }
}

/// Throws ValueError for the first option that is out of its range.
template <class Options>
void check_ranges(Options options) {
  Options::each(options, [](const char* name, auto& option, Range range = Range::any) {
    each_number(name, option, [&](const std::string& part, double number, bool may_be_absent) {
      if (may_be_absent && number == absent_option) return;
      require_in_range(Options::optimizer, part, number, range);
    });
  });
}

}  // namespace russet::optim
