// MTLBuffer and MTLResidencySet. In checked mode a buffer's memory is mapped twice: where the simulated GPU works, and
// where the host looks (contents), whose pages are protected while work in flight has them. So is memory that the CPU
// shares with the GPU.
#include <fmt/format.h>
#include <russet/error.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "device/gpu/metal/hooks.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::objects {
namespace {

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

/// The buffers that have memory of their own, by where the host sees it.
struct Buffers {
  std::mutex mutex;
  std::map<const std::byte*, Buffer*> by_address;
  std::size_t bytes = 0;

  /// nullptr if none holds the address. Call with the mutex held.
  Buffer* find(const std::byte* address) const {
    auto found = by_address.upper_bound(address);
    if (found == by_address.begin()) return nullptr;
    Buffer* const buffer = std::prev(found)->second;
    return address < buffer->host + whole_pages(buffer->length) ? buffer : nullptr;
  }
};

Buffers& buffers() {
  static auto* const all = new Buffers;
  return *all;
}

struct sigaction& earlier_handler() {
  static struct sigaction action {};
  return action;
}

// A fault in memory that work in flight has is reported, and the access done again on open pages. Everything else is
// somebody else's.
void on_fault(int number, siginfo_t* info, void* context) {
  const auto* const address = static_cast<const std::byte*>(info->si_addr);
  Buffer* found = nullptr;
  {
    const std::lock_guard lock(buffers().mutex);
    found = buffers().find(address);
  }
  if (found != nullptr) {
    const bool write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    found->fault(address, write);
    return;
  }
  const struct sigaction& earlier = earlier_handler();
  if ((earlier.sa_flags & SA_SIGINFO) != 0) {
    earlier.sa_sigaction(number, info, context);
  } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) {
    earlier.sa_handler(number);
  } else {
    sigaction(number, &earlier, nullptr);  // the access, done again, ends the process as it would have
  }
}

void install_handler() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSEGV, &action, &earlier_handler()) == 0;
  }();
  if (!installed) throw InternalError("the simulator cannot watch memory: sigaction failed");
}

