// Kernels compute what their text says, checked and unchecked.
#include <fmt/format.h>
#include <russet/error.h>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "launcher.h"

namespace russet::simulator {
namespace {

using Strings = std::vector<std::string>;

class Execute : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Modes, Execute, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "checked" : "unchecked"; });

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST_P(Execute, ElementwiseWithValues) {
  const Compiled scale(R"(
    struct ScaleValues { uint count; float factor; };
    KERNEL(scale, 256, IN(float, x, 0), OUT(float, y, 1), VALUES(ScaleValues, values, 2)) {
      const uint i = group_id.x * 256u + thread_id;
      if (i < values.count) y[i] = x[i] * values.factor;
    })",
                       "scale", GetParam());
  struct {
    std::uint32_t count;
    float factor;
  } const fields{10000, 3};
  const std::vector<float> x = counting(10000);
  std::vector<float> y(10000);
  EXPECT_EQ(reports_of(scale.dispatch(40, 256, {in(x), out(y)}, values(fields))), Strings{});
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 3 * x[i]) << i;
}

TEST_P(Execute, BarriersAndSimdgroupFunctions) {
  const Compiled sums(R"(
    KERNEL(sums, 256, IN(float, x, 0), OUT(float, total, 1), OUT(float, reversed, 2)) {
      GROUP_MEMORY(float, part, 8);
      GROUP_MEMORY(float, copy, 256);
      const float own = x[group_id.x * 256u + thread_id];
      copy[thread_id] = own;
      const float sum = simd_sum(own);
      if (lane_id == 0) part[simdgroup_id] = sum;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (simdgroup_id == 0) {
        const float all = simd_sum(lane_id < 8 ? part[lane_id] : 0.0f);
        if (lane_id == 0) total[group_id.x] = all;
      }
      reversed[group_id.x * 256u + thread_id] = copy[255 - thread_id];
    })",
                      "sums", GetParam());
  const std::vector<float> x = counting(2560);
  std::vector<float> total(10), reversed(2560);
  EXPECT_EQ(reports_of(sums.dispatch(10, 256, {in(x), out(total), out(reversed)})), Strings{});
  for (std::size_t group = 0; group < 10; ++group) {
    EXPECT_EQ(total[group], std::accumulate(x.begin() + group * 256, x.begin() + (group + 1) * 256, 0.0f));
    for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(reversed[group * 256 + i], x[group * 256 + 255 - i]);
  }
}

TEST_P(Execute, ShufflesScansAndVotes) {
  const Compiled shuffles(R"(
    KERNEL(shuffles, 64, OUT(int, y, 0)) {
      device int* row = y + thread_id * 8;
      const int own = int(thread_id) * 10;
      row[0] = simd_shuffle(own, ushort(31 - lane_id));
      row[1] = simd_shuffle_xor(own, ushort(5));
      row[2] = simd_shuffle_down(own, ushort(4));
      row[3] = simd_broadcast(own, ushort(7));
      row[4] = simd_prefix_inclusive_sum(own);
      row[5] = simd_prefix_exclusive_sum(own);
      row[6] = simd_max(own) - simd_min(own);
      row[7] = (simd_any(lane_id == 3) ? 1 : 0) + (simd_all(lane_id < 31) ? 2 : 0) + (simd_all(lane_id < 32) ? 4 : 0);
    })",
                          "shuffles", GetParam());
  std::vector<int> y(64 * 8);
  EXPECT_EQ(reports_of(shuffles.dispatch(1, 64, {out(y)})), Strings{});
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32, first = thread - lane;
    const int* row = &y[static_cast<std::size_t>(thread) * 8];
    EXPECT_EQ(row[0], (first + 31 - lane) * 10);
    EXPECT_EQ(row[1], (first + (lane ^ 5)) * 10);
    if (lane < 28) {
      EXPECT_EQ(row[2], (thread + 4) * 10);
    }
    EXPECT_EQ(row[3], (first + 7) * 10);
    int sum = 0;
    for (int i = first; i <= thread; ++i) sum += i * 10;
    EXPECT_EQ(row[4], sum);
    EXPECT_EQ(row[5], sum - thread * 10);
    EXPECT_EQ(row[6], 310);
    EXPECT_EQ(row[7], 5);
  }
}

