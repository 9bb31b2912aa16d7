// MTLLibrary, MTLFunction, compute pipelines and binary archives.
#include <fmt/format.h>
#include <russet/error.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <sstream>

#include "device/gpu/metal/hooks.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::objects {
namespace {

constexpr unsigned long language_3_1 = (3UL << 16) + 1;
constexpr std::string_view archive_mark = "russet simulated archive\n";
constexpr unsigned long fail_on_archive_miss = 4;  // MTLPipelineOptionFailOnBinaryArchiveMiss

/// russet's numbers rest on these options: anything else is a mistake of the driver's.
void check_options(const CompileOptions* options) {
  if (options == nullptr || options->language != language_3_1) {
    report("options", "a library is compiled for another language than MSL 3.1");
    return;
  }
  const bool safe =
      macos() >= Version{15, 0} ? options->math_mode == 0 && options->math_functions == 1 : !options->fast_math;
  if (!safe) report("options", "a library is compiled with fast math");
}

Object* new_library(Device*, Selector, String* source, CompileOptions* options, Error** error) {
  check_options(options);
  std::string_view text = source->text;
  const std::size_t mark = text.find(metal::end_of_prelude);
  if (mark != std::string_view::npos) text.remove_prefix(mark + metal::end_of_prelude.size());
  statistics().libraries.fetch_add(1);
  try {
    return make<Library>("MTLLibrary", simulator::compile(text), std::hash<std::string_view>{}(source->text));
  } catch (const russet::Error& failure) {
    give_error(error, 3, failure.what());  // MTLLibraryErrorCompileFailure
    return nullptr;
  }
}

Object* new_function(Library* library, Selector, String* name) {
  if (library->module->find(name->text) == nullptr) return nullptr;
  return make<KernelFunction>("MTLFunction", *library, name->text);
}

struct Names {
  std::mutex mutex;
  std::set<std::string> all;
};
Names& names() {
  static auto* const made = new Names;
  return *made;
}

void remember(const std::string& name) {
  const std::lock_guard lock(names().mutex);
  names().all.insert(name);
}

std::string identity(const KernelFunction& function) {
  return fmt::format("{:016x} {}", function.library->source, function.name);
}

bool in_archives(const PipelineDescriptor& descriptor) {
  if (!descriptor.archives) return false;
  for (const Held<Object>& object : descriptor.archives->objects) {
    auto& archive = static_cast<Archive&>(*object);
    const std::lock_guard lock(archive.mutex);
    if (archive.functions.contains(identity(*descriptor.function))) return true;
  }
  return false;
}

Object* new_pipeline(Device*, Selector, PipelineDescriptor* descriptor, unsigned long options, Object** /*reflection*/,
                     Error** error) {
  if (!descriptor->function) {
    give_error(error, 3, "the pipeline has no function");
    return nullptr;
  }
  const KernelFunction& function = *descriptor->function;
  const unsigned long stated = simulator::max_threads(*function.kernel);
  const unsigned long wanted = descriptor->threads == 0 ? stated : descriptor->threads;
  if (wanted > simulator::options().max_threads || wanted > stated) {
    give_error(error, 3,
               fmt::format("{}: groups of {} threads are asked for; the kernel states {} and the GPU allows {}",
                           function.name, wanted, stated, simulator::options().max_threads));
    return nullptr;
  }
  remember(function.name);
  const bool known = in_archives(*descriptor);
  if (!known && (options & fail_on_archive_miss) != 0) {
    give_error(error, 3, fmt::format("{} is in none of the archives", function.name));
    return nullptr;
  }
  (known ? statistics().pipelines_from_archives : statistics().pipelines_compiled).fetch_add(1);
  return make<PipelineState>("MTLComputePipelineState", *descriptor->function, wanted);
}

// A file of the stand-in's own: its mark, a line a function, and how many there are.
bool read_archive(const std::string& path, Archive& archive) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  if (!file || !all.starts_with(archive_mark)) return false;
  std::istringstream lines(all.substr(archive_mark.size()));
  std::string line;
  std::string last;
  while (std::getline(lines, line)) {
    if (!last.empty()) archive.functions.insert(last);
    last = line;
  }
  return last == fmt::format("end {}", archive.functions.size());
}

Object* new_archive(Device*, Selector, ArchiveDescriptor* descriptor, Error** error) {
  auto* const archive = make<Archive>("MTLBinaryArchive");
  if (!descriptor->url || read_archive(descriptor->url->path, *archive)) return archive;
  give_error(error, 1, fmt::format("{} is not an archive", descriptor->url->path));  // MTLBinaryArchiveErrorInvalidFile
  release(archive);
  return nullptr;
}

