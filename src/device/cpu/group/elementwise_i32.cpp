// Elementwise loops on std::int32_t tiles.
#include "device/cpu/group/install.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/group/elementwise_i32.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace {
static void install(Loops& loops) { install_elementwise<std::int32_t>(loops); }
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu::tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu::tiles {
namespace {
HWY_EXPORT(install);
}
void install_elementwise_i32(Loops& loops) { HWY_DYNAMIC_DISPATCH(install)(loops); }
}  // namespace russet::cpu::tiles
#endif