TEST_P(Execute, ManyBarriersInALoopAndALargeGroup) {
  // Each thread adds its neighbour's value in each of 100 rounds; a reference does the same on the host.
  const Compiled rounds(R"(
    KERNEL(rounds, 1024, IN(uint, x, 0), OUT(uint, y, 1)) {
      GROUP_MEMORY(uint, ring, 1024);
      ring[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint round = 0; round < 100; ++round) {
        const uint next = ring[(thread_id + 1) % 1024];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        ring[thread_id] += next;
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      y[thread_id] = ring[thread_id];
    })",
                        "rounds", GetParam());
  std::vector<std::uint32_t> x(1024), y(1024);
  std::iota(x.begin(), x.end(), 1u);
  EXPECT_EQ(reports_of(rounds.dispatch(1, 1024, {in(x), out(y)})), Strings{});
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint32_t> next(1024);
    for (std::size_t i = 0; i < 1024; ++i) next[i] = x[i] + x[(i + 1) % 1024];
    x = next;
  }
  EXPECT_EQ(y, x);
}

TEST_P(Execute, HalfAndBfloatRoundToNearestEven) {
  const Compiled convert(R"(
    KERNEL(convert, 32, IN(float, x, 0), OUT(half, h, 1), OUT(bfloat, b, 2), OUT(float, back, 3)) {
      h[thread_id] = half(x[thread_id]);
      b[thread_id] = bfloat(x[thread_id]);
      back[thread_id] = float(half(x[thread_id])) + float(bfloat(x[thread_id]));
    })",
                         "convert", GetParam());
  std::vector<float> x(32, 1.0f);
  // By hand: a tie to even below and above, one above a tie, the largest half, its overflow, subnormals, specials.
  const float given[] = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1.001p-11f, 65504, 65520,       0x1p-24f,
                         0x1p-25f,     3 * 0x1p-25f,     -INFINITY,        -0.0f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f};
  const std::uint16_t half_bits[] = {0x3c00, 0x3c02, 0x3c01, 0x7bff, 0x7c00, 1, 0, 2, 0xfc00, 0x8000, 0x3c04, 0x3c0c};
  const std::uint16_t bfloat_bits[] = {0x3f80, 0x3f80, 0x3f80, 0x4780, 0x4780, 0x3380,
                                       0x3300, 0x33c0, 0xff80, 0x8000, 0x3f80, 0x3f82};
  std::copy(std::begin(given), std::end(given), x.begin());
  std::vector<std::uint16_t> h(32), b(32);
  std::vector<float> back(32);
  EXPECT_EQ(reports_of(convert.dispatch(1, 32, {in(x), out(h), out(b), out(back)})), Strings{});
  for (std::size_t i = 0; i < std::size(given); ++i) {
    EXPECT_EQ(h[i], half_bits[i]) << given[i];
    EXPECT_EQ(b[i], bfloat_bits[i]) << given[i];
  }
}

TEST_P(Execute, MatricesOfASimdgroup) {
  const Compiled product(R"(
    KERNEL(product, 32, IN(float, a, 0), IN(float, b, 1), IN(half, h, 2), OUT(float, c, 3), OUT(float, t, 4)) {
      simdgroup_float8x8 ma, mb, mc = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
      simdgroup_half8x8 mh;
      simdgroup_load(ma, a, 8);
      simdgroup_load(mb, b, 16, make_ulong2(8, 0), true);
      simdgroup_load(mh, h, 8);
      simdgroup_multiply_accumulate(mc, ma, mb, mc);
      simdgroup_multiply_accumulate(mc, mh, mb, mc);
      simdgroup_store(mc, c, 8);
      simdgroup_store(mc, t, 8, make_ulong2(0, 0), true);
    })",
                         "product", GetParam());
  std::vector<float> a(64), b(128), c(64), t(64);
  std::vector<std::uint16_t> h(64, 0x4000);  // 2
  for (std::size_t i = 0; i < 64; ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < 128; ++i) b[i] = static_cast<float>(i % 5);
  EXPECT_EQ(reports_of(product.dispatch(1, 32, {in(a), in(b), in(h), out(c), out(t)})), Strings{});
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float sum = 0.5f;
      for (std::size_t k = 0; k < 8; ++k) sum += (a[row * 8 + k] + 2) * b[column * 16 + 8 + k];
      EXPECT_EQ(c[row * 8 + column], sum);
      EXPECT_EQ(t[column * 8 + row], sum);
    }
  }
}

