#include "prelude.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <array>
#include <cstdlib>
#include <mutex>

#include "base/digest.h"
#include "base/log.h"
#include "cache.h"
#include "device/gpu/kernels.h"
#include "process.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const base::Log log("simulator");

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string compiler() {
  std::string named = environment("RUSSET_SIMULATOR_CLANG");
  if (!named.empty()) return named;
  return *RUSSET_SIMULATOR_CLANG == '\0' ? "clang++" : RUSSET_SIMULATOR_CLANG;
}
/// Flags for this processor. No more than AVX2, so that results do not depend on which of today's machines ran.
Words processor_flags() {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"-mavx2", "-mfma", "-mf16c"};
  return {};
}

Words language_flags(bool checked) {
  Words flags{"-std=c++20",           "-fPIC",
              "-fno-exceptions",      "-fno-rtti",
              "-ffp-contract=off",    "-fno-math-errno",
              "-fsigned-char",        "-fvisibility=hidden",
              "-fno-stack-protector", "-gline-tables-only",
              "-ffunction-sections"};
  // As in Metal: a function may hold a barrier, so no call becomes two that different threads make.
  flags.insert(flags.end(), {"-Xclang", "-fconvergent-functions"});
  if (checked) {
    // The instrumentation knows accesses of up to 16 bytes, so no wider registers, and loops as they are written.
    flags.insert(flags.end(),
                 {"-O1", "-DRUSSET_CHECKED", "-ftrivial-auto-var-init=pattern", "-fno-vectorize", "-fno-slp-vectorize",
                  "-fsanitize=thread,signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow",
                  "-fsanitize=array-bounds,local-bounds"});
    // Most kernels run for less time than it takes to compile them: instructions are selected by the quick way. Equal
    // ends of branches stay two: a report tells barriers apart by where they are called.
    for (const char* option : {"-fast-isel", "-disable-lsr", "-enable-tail-merge=false"}) {
      flags.insert(flags.end(), {"-mllvm", option});
    }
    // Of the address sanitizer the red zones between variables alone: accesses are seen already. clang's driver refuses
    // two sanitizers of memory, its compiler does not.
    flags.insert(flags.end(), {"-Xclang", "-fsanitize=kernel-address"});
    for (const char* option : {"-tsan-instrument-read-before-write=1", "-tsan-instrument-func-entry-exit=0",
                               "-asan-instrument-reads=0", "-asan-instrument-writes=0", "-asan-instrument-atomics=0",
                               "-asan-instrument-byval=0", "-asan-globals=0", "-asan-force-dynamic-shadow=1"}) {
      flags.insert(flags.end(), {"-mllvm", option});
    }
  } else {
    flags.push_back("-O2");
  }
  const Words processor = processor_flags();
  flags.insert(flags.end(), processor.begin(), processor.end());
  return flags;
}

/// What tells one compiler from another without asking it.
std::string identity(const std::string& program) {
  fs::path path = program;
  if (!path.has_parent_path()) {
    std::string folders = environment("PATH");
    for (std::size_t begin = 0; begin <= folders.size();) {
      const std::size_t end = std::min(folders.find(':', begin), folders.size());
      const fs::path candidate = fs::path(folders.substr(begin, end - begin)) / program;
      std::error_code error;
      if (fs::exists(candidate, error)) {
        path = candidate;
        break;
      }
      begin = end + 1;
    }
  }
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return program;
  return fmt::format("{} {} {}", real.string(), fs::file_size(real, error),
                     fs::last_write_time(real, error).time_since_epoch().count());
}

bool belongs_to_prelude(const gpu::KernelFile& text) {
  return text.name.starts_with("prelude/simulator") || text.name.starts_with("prelude/shared");
}

std::string prelude_key(const std::string& program, const Words& flags) {
  std::string content = identity(program);
  for (const std::string& flag : flags) content += "\n" + flag;
  for (const gpu::KernelFile& text : gpu::kernel_files()) {
    if (belongs_to_prelude(text)) content += fmt::format("\n{}\n{}", text.name, text.text);
  }
  return fmt::format("{:016x}", base::digest(content));
}

fs::path precompiled(const fs::path& folder) { return folder / "prelude.pch"; }

/// Writes the prelude's files, those alone that are not there yet: clang looks at their age.
void write_texts(const fs::path& folder) {
  for (const gpu::KernelFile& text : gpu::kernel_files()) {
    if (!belongs_to_prelude(text)) continue;
    const fs::path path = folder / text.name;
    if (cache().read(path) != text.text) cache().put(path, text.text);
  }
}

/// The caller holds the folder's lock.
void precompile(const fs::path& folder, const Words& flags) {
  write_texts(folder);
  cache().put(precompiled(folder), [&](const fs::path& fresh) {
    Words words{compiler(), "-x", "c++-header"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {(folder / "prelude/simulator.h").string(), "-o", fresh.string()});
    run_tool(words, "the prelude of kernels");
  });
  log("prelude in {}", folder.string());
}

Prelude prepare(bool checked) {
  const Words flags = language_flags(checked);
  const fs::path named = cache_folder() / prelude_key(compiler(), flags);
  fs::create_directories(named);
  const fs::path folder = fs::canonical(named);
  if (!fs::exists(precompiled(folder))) {
    const base::FileLock lock = cache().lock(folder);
    if (!fs::exists(precompiled(folder))) precompile(folder, flags);
  }
  Prelude prelude{folder, {compiler(), "-x", "c++"}};
  prelude.words.insert(prelude.words.end(), flags.begin(), flags.end());
  prelude.words.insert(prelude.words.end(), {"-include-pch", precompiled(folder).string()});
  return prelude;
}

/// Whether clang takes the prelude with a text in which nothing can be wrong.
bool is_taken(const Prelude& prelude) {
  Words words = prelude.words;
  words.insert(words.end(), {"-fsyntax-only", "/dev/null"});
  return run_program(words).status == 0;
}

}  // namespace

Prelude prelude(bool checked) {
  static std::mutex mutex;
  static std::array<Prelude, 2> known;
  const std::lock_guard lock(mutex);
  Prelude& own = known[checked ? 1 : 0];
  // Who empties the cache while we run gets it anew.
  if (own.folder.empty() || !fs::exists(precompiled(own.folder))) own = prepare(checked);
  cache().touch(precompiled(own.folder));
  return own;
}

void mend(const Prelude& prelude, bool checked) {
  const base::FileLock lock = cache().lock(prelude.folder);
  if (is_taken(prelude)) return;
  log("clang does not take the prelude in {}", prelude.folder.string());
  precompile(prelude.folder, language_flags(checked));
}

void run_tool(const Words& words, std::string_view what) {
  const Finished finished = run_program(words);
  if (finished.status == 0) return;
  if (finished.status == 127) {
    throw DeviceError(fmt::format(
        "the simulated GPU compiles kernels with clang, which cannot be started ({}). Install it, or name it in "
        "RUSSET_SIMULATOR_CLANG.",
        finished.output));
  }
  throw DeviceError(fmt::format("{}:\n{}", what, finished.output));
}

}  // namespace russet::simulator
