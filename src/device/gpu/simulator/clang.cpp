#include "clang.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <atomic>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "base/digest.h"
#include "cache.h"
#include "prelude.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;

/// A file of this call alone, gone when it ends if it was not renamed.
struct Temporary {
  explicit Temporary(const fs::path& beside) : path(base::name_beside(beside)) {}
  ~Temporary() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const fs::path path;
};

/// One process compiles and one links, which clang's driver would do by three, the linker a slower one.
void compile_to(const Prelude& with, const fs::path& source, const fs::path& code, const fs::path& object) {
  std::vector<std::string> words = with.words;
  words.insert(words.end(), {"-Wframe-larger-than=16384", "-Werror=frame-larger-than", "-Werror=uninitialized",
                             "-Werror=conditional-uninitialized", "-c", source.string(), "-o", code.string()});
  run_tool(words, "a kernel does not compile for the simulated GPU");
  run_tool({"ld", "-shared", "-Bsymbolic", "--gc-sections", code.string(), "-lm", "-o", object.string()},
           "a kernel does not link for the simulated GPU");
}

/// Looking through the folder takes as long as some compilations do.
void trim_now_and_then() {
  constexpr unsigned period = 256;
  static std::atomic<unsigned> count{0};
  if (count++ % period == 0) trim(cache_folder(), cache_limit);
}

}  // namespace

fs::path compiled(std::string_view lines, std::string_view text, bool checked) {
  const Prelude with = prelude(checked);
  const fs::path stem = with.folder / fmt::format("{:016x}", base::digest(text, base::digest(lines)));
  const fs::path object = fs::path(stem).concat(".so");
  const fs::path source = fs::path(stem).concat(".metal");
  const std::string numbered = fmt::format("{}#line 1 \"kernel\"\n{}", lines, text);
  // The source is put there after the object, so whoever finds it finds both.
  if (read_file(source) == numbered && fs::exists(object)) {
    touch(object);
    return object;
  }
  const Temporary fresh_source(source), fresh_code(fs::path(stem).concat(".o")), fresh_object(object);
  write_file(fresh_source.path, numbered);
  try {
    compile_to(with, fresh_source.path, fresh_code.path, fresh_object.path);
  } catch (const DeviceError&) {
    mend(with, checked);
    compile_to(with, fresh_source.path, fresh_code.path, fresh_object.path);
  }
  fs::rename(fresh_object.path, object);
  fs::rename(fresh_source.path, source);
  trim_now_and_then();
  return object;
}

}  // namespace russet::simulator