TEST_P(Execute, AtomicsCountAllThreads) {
  const Compiled count(R"(
    KERNEL(count, 256, IN(uint, x, 0), OUT(atomic_uint, bins, 1)) {
      atomic_fetch_add_explicit(&bins[x[group_id.x * 256 + thread_id] % 4], 1u, memory_order_relaxed);
      atomic_fetch_max_explicit(&bins[4], thread_id, memory_order_relaxed);
    })",
                       "count", GetParam());
  std::vector<std::uint32_t> x(256 * 64), bins(5);
  std::iota(x.begin(), x.end(), 0u);
  EXPECT_EQ(reports_of(count.dispatch(64, 256, {in(x), out(bins)})), Strings{});
  EXPECT_EQ(bins, (std::vector<std::uint32_t>{4096, 4096, 4096, 4096, 255}));
}

TEST_P(Execute, PositionsInTheGrid) {
  const Compiled where(R"(
    KERNEL(where, 32, OUT(uint, y, 0)) {
      const uint group = (group_id.z * group_count.y + group_id.y) * group_count.x + group_id.x;
      if (lane_id == 5 && simdgroup_id == 0) y[group] = group_id.x + 10 * group_id.y + 100 * group_id.z;
    })",
                       "where", GetParam());
  std::vector<std::uint32_t> y(24);
  Dispatch dispatch = where.dispatch(2, 32, {out(y)});
  dispatch.groups = {2, 3, 4};
  EXPECT_EQ(reports_of(dispatch), Strings{});
  for (std::uint32_t i = 0; i < 24; ++i) EXPECT_EQ(y[i], i % 2 + 10 * (i / 2 % 3) + 100 * (i / 6));
}

TEST_P(Execute, RefusesLaunchesThatMetalWould) {
  const std::string text = "KERNEL(plain, 64, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = x[thread_id]; }";
  const Compiled plain(text, "plain", GetParam());
  std::vector<float> x(1024), y(1024);
  const auto refused = [&](const Dispatch& dispatch, std::string_view part) {
    const Strings lines = reports_of(dispatch);
    ASSERT_EQ(lines.size(), 1u) << part;
    EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0];
  };
  refused(plain.dispatch(1, 128, {in(x), out(y)}), "launch: threadgroups of 128 threads: the kernel states 64");
  refused(plain.dispatch(1, 48, {in(x), out(y)}), "not a multiple of 32");
  refused(plain.dispatch(1, 64, {in(x)}), "1 buffers are bound, the kernel takes 2");
  refused(plain.dispatch(1, 64, {in(x), in(y)}), "argument 'y' is written");
  refused(plain.dispatch(1, 64, {in(x), out(y)}, values(1)), "takes none");
  Dispatch deep = plain.dispatch(1, 64, {in(x), out(y)});
  deep.groups = {1, 70000, 1};
  refused(deep, "y and z are 65535 at most");
  EXPECT_EQ(reports_of(plain.dispatch(1, 64, {in(x), out(y)})), Strings{});
}

TEST_P(Execute, DivergenceIsReportedAndTheRestGoesOn) {
  const Compiled diverges(R"(
    KERNEL(diverges, 64, OUT(float, y, 0)) {
      if (group_id.x == 1) {
        if (thread_id < 40) threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      if (group_id.x == 2 && lane_id < 8) y[thread_id + 128] = simd_sum(1.0f);
      y[group_id.x * 64 + thread_id] = 7;
    })",
                          "diverges", GetParam());
  std::vector<float> y(256);
  const Strings lines = reports_of(diverges.dispatch(4, 64, {out(y)}));
  ASSERT_GE(lines.size(), 2u);
  bool barrier = false, function = false;
  for (const std::string& line : lines) {
    barrier |= line.find("40 of 64 threads came to the barrier at line 4") != std::string::npos;
    function |= line.find("8 of 32 lanes of simdgroup 0 came to the simdgroup function at line 6") != std::string::npos;
  }
  EXPECT_TRUE(barrier && function) << lines[0] << "\n" << lines[1];
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[255], 7);
}

