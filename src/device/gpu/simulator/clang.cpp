#include "clang.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <fstream>
#include <string>
#include <vector>

#include "base/digest.h"
#include "cache.h"
#include "kernel_text.h"
#include "prelude.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;

/// One process compiles and one links, which clang's driver would do by three, the linker a slower one.
void compile_to(const Prelude& with, const fs::path& source, const fs::path& object) {
  const fs::path code = fs::path(object).concat(".o");
  std::vector<std::string> words = with.words;
  words.insert(words.end(), {"-Wframe-larger-than=16384", "-Werror=frame-larger-than", "-Werror=uninitialized",
                             "-Werror=conditional-uninitialized", "-Werror=return-type", "-c", source.string(), "-o",
                             code.string()});
  run_tool(words, "a kernel does not compile for the simulated GPU");
  try {
    run_tool({"ld", "-shared", "-Bsymbolic", "--gc-sections", code.string(), "-lm", "-o", object.string()},
             "a kernel does not link for the simulated GPU");
  } catch (...) {
    fs::remove(code);
    throw;
  }
  fs::remove(code);
}

/// Lines are named as in the kernel's text.
std::string number_lines(std::string_view text) { return fmt::format("#line 1 \"kernel\"\n{}", text); }

}  // namespace

fs::path compiled(std::string_view text, bool checked) {
  const Prelude with = prelude(checked);
  const base::DiskCache kernels = cache();
  check_group_memory(text);
  const std::string read = checked ? watched_text(text) : std::string(text);  // by clang
  const fs::path stem = with.folder / fmt::format("{:016x}", base::digest(read));
  fs::path object = fs::path(stem).concat(".so");
  const fs::path source = fs::path(stem).concat(".metal");
  const std::string numbered = number_lines(text);
  if (kernels.read(source) == numbered && kernels.holds(object)) {
    kernels.touch(object);
    return object;
  }
  // The source takes its place after the object, so whoever finds it finds both.
  kernels.put(source, [&](const fs::path& fresh_source) {
    std::ofstream(fresh_source, std::ios::binary) << number_lines(read);
    kernels.put(object, [&](const fs::path& fresh_object) {
      try {
        compile_to(with, fresh_source, fresh_object);
      } catch (const DeviceError&) {
        mend(with, checked);
        compile_to(with, fresh_source, fresh_object);
      }
    });
    std::ofstream(fresh_source, std::ios::binary) << numbered;
  });
  return object;
}

}  // namespace russet::simulator
