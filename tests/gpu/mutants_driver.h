#pragma once
// The driver of tests that are run for mutants of kernels (tests/project/kernel_mutants.py).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/gpu/kernels.h"
#include "machine_driver.h"

namespace russet::test {

/// Kernel files of the folder that RUSSET_TEST_KERNELS names take the place of the library's: mutants, whose tests must
/// fail.
class MutantsDriver : public MachineDriver {
 public:
  std::vector<std::shared_ptr<const gpu::Pipeline>> build(std::span<const gpu::CompilationUnit> units) override {
    std::vector<gpu::CompilationUnit> replaced(units.begin(), units.end());
    if (const char* const folder = std::getenv("RUSSET_TEST_KERNELS")) {
      for (const gpu::KernelFile& original : gpu::kernel_files()) {
        std::ifstream file(std::filesystem::path(folder) / original.name);
        if (!file) continue;
        const std::string text(std::istreambuf_iterator<char>(file), {});
        for (gpu::CompilationUnit& unit : replaced) {
          const std::size_t at = unit.text.find(original.text);
          if (at != std::string::npos) unit.text.replace(at, original.text.size(), text);
        }
      }
    }
    return MachineDriver::build(replaced);
  }
};

}  // namespace russet::test