TEST(Compile, SaysWhatClangSaysAndKnowsNoOtherEntry) {
  try {
    compile("KERNEL(wrong, 32, OUT(float, y, 0)) {\n  y[0] = min(1, 2u);\n}", false);
    FAIL() << "an ambiguous call compiled";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("kernel:2:10: error: call to 'min' is ambiguous"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(compile("KERNEL(a, 32, OUT(float, y, 0)) { y[0] = 1; }", false)->find("b"), nullptr);
}

/// Garbage in a variable may look like what should have been there, so nothing may be read that has not been set.
TEST(Compile, RefusesVariablesThatMayNotBeSet) {
  const auto text = [](std::string_view start) {
    return fmt::format(R"(KERNEL(least, 32, IN(float, x, 0), OUT(float, y, 1)) {{
  float best{};
  for (uint i = 0; i < 9; ++i) best = x[i] < best ? x[i] : best;
  y[thread_id] = best;
}})",
                       start);
  };
  EXPECT_NO_THROW(compile(text(" = INFINITY")));
  try {
    compile(text(""));
    FAIL() << "was compiled";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string_view(error.what()).find("uninitialized"), std::string_view::npos) << error.what();
  }
}

void expect_refused(std::string_view text, std::string_view words) {
  for (const bool checked : {false, true}) {
    try {
      compile(text, checked);
      ADD_FAILURE() << "was compiled: " << text;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string_view(error.what()).find(words), std::string_view::npos) << error.what();
    }
  }
}

TEST(Compile, AMissingReturnIsRefused) {
  const auto text = [](const std::string& last) {
    return "float positive(float x) {\n  if (x > 0.0f) return x;\n" + last +
           "}\nKERNEL(k, 32, OUT(float, y, 0)) { y[thread_id] = positive(float(thread_id)); }";
  };
  EXPECT_NO_THROW(compile(text("  return 0.0f;\n"), true));
  expect_refused(text(""), "non-void function does not return a value");
}

TEST(Compile, ThreadgroupVariablesAreThoseOfGroupMemory) {
  const auto text = [](const std::string& first) {
    return "KERNEL(k, 32, OUT(float, y, 0)) {\n" + first +
           "\n  part[thread_id] = 1;\n  y[thread_id] = part[thread_id];\n}";
  };
  EXPECT_NO_THROW(compile(text("  GROUP_MEMORY(float, whole, 32); threadgroup float* const part = whole;"), true));
  EXPECT_NO_THROW(compile(text("  GROUP_MEMORY(float, whole, 32); threadgroup float (&part)[32] = whole;"), true));
  EXPECT_NO_THROW(
      compile("template <class Place> struct Line { Place* place; };\n" +
                  text("  typedef threadgroup float Place; GROUP_MEMORY(float, whole, 32);\n"
                       "  Line<threadgroup float> line; line.place = whole; Place* const part = line.place;"),
              true));
  for (const char* const variable :
       {"threadgroup float part[32];", "threadgroup float part[32] = {};", "threadgroup\n    float part[1 + 31];",
        "float one; threadgroup float part[32];"}) {
    expect_refused(text(std::string("  ") + variable), "error: a variable in threadgroup memory");
  }
  expect_refused(text("\n  threadgroup float part[32];"), "kernel:3: error");
  expect_refused("threadgroup float part[32];\n" + text(""), "kernel:1: error");
}

TEST(Compile, SideBySideGivesEachItsOwn) {
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&results, i] {
      const std::string text =
          "KERNEL(own, 32, OUT(float, y, 0)) { if (thread_id == 0) y[0] = " + std::to_string(i % 4) + "; }";
      const Compiled own(text, "own", false);
      const Dispatch dispatch =
          own.dispatch(1, 32, {{reinterpret_cast<std::byte*>(&results[static_cast<std::size_t>(i)]), 4, true, "y"}});
      execute({&dispatch, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace russet::simulator
