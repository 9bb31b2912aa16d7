#include "device/gpu/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <russet/error.h>

namespace russet::cuda {

Library::Library(std::span<const char* const> names) : wanted_(names.front()) {
  for (const char* const name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    if (reason_.empty()) reason_ = dlerror();
  }
}

std::string Library::missing() const {
  return handle_ == nullptr ? fmt::format("{} was not found: {}", wanted_, reason_) : "";
}

void* Library::address_of(const char* symbol) const {
  if (handle_ == nullptr) throw DeviceError(missing());
  void* const address = dlsym(handle_, symbol);
  if (address == nullptr) throw DeviceError(fmt::format("{} has no {}: it is too old", name_, symbol));
  return address;
}

}  // namespace russet::cuda
