#include "module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <russet/error.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "calls.h"
#include "clang.h"

namespace russet::simulator {
namespace {

/// The memory of the module that holds this address.
std::span<const std::byte> module_around(const void* address) {
  struct Search {
    std::uintptr_t wanted, begin = 0, end = 0;
  };
  Search search{reinterpret_cast<std::uintptr_t>(address)};
  const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
    Search& search = *static_cast<Search*>(data);
    std::uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      begin = std::min<std::uintptr_t>(begin, info->dlpi_addr + segment.p_vaddr);
      end = std::max<std::uintptr_t>(end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
    if (search.wanted < begin || search.wanted >= end) return 0;
    search.begin = begin;
    search.end = end;
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return {reinterpret_cast<const std::byte*>(search.begin), search.end - search.begin};
}

class LoadedModule final : public Module {
 public:
  LoadedModule(const std::filesystem::path& object, bool checked) : checked_(checked) {
    handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw DeviceError(fmt::format("simulated GPU: {}", dlerror()));
    auto* const address = static_cast<void***>(dlsym(handle_, "russet_table_address"));
    if (address == nullptr) throw DeviceError(fmt::format("simulated GPU: {} is damaged", object.string()));
    fill_table(*address, checked);
    memory_ = module_around(address);
  }
  ~LoadedModule() override { dlclose(handle_); }

  const Kernel* find(std::string_view name) const override {
    const std::lock_guard lock(mutex_);
    const auto known = kernels_.find(name);
    if (known != kernels_.end()) return &known->second;
    const void* symbol = dlsym(handle_, fmt::format("russet_kernel_{}", name).c_str());
    if (symbol == nullptr) return nullptr;
    const auto& entry = *static_cast<const russet_simulator::EntryPoint*>(symbol);
    return &kernels_.emplace(name, Kernel(entry, memory_, checked_)).first->second;
  }

 private:
  void* handle_ = nullptr;
  std::span<const std::byte> memory_;
  bool checked_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Kernel, std::less<>> kernels_;
};

}  // namespace

std::shared_ptr<const Module> compile(std::string_view text, bool checked) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, bool>, std::weak_ptr<const Module>> modules;
  const std::pair key(std::string(text), checked);
  {
    const std::lock_guard lock(mutex);
    std::erase_if(modules, [](const auto& entry) { return entry.second.expired(); });
    const auto known = modules.find(key);
    if (known != modules.end()) {
      if (auto module = known->second.lock()) return module;
    }
  }
  auto module = std::make_shared<const LoadedModule>(compiled(text, checked), checked);
  const std::lock_guard lock(mutex);
  modules[key] = module;
  return module;
}

std::shared_ptr<const Module> compile(std::string_view text) { return compile(text, options().checked); }

std::uint32_t max_threads(const Kernel& kernel) { return kernel.entry->threads; }

}  // namespace russet::simulator
