#pragma once
// Runs kernels for tests: text in, vectors bound, reports out.
#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <vector>

#include "device/gpu/simulator/machine.h"
#include "device/gpu/simulator/module.h"

namespace russet::simulator {

template <class T>
BoundMemory in(const std::vector<T>& data, std::string_view name = "in") {
  return {reinterpret_cast<std::byte*>(const_cast<T*>(data.data())), data.size() * sizeof(T), false, name};
}

template <class T>
BoundMemory out(std::vector<T>& data, std::string_view name = "out") {
  return {reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(T), true, name};
}

template <class T>
std::vector<std::byte> values(const T& fields) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &fields, sizeof(T));
  return bytes;
}

/// A kernel and what it was compiled from.
class Compiled {
 public:
  Compiled(std::string_view text, std::string_view name, bool checked)
      : module_(compile(text, checked)), kernel_(module_->find(name)) {
    EXPECT_NE(kernel_, nullptr) << name;
  }
  const Kernel* kernel() const { return kernel_; }
  Dispatch dispatch(std::uint32_t groups, std::uint32_t threads, std::vector<BoundMemory> buffers,
                    std::vector<std::byte> bytes = {}) const {
    return {kernel_, {groups, 1, 1}, threads, std::move(buffers), std::move(bytes)};
  }

 private:
  std::shared_ptr<const Module> module_;
  const Kernel* kernel_;
};

/// Executes and returns what was reported, one "check: message" a report.
inline std::vector<std::string> reports_of(std::span<const Dispatch> dispatches) {
  take_reports();
  execute(dispatches);
  std::vector<std::string> lines;
  for (const CheckReport& report : take_reports()) lines.push_back(report.check + ": " + report.message);
  return lines;
}
inline std::vector<std::string> reports_of(const Dispatch& dispatch) { return reports_of(std::span(&dispatch, 1)); }

}  // namespace russet::simulator
