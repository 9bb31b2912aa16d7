#pragma once
// Kernel text, shared by content among kernels and plans, and built a plan at a time.
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/gpu/launch.h"

namespace russet::gpu {

/// One entry point in the kernel dialect. `text` writes "@" where the entry's name goes:
///     KERNEL(@, 256, IN(float, x, 0), OUT(float, y, 1), VALUES(Values_@, values, 2)) { ... }
/// The name is `stem` and a digest of the content, so equal texts are one function and different ones never clash.
/// Types and functions that the text declares must carry "@" in their names too; what several texts share lies in
/// files.
struct Source {
  std::string stem;
  std::string text;
  /// Files of kernels/ that the text stands on, in order: "math.metal". Each comes once in a unit, before all entries,
  /// with the files that it needs itself before it (its first lines: `// needs: math.metal`).
  std::vector<std::string> files;
  std::uint32_t threads = 32;      // of a threadgroup
  std::uint32_t large_memory = 0;  // as of EntryPoint
};

/// An entry point: its source, and its pipeline once it is built.
class Function {
 public:
  Function(Source source, std::string name) : source_(std::move(source)), name_(std::move(name)) {}
  /// What a vendor's library does: there is no source, and nothing to build.
  Function(std::shared_ptr<const Pipeline> pipeline, std::string name)
      : name_(std::move(name)), pipeline_(std::move(pipeline)) {}

  const Source& source() const { return source_; }
  const std::string& name() const { return name_; }
  /// nullptr until Library::build.
  const Pipeline* pipeline() const { return pipeline_.get(); }

 private:
  friend class Library;
  Source source_;
  std::string name_;
  std::shared_ptr<const Pipeline> pipeline_;
};
using FunctionPtr = std::shared_ptr<Function>;

/// The functions of a device. Those that no kernel holds any more are forgotten. Thread-safe.
class Library {
 public:
  explicit Library(Driver& driver) : driver_(driver) {}

  /// The function of a source: a new one, or the one that exists with the same content.
  FunctionPtr add(Source source);
  /// Builds those functions that have no pipeline, as units that are compiled side by side (make_units).
  void build(std::span<const FunctionPtr> functions);

 private:
  Driver& driver_;
  std::mutex mutex_;                                                    // of functions_
  std::mutex building_;                                                 // of their pipelines, while they are missing
  std::unordered_map<std::string, std::weak_ptr<Function>> functions_;  // by name
};

/// The functions as units: half again as many as are compiled side by side if there are so many functions, and more if
/// a unit would have more than 32 entries.
std::vector<CompilationUnit> make_units(std::span<const FunctionPtr> functions);
/// Its entries, for messages.
std::string names_of(const CompilationUnit& unit);

}  // namespace russet::gpu
