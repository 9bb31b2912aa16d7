#pragma once
// Library: one of NVIDIA's shared libraries, loaded when the device is first used, so that russet runs without them.
#include <span>
#include <string>

namespace russet::cuda {

inline constexpr const char* cublaslt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};

class Library {
 public:
  /// Loads the first of the names that is there; none is an error of symbol(). Never unloaded: drivers keep threads.
  explicit Library(std::span<const char* const> names);

  /// Why none of the names was found; empty if one was.
  std::string missing() const;
  /// The name that was found; empty if none was.
  const std::string& name() const { return name_; }
  /// Sets a function's address. Throws DeviceError if the library or the function is missing.
  template <class Function>
  void load(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const;

  std::string wanted_;
  std::string name_;
  std::string reason_;
  void* handle_ = nullptr;
};

}  // namespace russet::cuda
