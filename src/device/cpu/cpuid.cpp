#include "device/cpu/cpuid.h"

#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace russet::cpu {

#if defined(__x86_64__)

namespace {

using Registers = std::array<unsigned, 4>;  // eax, ebx, ecx, edx

Registers query(unsigned leaf, unsigned subleaf) {
  Registers registers{};
  __get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]);
  return registers;
}

/// Which registers the system saves: bits of XCR0.
std::uint64_t saved_state() {
  if (((query(1, 0)[2] >> 27) & 1U) == 0) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

constexpr std::uint64_t avx_state = 0x6;
constexpr std::uint64_t avx512_state = 0xe6;
constexpr std::uint64_t amx_state = 0x60000;

struct Feature {
  const char* name;
  unsigned leaf, subleaf;
  std::size_t word;
  unsigned bit;
  std::uint64_t state;
};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
constexpr Feature features[] = {
    {"sse4_2", 1, 0, 2, 20, 0},
    {"avx", 1, 0, 2, 28, avx_state},
    {"fma", 1, 0, 2, 12, avx_state},
    {"f16c", 1, 0, 2, 29, avx_state},
    {"avx2", 7, 0, 1, 5, avx_state},
    {"avx_vnni", 7, 1, 0, 4, avx_state},
    {"avx512f", 7, 0, 1, 16, avx512_state},
    {"avx512bw", 7, 0, 1, 30, avx512_state},
    {"avx512vl", 7, 0, 1, 31, avx512_state},
    {"avx512_vnni", 7, 0, 2, 11, avx512_state},
    {"avx512_bf16", 7, 1, 0, 5, avx512_state},
    {"avx512_fp16", 7, 0, 3, 23, avx512_state},
    {"amx_tile", 7, 0, 3, 24, amx_state},
    {"amx_bf16", 7, 0, 3, 22, amx_state},
    {"amx_int8", 7, 0, 3, 25, amx_state},
};

}  // namespace

std::string processor_name() {
  if (query(0x80000000U, 0)[0] < 0x80000004U) return "x86-64 processor";
  std::string name;
  for (unsigned leaf = 0x80000002U; leaf <= 0x80000004U; ++leaf) {
    const Registers registers = query(leaf, 0);
    std::array<char, sizeof(registers)> text{};
    std::memcpy(text.data(), registers.data(), text.size());
    name.append(text.data(), text.size());
  }
  name.resize(std::strlen(name.c_str()));
  const std::size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "x86-64 processor" : name.substr(first, name.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> instruction_sets() {
  const std::uint64_t state = saved_state();
  std::vector<std::string> names;
  for (const Feature& feature : features) {
    const bool present = ((query(feature.leaf, feature.subleaf)[feature.word] >> feature.bit) & 1U) != 0;
    if (present && (state & feature.state) == feature.state) names.emplace_back(feature.name);
  }
  return names;
}

#else

std::string processor_name() {
#if defined(__APPLE__)
  char name[256] = {};
  std::size_t size = sizeof(name);
  if (sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0) return name;
#endif
  return "processor";
}

std::vector<std::string> instruction_sets() {
#if defined(__aarch64__)
  return {"neon"};
#else
  return {};
#endif
}

#endif

}  // namespace russet::cpu
