#include "clang.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "base/cache_folder.h"
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
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"-mavx2", "-mfma", "-mf16c"};
#endif
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
                  "-fsanitize=thread,shift,integer-divide-by-zero,float-cast-overflow,array-bounds,local-bounds"});
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

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw FileError(fmt::format("simulated GPU: cannot write {}", path.string()));
}

void compile(const Words& words, std::string_view what) {
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

/// A precompiled prelude, in a folder that is named by all that went into it.
struct Prelude {
  fs::path folder;
  Words flags;
};

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

bool belongs_to_prelude(const gpu::KernelText& text) {
  return text.name.starts_with("prelude/simulator") || text.name.starts_with("prelude/shared");
}

std::string prelude_key(const std::string& program, const Words& flags) {
  std::string content = identity(program);
  for (const std::string& flag : flags) content += "\n" + flag;
  for (const gpu::KernelText& text : gpu::kernel_texts()) {
    if (belongs_to_prelude(text)) content += fmt::format("\n{}\n{}", text.name, text.text);
  }
  return fmt::format("{:016x}", base::digest(content));
}

Prelude prepare(bool checked) {
  const std::string program = compiler();
  Prelude prelude{.folder = {}, .flags = language_flags(checked)};
  prelude.folder = cache_folder() / prelude_key(program, prelude.flags);
  const fs::path precompiled = prelude.folder / "prelude.pch";
  if (fs::exists(precompiled)) return prelude;
  fs::create_directories(prelude.folder);
  const base::FileLock lock(prelude.folder / "lock");
  if (fs::exists(precompiled)) return prelude;
  for (const gpu::KernelText& text : gpu::kernel_texts()) {
    if (!belongs_to_prelude(text)) continue;
    const fs::path path = prelude.folder / text.name;
    fs::create_directories(path.parent_path());
    write_file(path, text.text);
  }
  const fs::path fresh = base::name_beside(precompiled);
  Words words{program, "-x", "c++-header"};
  words.insert(words.end(), prelude.flags.begin(), prelude.flags.end());
  words.insert(words.end(), {(prelude.folder / "prelude/simulator.h").string(), "-o", fresh.string()});
  compile(words, "the prelude of kernels");
  fs::rename(fresh, precompiled);
  log("prelude in {}", prelude.folder.string());
  return prelude;
}

const Prelude& prelude(bool checked) {
  static std::mutex mutex;
  static std::array<Prelude, 2> known;
  const std::lock_guard lock(mutex);
  Prelude& own = known[checked ? 1 : 0];
  // Who empties the cache while we run gets it anew.
  if (own.folder.empty() || !fs::exists(own.folder / "prelude.pch")) own = prepare(checked);
  touch(own.folder / "prelude.pch");
  return own;
}

/// Looking through the folder takes as long as some compilations do.
void trim_now_and_then() {
  constexpr unsigned period = 256;
  static std::atomic<unsigned> count{0};
  if (count++ % period == 0) trim(cache_folder(), cache_limit);
}

}  // namespace

fs::path compiled(std::string_view lines, std::string_view text, bool checked) {
  const Prelude& with = prelude(checked);
  const fs::path stem = with.folder / fmt::format("{:016x}", base::digest(text, base::digest(lines)));
  fs::path object = fs::path(stem).concat(".so");
  const fs::path source = fs::path(stem).concat(".metal");
  const std::string numbered = fmt::format("{}#line 1 \"kernel\"\n{}", lines, text);
  // The source is put there after the object, so whoever finds it finds both.
  if (read_file(source) == numbered && fs::exists(object)) {
    touch(object);
    return object;
  }
  const fs::path fresh_source = base::name_beside(source), fresh_object = base::name_beside(object);
  write_file(fresh_source, numbered);
  Words words{compiler(), "-x", "c++"};
  words.insert(words.end(), with.flags.begin(), with.flags.end());
  words.insert(words.end(), {"-include-pch", (with.folder / "prelude.pch").string(), "-Wframe-larger-than=16384",
                             "-Werror=frame-larger-than", "-Werror=uninitialized", "-Werror=conditional-uninitialized",
                             fresh_source.string(), "-shared", "-fuse-ld=lld", "-nostdlib", "-lm", "-Wl,-Bsymbolic",
                             "-Wl,--gc-sections", "-o", fresh_object.string()});
  try {
    compile(words, "a kernel does not compile for the simulated GPU");
  } catch (...) {
    std::error_code ignored;
    fs::remove(fresh_source, ignored);
    throw;
  }
  fs::rename(fresh_object, object);
  fs::rename(fresh_source, source);
  trim_now_and_then();
  return object;
}

}  // namespace russet::simulator
