// What the checks cost in memory: at most twice the bytes that a dispatch touches.
#include <sys/mman.h>
#include <algorithm>
#include <fstream>

#include "launcher.h"

namespace russet::simulator {
namespace {

constexpr std::size_t bytes = std::size_t{16} << 20;

/// Memory as the buffers of a checked device have it.
class Shared {
 public:
  explicit Shared(unsigned char value)
      : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    std::memset(memory_, value, bytes);
  }
  ~Shared() { munmap(memory_, bytes); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  BoundMemory range(bool writable) const { return {begin(), bytes, writable, writable ? "out" : "in"}; }
  std::byte* begin() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_;
};

/// Memory of this process that no file and no other process has.
std::size_t own_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssAnon:") continue;
    std::size_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes << 10;
  }
  return 0;
}

std::string kernel(std::string_view type, std::string_view arguments, std::string_view expression) {
  std::string text = "KERNEL(tested, 256, ARGUMENTS) {\n  y[group_id.x * 256u + thread_id] = EXPRESSION;\n}\n";
  const auto put = [&](std::string_view name, std::string_view what) {
    text.replace(text.find(name), name.size(), what);
  };
  put("ARGUMENTS", arguments);
  put("EXPRESSION", expression);
  for (std::size_t at = 0; (at = text.find("TYPE", at)) != std::string::npos;) text.replace(at, 4, type);
  return text;
}

class Shadow : public testing::TestWithParam<std::pair<const char*, std::size_t>> {
 protected:
  /// Bytes that the checks keep of a dispatch over `buffers`.
  std::size_t cost(const Compiled& compiled, std::vector<BoundMemory> buffers) {
    const auto groups = static_cast<std::uint32_t>(bytes / GetParam().second / 256);
    std::vector<BoundMemory> few = buffers;
    for (BoundMemory& range : few) range.bytes = 4096;
    EXPECT_EQ(reports_of(compiled.dispatch(1, 256, few)), std::vector<std::string>{});  // tables, stacks
    const std::size_t before = own_memory();
    EXPECT_EQ(reports_of(compiled.dispatch(groups, 256, std::move(buffers))), std::vector<std::string>{});
    return own_memory() - before;
  }
  static constexpr std::size_t slack = std::size_t{1} << 20;
};
INSTANTIATE_TEST_SUITE_P(Types, Shadow,
                         testing::Values(std::pair<const char*, std::size_t>("float", 4),
                                         std::pair<const char*, std::size_t>("half", 2)),
                         [](const auto& info) { return info.param.first; });

TEST_P(Shadow, OfAResultThatWasNeverWritten) {
  const Compiled compiled(
      kernel(GetParam().first, "IN(TYPE, x, 0), OUT(TYPE, y, 1)", "x[group_id.x * 256u + thread_id]"), "tested", true);
  const Shared x(1), y(0);
  mark_uninitialised(y.begin(), bytes);
  EXPECT_LE(cost(compiled, {x.range(false), y.range(true)}), 2 * (2 * bytes) + slack);
  EXPECT_EQ(y.begin()[bytes - 1], std::byte{1});
}

TEST_P(Shadow, OfAnUpdateInPlace) {
  const Compiled compiled(kernel(GetParam().first, "OUT(TYPE, y, 0)", "y[group_id.x * 256u + thread_id] * TYPE(2.0f)"),
                          "tested", true);
  const Shared y(1);
  EXPECT_LE(cost(compiled, {y.range(true)}), 2 * bytes + slack);
}

TEST_P(Shadow, MemoryThatIsShownIsChecked) {
  const Compiled compiled(kernel(GetParam().first, "OUT(TYPE, y, 0)", "y[group_id.x * 256u + thread_id + 1u]"),
                          "tested", true);
  const Shared y(1);
  const auto groups = static_cast<std::uint32_t>(bytes / GetParam().second / 256);
  const std::vector<std::string> found = reports_of(compiled.dispatch(groups, 256, {y.range(true)}));
  EXPECT_TRUE(std::ranges::any_of(found, [](const std::string& line) {
    return line.find("at byte 16777216 of 'y' (out, 16777216 bytes)") != std::string::npos;
  })) << testing::PrintToString(found);
}

}  // namespace
}  // namespace russet::simulator
