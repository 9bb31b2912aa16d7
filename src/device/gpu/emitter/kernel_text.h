#pragma once
// A kernel under construction: its bindings, its VALUES struct, its body, and the bytes and regions of one launch.
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

/// Of a threadgroup, where nothing asks for fewer.
inline constexpr std::uint32_t usual_threads = 256;

/// Members of a VALUES struct by name, each with its value in this launch. The text has the names alone.
class ValueList {
 public:
  /// Puts `prefix` before the names of members that are added from now on: for a second text that names its own alike.
  void name_apart(std::string prefix) { prefix_ = std::move(prefix); }

  // Each gives the expression that reads the member. A name that is known keeps its value.
  std::string add_uint(std::string_view name, std::uint64_t value);
  std::string add_int(std::string_view name, std::int64_t value);
  std::string add_float(std::string_view name, float value);
  std::string add_long(std::string_view name, std::int64_t value);
  std::string add_ulong(std::string_view name, std::uint64_t value);
  /// An array of `type`: "int", "uint", "long" or "ulong".
  std::string add_array(std::string_view type, std::string_view name, std::span<const std::int64_t> numbers);
  /// A run-time argument; `type` is the member's.
  std::string add_argument(std::string_view type, std::string_view name, std::int32_t argument, Patch::Form form);
  /// A long to which a run-time argument is added.
  std::string add_offset(std::string_view name, std::int64_t value, std::int32_t argument);

  /// Members of 8 bytes come first.
  std::string members() const;
  Values values() const;
  /// Whether a member has 8 bytes.
  bool wide() const;

 private:
  struct NamedValue {
    std::string declaration;
    std::vector<std::uint64_t> bits;  // of its elements
    bool wide = false;
    std::int32_t argument = -1;
    Patch::Form form = Patch::Form::bits;
  };
  void add(std::string declaration, std::vector<std::uint64_t> bits, bool wide);
  std::string add(std::string_view type, std::string_view name, std::uint64_t bits, bool wide);

  std::vector<NamedValue> members_;
  std::string prefix_;
};

/// Text, indented by braces, and everything else that a call needs.
class KernelText {
 public:
  explicit KernelText(std::string stem, std::uint32_t threads) : stem_(std::move(stem)), threads_(threads) {}

  /// Adds lines: a line that ends with "{" indents what follows, one that starts with "}" ends that.
  void line(std::string_view text);
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line(std::string_view(fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  /// The lines so far, which are a function of their own; the body begins anew.
  std::string take_body() { return std::exchange(body_, {}); }

  /// Binds memory; returns the name of the pointer.
  std::string bind(std::string_view type, const Region& region);
  /// Declares an array that the threadgroup shares, once.
  void group_memory(std::string_view type, std::string_view name, std::size_t count);
  void use(std::string_view file);

  ValueList& values() { return values_; }
  std::uint32_t threads() const { return threads_; }
  /// See Piece::resident.
  void keep_resident(std::uint32_t groups) { resident_ = groups; }
  std::size_t bindings() const { return regions_.size(); }

  Call finish(const GpuContext& context, std::array<std::uint32_t, 3> groups) const;

  // For kernels that are put together from several texts: the parts.
  const std::vector<Region>& regions() const { return regions_; }
  const std::vector<Piece::Argument>& arguments() const { return arguments_; }
  const std::vector<std::string>& files() const { return files_; }
  const ValueList& values() const { return values_; }
  const std::string& body() const { return body_; }

 private:
  std::string stem_;
  std::uint32_t threads_;
  std::uint32_t resident_ = 1;
  std::vector<Piece::Argument> arguments_;
  std::vector<Piece::Array> arrays_;
  std::string body_;
  std::size_t depth_ = 1;
  std::vector<std::string> files_{"math.metal"};
  std::vector<Region> regions_;
  ValueList values_;
};

/// Bindings [first, last) of a kernel as text: members of a struct, parameters of a function, and what is handed to it.
struct PointerText {
  std::string members, parameters, arguments;
};
PointerText pointer_text(const KernelText& kernel, std::size_t first, std::size_t last);

}  // namespace russet::gpu