/// A file in memory, -1 if there is none.
int make_file(std::size_t bytes) {
  const int file = memfd_create("russet", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

/// Memory at a multiple of Apple silicon's pages, which are larger than this computer's; nullptr if there is none.
std::byte* map(std::size_t bytes, int file) {
  void* const room = mmap(nullptr, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(room);
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(room) % page) % page;
  if (before > 0) munmap(begin, before);
  if (before < page) munmap(begin + before + bytes, page - before);
  const int kind = MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  void* const memory = mmap(begin + before, bytes, PROT_READ | PROT_WRITE, kind, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

/// Where the simulated GPU sees what the host sees at `address`.
std::byte* gpu_address(const void* address) {
  auto* const host = static_cast<std::byte*>(const_cast<void*>(address));
  const std::lock_guard lock(buffers().mutex);
  const Buffer* const buffer = buffers().find(host);
  return buffer == nullptr ? host : buffer->gpu + (host - buffer->host);
}

void plan(const void* encoder, unsigned index, std::size_t bytes, bool writes) {
  Bound& bound = static_cast<Encoder*>(const_cast<void*>(encoder))->bound.at(index);
  bound.bytes = bytes;
  bound.writes = writes;
  bound.planned = true;
}

void reach(const void* encoder, unsigned index, std::size_t offset, std::size_t bytes, bool writes, unsigned table,
           std::size_t place) {
  auto& to = *static_cast<Encoder*>(const_cast<void*>(encoder));
  to.reached.push_back({index, place});
  to.reached_buffers.push_back({{}, offset, bytes, writes, true});
  to.table_index = table;
}

void begin(const void* encoder, const void* address, std::size_t bytes) {
  static_cast<Encoder*>(const_cast<void*>(encoder))->births.push_back({gpu_address(address), bytes});
}

void grant(const void* address, std::size_t bytes) { simulator::mark_uninitialised(gpu_address(address), bytes); }
void written(const void* address, std::size_t bytes) { simulator::mark_initialised(gpu_address(address), bytes); }

void guard(const void* buffer) { static_cast<Buffer*>(const_cast<void*>(buffer))->guard(); }

constexpr metal::Hooks hooks{&plan, &reach, &begin, &grant, &written, &guard};

/// MTLStorageMode, which lies in bits 4 to 7 of MTLResourceOptions.
constexpr unsigned long shared_mode = 0;
unsigned long storage_mode(unsigned long options) { return options >> 4 & 15; }

/// The host sees memory of the shared mode alone: private memory has no address, and what is written to managed memory
/// reaches the GPU when it is told, which russet never does.
void* contents_of(Buffer* buffer, Selector) {
  if (buffer->storage_mode == shared_mode) return buffer->host;
  report("api", fmt::format("contents of a buffer that is not shared (storage mode {})", buffer->storage_mode));
  return nullptr;
}

Object* new_buffer(Device*, Selector, unsigned long length, unsigned long options) {
  if (length == 0) {
    report("api", "newBufferWithLength: was asked for 0 bytes");
    return nullptr;
  }
  if (length > settings().max_buffer_length) return nullptr;
  auto* const buffer = make<Buffer>("MTLBuffer", length);
  buffer->storage_mode = storage_mode(options);
  if (buffer->host != nullptr) return buffer;
  release(buffer);
  return nullptr;
}

Object* new_buffer_no_copy(Device*, Selector, void* memory, unsigned long length, unsigned long options,
                           void* /*deallocator*/) {
  if (storage_mode(options) != shared_mode) {
    report("api", fmt::format("newBufferWithBytesNoCopy: the host's memory is shared, not of storage mode {}",
                              storage_mode(options)));
    return nullptr;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (address % page != 0 || length % page != 0 || length == 0) {
    report("api", fmt::format("newBufferWithBytesNoCopy: takes whole pages of {} bytes, not {} bytes at {:#x}", page,
                              length, address));
    return nullptr;
  }
  if (length > settings().max_buffer_length) return nullptr;
  return make<Buffer>("MTLBuffer", static_cast<std::byte*>(memory), length);
}

struct ResidencyDescriptor final : Object {
  explicit ResidencyDescriptor(Class& isa) : Object(isa) {}
};

/// What is resident is what had been added when the set was committed last.
struct ResidencySet final : Object {
  explicit ResidencySet(Class& isa) : Object(isa) {}
  std::mutex mutex;
  std::set<Object*> added;
  std::set<Object*> resident;
  bool requested = false;
};

void add_allocation(ResidencySet* residency, Selector, Object* allocation) {
  const std::lock_guard lock(residency->mutex);
  retain(allocation);
  if (!residency->added.insert(allocation).second) release(allocation);
}

void remove_allocation(ResidencySet* residency, Selector, Object* allocation) {
  const std::lock_guard lock(residency->mutex);
  if (residency->added.erase(allocation) == 0) {
    report("api", "removeAllocation: an allocation that the residency set does not hold");
    return;
  }
  release(allocation);
}

void commit_set(ResidencySet* residency, Selector) {
  const std::lock_guard lock(residency->mutex);
  residency->resident = residency->added;
}

}  // namespace

void connect_hooks() { metal::hooks = &hooks; }

Buffer::Buffer(Class& isa, std::size_t length) : Object(isa), length(length), owned_(true) {
  const std::size_t bytes = whole_pages(length);
  if (simulator::options().checked) {
    const int file = make_file(bytes);
    if (file < 0) return;
    gpu = map(bytes, file);
    host = gpu == nullptr ? nullptr : map(bytes, file);
    close(file);
    if (host != nullptr) watch();
  } else {
    gpu = host = map(bytes, -1);
    if (host == nullptr) return;
    const std::lock_guard lock(buffers().mutex);
    buffers().by_address[host] = this;
  }
}

Buffer::Buffer(Class& isa, std::byte* memory, std::size_t length)
    : Object(isa), host(memory), gpu(memory), length(length) {}

// The pages become those of a file, which the GPU sees elsewhere. They stay that when the GPU is done with them.
void Buffer::guard() {
  if (!simulator::options().checked || owned_) return;
  const int file = make_file(length);
  if (file < 0) return;
  if (std::byte* const view = map(length, file)) {
    std::memcpy(view, host, length);
    if (mmap(host, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == host) {
      gpu = view;
      watch();
    } else {
      munmap(view, length);
    }
  }
  close(file);
}

/// From now on host and gpu are two mappings.
void Buffer::watch() {
  guarded_ = true;
  pages_.resize(whole_pages(length) / page);
  install_handler();
  const std::lock_guard lock(buffers().mutex);
  buffers().by_address[host] = this;
}

Buffer::~Buffer() {
  if (in_flight.load() > 0) report("lifetime", "an MTLBuffer was deallocated while work in flight had it");
  if ((!owned_ && !guarded_) || gpu == nullptr) return;
  if (host != nullptr) {
    const std::lock_guard lock(buffers().mutex);
    buffers().by_address.erase(host);
  }
  simulator::mark_initialised(gpu, length);
  munmap(gpu, whole_pages(length));
  if (guarded_ && owned_) munmap(host, whole_pages(length));
}

void Buffer::begin_use(std::size_t begin, std::size_t end, bool writes) { change(begin, end, writes, 1); }
void Buffer::end_use(std::size_t begin, std::size_t end, bool writes) { change(begin, end, writes, -1); }

// Only pages that lie whole in the range: a small tensor shares its page with others, which the host may touch.
void Buffer::change(std::size_t begin, std::size_t end, bool writes, int by) {
  in_flight.fetch_add(by);
  if (!guarded_) return;
  const std::size_t first = whole_pages(begin) / page;
  const std::size_t last = (end >= length ? whole_pages(length) : end) / page;
  if (first >= last) return;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = first; i < last; ++i) {
    std::uint16_t& users = writes ? pages_[i].writers : pages_[i].readers;
    users = static_cast<std::uint16_t>(users + by);
  }
  protect(first, last);
}

void Buffer::protect(std::size_t first, std::size_t last) const {
  const auto access = [&](std::size_t i) {
    return pages_[i].writers > 0 ? PROT_NONE : pages_[i].readers > 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  };
  for (std::size_t i = first; i < last;) {
    const std::size_t begin = i;
    while (i < last && access(i) == access(begin)) ++i;
    mprotect(host + begin * page, (i - begin) * page, access(begin));
  }
}

void Buffer::fault(const std::byte* address, bool write) {
  const std::size_t offset = static_cast<std::size_t>(address - host);
  {
    const std::lock_guard lock(mutex_);
    const Use& use = pages_[offset / page];
    if (use.writers == 0 && (use.readers == 0 || !write)) return;  // it completed meanwhile
    mprotect(host + offset / page * page, page, PROT_READ | PROT_WRITE);
  }
  report("host",
         fmt::format("the host {} byte {} of a buffer of {} bytes that work in flight {}", write ? "writes" : "reads",
                     offset, length, pages_[offset / page].writers > 0 ? "writes" : "reads"));
}

// Since when: API_AVAILABLE in MTLDevice.h, MTLBuffer.h, MTLResource.h and MTLResidencySet.h of the macOS SDKs 11.3 and
// 15.0.
std::vector<Row> buffer_rows() {
  return {
      {"MTLDevice", "newBufferWithLength:options:", {10, 11}, &new_buffer},
      {"MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", {10, 11}, &new_buffer_no_copy},
      {"MTLBuffer", "contents", {10, 11}, &contents_of},
      {"MTLBuffer",
       "length",
       {10, 11},
       +[](Buffer* buffer, Selector) { return static_cast<unsigned long>(buffer->length); }},
      {"MTLResidencySetDescriptor", "alloc", {15, 0}, &alloc<ResidencyDescriptor>},
      {"MTLResidencySetDescriptor", "init", {15, 0}, &init},
      {"MTLDevice",
       "newResidencySetWithDescriptor:error:",
       {15, 0},
       +[](Device*, Selector, ResidencyDescriptor*, Error**) -> Object* {
         return make<ResidencySet>("MTLResidencySet");
       }},
      {"MTLResidencySet", "addAllocation:", {15, 0}, &add_allocation},
      {"MTLResidencySet", "removeAllocation:", {15, 0}, &remove_allocation},
      {"MTLResidencySet", "commit", {15, 0}, &commit_set},
      {"MTLResidencySet",
       "requestResidency",
       {15, 0},
       +[](ResidencySet* residency, Selector) { residency->requested = true; }},
  };
}

}  // namespace russet::objects
