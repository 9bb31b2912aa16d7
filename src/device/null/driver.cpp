// The null device: programs are compiled and planned for it, and nothing runs. Its memory is addresses alone, so that
// a plan for any model can be made on any machine.
#include <sys/mman.h>

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>

#include "ops/table.h"
#include "runtime/device.h"

namespace russet::null {
namespace {

constexpr std::size_t page = 4096;

class Kernel final : public compile::Kernel {
 public:
  explicit Kernel(const compile::Step& step) {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    name_ = primitive == nullptr ? "null:group" : fmt::format("null:{}", ops::row(primitive->op).name);
  }
  void run(const compile::Bindings& /*bindings*/) const override {}
  std::string name() const override { return name_; }

 private:
  std::string name_;
};

class Target final : public compile::Target {
 public:
  std::unique_ptr<compile::Kernel> compile(const compile::Step& step) const override {
    return std::make_unique<Kernel>(step);
  }
  compile::Sharing sharing(const compile::Step& step) const override {
    const auto* group = std::get_if<compile::Group>(&step);
    if (group == nullptr || group->kind != compile::Group::Kind::elementwise) return {};
    std::string code = compile::code_of(*group);
    return {code, code};
  }
  compile::BundleLimits bundle_limits() const override { return {.members = 256}; }
  bool accepts_epilogue(const compile::Primitive& /*contraction*/) const override { return true; }
  bool epilogues_update_in_place() const override { return true; }
  double cost_of_operations() const override { return 0.1; }
  bool takes_prologues() const override { return true; }
  bool integers_divide_by_zero() const override { return true; }
  bool has_attention(DType /*dtype*/) const override { return true; }
};

class Driver final : public runtime::DeviceDriver {
 public:
  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = "plans without running";
    for (int type = 0; type < dtype_count; ++type) properties.dtypes.push_back(static_cast<DType>(type));
    return properties;
  }

  const compile::Target& target() const override { return target_; }
  bool runs() const override { return false; }

  /// Reserves addresses. Touching them would be a mistake of russet's, and faults.
  std::byte* allocate(std::size_t bytes) override {
    void* memory = mmap(nullptr, rounded(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw OutOfMemoryError(fmt::format("null: no {} bytes of addresses are left", bytes));
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t bytes) override { munmap(memory, rounded(bytes)); }

  void upload(std::byte* /*target*/, std::span<const std::byte> /*source*/) override {}
  void clear(std::byte* /*target*/, std::size_t /*bytes*/) override {}
  /// Every value reads as zero.
  void download(std::span<std::byte> target, const std::byte* /*source*/) override {
    std::fill(target.begin(), target.end(), std::byte{0});
  }

 private:
  static std::size_t rounded(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page; }

  Target target_;
};

const bool registered = [] {
  runtime::register_device(DeviceType::null, [] { return std::make_unique<Driver>(); });
  return true;
}();

}  // namespace
}  // namespace russet::null