bool add_to_archive(Archive* archive, Selector, PipelineDescriptor* descriptor, Error** /*error*/) {
  const std::lock_guard lock(archive->mutex);
  archive->functions.insert(identity(*descriptor->function));
  return true;
}

bool write_archive(Archive* archive, Selector, Url* url, Error** error) {
  const std::lock_guard lock(archive->mutex);
  std::ofstream file(url->path, std::ios::binary);
  file << archive_mark;
  for (const std::string& function : archive->functions) file << function << '\n';
  file << "end " << archive->functions.size() << '\n';
  if (file) return true;
  give_error(error, 1, fmt::format("{} cannot be written", url->path));
  return false;
}

}  // namespace

std::set<std::string> distinct_kernels() {
  const std::lock_guard lock(names().mutex);
  return names().all;
}

// Since when: API_AVAILABLE in MTLLibrary.h, MTLComputePipeline.h, MTLBinaryArchive.h and
// MTLDevice.h of the macOS SDKs 11.3 and 15.0.
std::vector<Row> library_rows() {
  return {
      {"MTLCompileOptions", "alloc", {10, 11}, &alloc<CompileOptions>},
      {"MTLCompileOptions", "init", {10, 11}, &init},
      {"MTLCompileOptions",
       "setLanguageVersion:",
       {10, 11},
       +[](CompileOptions* options, Selector, unsigned long version) { options->language = version; }},
      {"MTLCompileOptions",
       "setFastMathEnabled:",
       {10, 11},  // deprecated by 15.0, and still there
       +[](CompileOptions* options, Selector, bool enabled) { options->fast_math = enabled; }},
      {"MTLCompileOptions",
       "setMathMode:",
       {15, 0},
       +[](CompileOptions* options, Selector, long mode) { options->math_mode = mode; }},
      {"MTLCompileOptions",
       "setMathFloatingPointFunctions:",
       {15, 0},
       +[](CompileOptions* options, Selector, long functions) { options->math_functions = functions; }},
      {"MTLDevice", "newLibraryWithSource:options:error:", {10, 11}, &new_library},
      {"MTLLibrary", "newFunctionWithName:", {10, 11}, &new_function},
      {"MTLDevice", "newComputePipelineStateWithDescriptor:options:reflection:error:", {10, 11}, &new_pipeline},
      {"MTLComputePipelineDescriptor", "alloc", {10, 11}, &alloc<PipelineDescriptor>},
      {"MTLComputePipelineDescriptor", "init", {10, 11}, &init},
      {"MTLComputePipelineDescriptor", "setLabel:", {10, 11}, +[](PipelineDescriptor*, Selector, String*) {}},
      {"MTLComputePipelineDescriptor",
       "setComputeFunction:",
       {10, 11},
       +[](PipelineDescriptor* descriptor, Selector, KernelFunction* function) {
         descriptor->function = Held<KernelFunction>(function);
       }},
      {"MTLComputePipelineDescriptor",
       "setThreadGroupSizeIsMultipleOfThreadExecutionWidth:",
       {10, 11},
       +[](PipelineDescriptor* descriptor, Selector, bool multiple) { descriptor->whole_simdgroups = multiple; }},
      {"MTLComputePipelineDescriptor",
       "setMaxTotalThreadsPerThreadgroup:",
       {10, 14},
       +[](PipelineDescriptor* descriptor, Selector, unsigned long threads) { descriptor->threads = threads; }},
      {"MTLComputePipelineDescriptor",
       "setBinaryArchives:",
       {11, 0},
       +[](PipelineDescriptor* descriptor, Selector, Array* archives) {
         descriptor->archives = Held<Array>(archives);
       }},
      {"MTLComputePipelineState",
       "maxTotalThreadsPerThreadgroup",
       {10, 11},
       +[](PipelineState* state, Selector) { return state->threads; }},
      {"MTLComputePipelineState", "threadExecutionWidth", {10, 11}, +[](PipelineState*, Selector) { return 32UL; }},
      {"MTLBinaryArchiveDescriptor", "alloc", {11, 0}, &alloc<ArchiveDescriptor>},
      {"MTLBinaryArchiveDescriptor", "init", {11, 0}, &init},
      {"MTLBinaryArchiveDescriptor",
       "setUrl:",
       {11, 0},
       +[](ArchiveDescriptor* descriptor, Selector, Url* url) { descriptor->url = Held<Url>(url); }},
      {"MTLDevice", "newBinaryArchiveWithDescriptor:error:", {11, 0}, &new_archive},
      {"MTLBinaryArchive", "addComputePipelineFunctionsWithDescriptor:error:", {11, 0}, &add_to_archive},
      {"MTLBinaryArchive", "serializeToURL:error:", {11, 0}, &write_archive},
  };
}

}  // namespace russet::objects
