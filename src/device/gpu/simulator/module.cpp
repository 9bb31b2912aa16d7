#include "module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <map>
#include <mutex>
#include <tuple>

#include "calls.h"
#include "clang.h"

namespace russet::simulator {
namespace {

class LoadedModule final : public Module {
 public:
  LoadedModule(const std::filesystem::path& object, bool checked) : checked_(checked) {
    handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw DeviceError(fmt::format("simulated GPU: {}", dlerror()));
    auto* const address = static_cast<void***>(dlsym(handle_, "russet_table_address"));
    if (address == nullptr) throw DeviceError(fmt::format("simulated GPU: {} is damaged", object.string()));
    fill_table(*address, checked);
  }
  ~LoadedModule() override { dlclose(handle_); }

  const Kernel* find(std::string_view name) const override {
    const std::lock_guard lock(mutex_);
    const auto known = kernels_.find(name);
    if (known != kernels_.end()) return &known->second;
    const void* symbol = dlsym(handle_, fmt::format("russet_kernel_{}", name).c_str());
    if (symbol == nullptr) return nullptr;
    const auto& entry = *static_cast<const russet_simulator::Entry*>(symbol);
    return &kernels_.emplace(name, Kernel(entry, checked_)).first->second;
  }

  std::vector<FunctionConstant> constants() const override {
    std::vector<FunctionConstant> declared;
    for (std::uint32_t index = 0; index < russet_simulator::max_function_constants; ++index) {
      const void* symbol = dlsym(handle_, fmt::format("russet_constant_{}", index).c_str());
      if (symbol == nullptr) continue;
      const auto& constant = *static_cast<const russet_simulator::FunctionConstant*>(symbol);
      declared.push_back({index, constant.name, static_cast<std::uint32_t>(constant.type)});
    }
    return declared;
  }

 private:
  void* handle_ = nullptr;
  bool checked_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Kernel, std::less<>> kernels_;
};

}  // namespace

namespace {

/// The lines that prelude/shared/constants.h looks for.
std::string lines_of(std::span<const ConstantValue> values) {
  std::string lines;
  for (const ConstantValue& value : values) {
    const auto type = static_cast<russet_simulator::ConstantType>(value.type);
    const auto write = [&](std::string_view conversion) {
      lines += fmt::format("#define RUSSET_CONSTANT_{} ~, {}{:#x}u)\n", value.index, conversion, value.bits);
    };
    switch (type) {
      case russet_simulator::ConstantType::boolean: write("bool("); break;
      case russet_simulator::ConstantType::int32: write("int("); break;
      case russet_simulator::ConstantType::uint32: write("uint("); break;
      case russet_simulator::ConstantType::float32: write("__builtin_bit_cast(float, "); break;
    }
  }
  return lines;
}

}  // namespace

std::shared_ptr<const Module> compile(std::string_view text, bool checked, std::span<const ConstantValue> values) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, bool>, std::weak_ptr<const Module>> modules;
  const std::tuple key(lines_of(values), std::string(text), checked);
  {
    const std::lock_guard lock(mutex);
    std::erase_if(modules, [](const auto& entry) { return entry.second.expired(); });
    const auto known = modules.find(key);
    if (known != modules.end()) {
      if (auto module = known->second.lock()) return module;
    }
  }
  auto module = std::make_shared<const LoadedModule>(compiled(std::get<0>(key), text, checked), checked);
  const std::lock_guard lock(mutex);
  modules[key] = module;
  return module;
}

std::shared_ptr<const Module> compile(std::string_view text, std::span<const ConstantValue> values) {
  return compile(text, options().checked, values);
}

std::uint32_t max_threads(const Kernel& kernel) { return kernel.entry->threads; }

}  // namespace russet::simulator
