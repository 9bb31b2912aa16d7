#pragma once
// Stacks of simulated threads. Checked kernels are compiled so that red zones lie between the variables of a thread
// (the stack's part of clang's address sanitizer); a function marks its own when it begins, in the shadow of its stack:
// one byte says of 8 whether all of them are a variable's (0), the first so many (1 to 7) or none (negative). Beside it
// lies a bit for each byte: whether it is of a variable that was declared without a value, and not written since.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace russet::simulator {

class Executor;

/// The stacks of one executor.
class Stacks {
 public:
  static constexpr std::size_t area = std::size_t{64} << 20;

  explicit Stacks(Executor& owner);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  std::byte* begin() const { return begin_; }
  bool hold(const void* address) const {
    return static_cast<std::uintptr_t>(static_cast<const std::byte*>(address) - begin_) < area;
  }
  /// Whose stacks this address lies in.
  static Executor* owner_of(const void* address) {
    return owners_[static_cast<std::uintptr_t>(static_cast<const std::byte*>(address) - all_) / area];
  }
  /// Whether two addresses, one of which is on a stack, are on stacks of one executor.
  static bool of_one(std::uintptr_t address, const void* on_stack) {
    return (address ^ reinterpret_cast<std::uintptr_t>(on_stack)) < area;
  }
  /// Forgets the variables of functions that never returned.
  void forget();

  /// Whether an access to a stack touches what is no variable.
  static bool misses(std::uintptr_t address, std::size_t bytes) {
    const auto* const first = reinterpret_cast<const std::int8_t*>(address / 8 + offset_);
    const auto* const last = reinterpret_cast<const std::int8_t*>((address + bytes - 1) / 8 + offset_);
    for (const std::int8_t* known = first; known < last; ++known) {
      if (*known != 0) return true;
    }
    return *last != 0 && static_cast<std::int8_t>((address + bytes - 1) % 8) >= *last;
  }
  /// The common case in few instructions, for an address that is a multiple of `bytes`: a write to a variable, or a
  /// read of what was written. False where that takes more thought.
  template <std::size_t bytes, bool write>
  static bool touch_quickly(std::uintptr_t address) {
    using Granules = std::conditional_t<bytes == 16, std::uint16_t, std::uint8_t>;  // 8 bytes each
    Granules known;
    std::memcpy(&known, reinterpret_cast<const void*>(address / 8 + offset_), sizeof(known));
    if (known != 0 && (bytes > 4 || static_cast<std::int8_t>(known) < static_cast<int>(address % 8 + bytes)))
      return false;
    auto* const bits = reinterpret_cast<std::byte*>(address / 8 + unwritten_offset_);
    Granules unwritten;
    std::memcpy(&unwritten, bits, sizeof(unwritten));
    const auto mask = static_cast<Granules>(mask_of(bytes) << address % 8);
    if ((unwritten & mask) == 0) return true;
    if (!write) return false;
    unwritten = static_cast<Granules>(unwritten & ~mask);
    std::memcpy(bits, &unwritten, sizeof(unwritten));
    return true;
  }
  /// Begins the life of a variable without a value.
  static void begin_unwritten(std::uintptr_t address, std::size_t bytes) { set_unwritten(address, bytes, true); }
  /// It was written, or its life has ended.
  static void end_unwritten(std::uintptr_t address, std::size_t bytes) {
    if (any_unwritten(address, bytes)) set_unwritten(address, bytes, false);
  }
  /// Whether any byte belongs to a variable and has not been written.
  static bool any_unwritten(std::uintptr_t address, std::size_t bytes) {
    for (; bytes > part; address += part, bytes -= part) {
      if ((unwritten_bits(address) & mask_of(part)) != 0) return true;
    }
    return (unwritten_bits(address) & mask_of(bytes)) != 0;
  }
  /// What is copied without a value has none there either.
  static void copy_unwritten(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
  /// What is known of the bytes at `address` lies at address / 8 + this.
  static std::uintptr_t shadow_offset();

 private:
  /// Bytes whose bits one word holds, wherever they begin.
  static constexpr std::size_t part = 56;
  static std::uint64_t mask_of(std::size_t bytes) { return (std::uint64_t{1} << bytes) - 1; }
  static std::uint64_t unwritten_bits(std::uintptr_t address) {
    std::uint64_t bits;
    std::memcpy(&bits, reinterpret_cast<const void*>(address / 8 + unwritten_offset_), sizeof(bits));
    return bits >> address % 8;
  }
  static void set_unwritten(std::uintptr_t address, std::size_t bytes, bool unwritten);
  struct Room;
  static Room& room();
  /// Executors at a time: threads that run kernels.
  static constexpr std::size_t most = 512;
  // Set before the first stack is made.
  static std::uintptr_t offset_;
  static std::uintptr_t unwritten_offset_;
  static std::byte* all_;
  static std::array<Executor*, most> owners_;
  std::byte* begin_;
};

}  // namespace russet::simulator
