// The metal driver on the simulator: memory, kernels from text, order, waiting, failures. ctest runs it as macOS 14, 15
// and 26.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "metal/fixture.h"

namespace russet {
namespace {

using metal_test::Count;
using metal_test::Floats;
using metal_test::Metal;
using objects::settings;
using objects::statistics;

TEST_F(Metal, SaysWhatItIs) {
  const runtime::DeviceProperties properties = driver().properties();
  EXPECT_EQ(properties.name, settings().name);
  EXPECT_EQ(properties.memory_bytes, settings().working_set);
  EXPECT_EQ(std::count(properties.dtypes.begin(), properties.dtypes.end(), DType::float64), 0);
  EXPECT_EQ(driver().gpu_properties().family, "apple9");
  EXPECT_EQ(driver().gpu_properties().group_memory, 32768u);
}

TEST_F(Metal, RunsAKernelFromText) {
  Floats x(driver(), {1, 2, 3, 4});
  Floats y(driver(), Count{4});
  scale(x, y, 2.5f);
  EXPECT_EQ(y.read(), (std::vector<float>{2.5f, 5, 7.5f, 10}));
}

TEST_F(Metal, ABarrierOrdersLaunches) {
  Floats x(driver(), {1, -1});
  Floats y(driver(), Count{2});
  Floats z(driver(), Count{2});
  for (int i = 0; i < 50; ++i) {
    scale(x, y, 2);
    driver().barrier();
    scale(y, z, 3);
    driver().barrier();
    scale(z, x, 0.5f);
    driver().barrier();
  }
  driver().synchronize();
  EXPECT_FLOAT_EQ(x.read()[0], static_cast<float>(std::pow(3.0, 50)));
}

// A table of more than the inline bytes, filled in anew for each launch while others are in flight.
TEST_F(Metal, ReachesManyTensorsThroughATable) {
  std::vector<std::unique_ptr<Floats>> all;
  for (std::size_t i = 0; i < 400; ++i) {
    all.push_back(std::make_unique<Floats>(driver(), std::vector<float>(1 + i * 7 % 64, static_cast<float>(i))));
  }
  all.push_back(std::make_unique<Floats>(driver(), std::vector<float>(5 << 10, 1)));   // above a page
  all.push_back(std::make_unique<Floats>(driver(), std::vector<float>(10 << 20, 2)));  // in a buffer of its own
  constexpr int rounds = 30;
  for (int round = 0; round < rounds; ++round) {
    if (round % 3 == 0) driver().commit();
    bump_all(all);
    driver().barrier();
  }
  for (std::size_t i = 0; i < 400; ++i) {
    EXPECT_EQ(all[i]->read(), std::vector<float>(all[i]->count(), static_cast<float>(i) + rounds)) << i;
  }
  EXPECT_EQ(all[400]->read()[63], 1 + rounds);
  EXPECT_EQ(all[400]->read()[64], 1);
  EXPECT_EQ(all[401]->read()[0], 2 + rounds);
}

// A launch binds blocks: those of a large model's parameters, gradients and state must be few.
TEST_F(Metal, TensorsOfAModelLieInFewBuffers) {
  restart([] { settings().working_set = std::size_t{8} << 30; });
  std::vector<std::pair<std::byte*, std::size_t>> all;
  std::set<const void*> blocks;
  for (int copy = 0; copy < 4; ++copy) {
    all.emplace_back(nullptr, std::size_t{94} << 20);
    for (int layer = 0; layer < 12; ++layer) {
      for (const std::size_t bytes : {3072, 12288, 2359296, 2359296, 2359296, 2359296, 9437184, 9437184, 3072}) {
        all.emplace_back(nullptr, bytes);
      }
    }
  }
  std::size_t sum = 0;
  for (auto& [memory, bytes] : all) {
    memory = driver().allocate(bytes);
    blocks.insert(driver().block_of(memory, bytes));
    sum += bytes;
  }
  EXPECT_GT(sum, 1700000000U);
  EXPECT_LE(blocks.size(), 24U);
  for (const auto& [memory, bytes] : all) driver().release(memory, bytes);
}

// Neighbours in one buffer are told apart.
TEST_F(Metal, ALaunchThroughATableKeepsToEachTensor) {
  std::vector<std::unique_ptr<Floats>> all;
  for (std::size_t i = 0; i < 3; ++i) all.push_back(std::make_unique<Floats>(driver(), std::vector<float>(16, 1)));
  bump_all(all);
  driver().synchronize();
  EXPECT_EQ(metal_test::reports(), std::vector<std::string>{});
  bump_all(all, 1);
  driver().synchronize();
  const std::vector<std::string> found = metal_test::reports();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("bounds"), std::string::npos) << found[0];
  EXPECT_NE(found[0].find("byte 64 of 'buffer"), std::string::npos) << found[0];
}

// A driver that forgets one of its barriers is found out, whichever it is.
TEST_F(Metal, ALostBarrierIsReported) {
  if (!simulator::options().checked) GTEST_SKIP() << "the simulator checks nothing";
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  Floats z(driver(), Count{1});
  constexpr int barriers = 3;
  const auto run = [&](int lost) {
    settings().lost_barrier = lost < 0 ? -1 : statistics().barriers + lost;
    scale(x, y, 2);
    driver().barrier();
    scale(y, z, 3);  // reads what was written
    driver().barrier();
    scale(x, y, 4);  // writes what was read
    driver().barrier();
    scale(z, y, 5);  // writes what was written
    driver().synchronize();
    return metal_test::reports();
  };
  EXPECT_EQ(run(-1), std::vector<std::string>{});
  for (int lost = 0; lost < barriers; ++lost) {
    const std::vector<std::string> found = run(lost);
    const auto is_overlap = [](const std::string& line) { return line.starts_with("overlap"); };
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), is_overlap)) << lost;
  }
  EXPECT_EQ(run(-1), std::vector<std::string>{});
}

// Without barriers: what a command buffer wrote is seen by the next one, and by the host.
TEST_F(Metal, CommandBuffersRunInOrder) {
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  for (int i = 0; i < 40; ++i) {
    scale(x, y, 2);
    driver().commit();
    scale(y, x, 1);
    driver().commit();
  }
  EXPECT_FLOAT_EQ(x.read()[0], static_cast<float>(std::pow(2.0, 40)));
}

TEST_F(Metal, UploadsWaitForReadersAndDownloadsForWriters) {
  Floats x(driver(), std::vector<float>(8192, 1));
  Floats y(driver(), Count{8192});
  for (int i = 0; i < 30; ++i) {
    scale(x, y, 1);
    driver().commit();
    x.write(std::vector<float>(8192, static_cast<float>(i)));  // the launch above reads what was there before
    EXPECT_FLOAT_EQ(y.read()[17], i == 0 ? 1.0f : static_cast<float>(i - 1));
  }
}

TEST_F(Metal, MemoryIsAlignedAndMayBeReadAtAnyOffset) {
  for (const std::size_t bytes : {1, 64, 100, 5000, 16384, 16385, 100000, 9 << 20}) {
    std::byte* const memory = driver().allocate(bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    EXPECT_EQ(address % (bytes > 16384 ? 16384 : 64), 0u) << bytes;
    driver().release(memory, bytes);
  }
  Floats x(driver(), std::vector<float>(1000, 3));
  Floats y(driver(), Count{1000});
  scale(x, y, 2, 1, 999);
  EXPECT_FLOAT_EQ(Floats(driver(), y.memory() + 999 * sizeof(float), Count{1}).read()[0], 6);
}

// Pieces of one block come back together: nothing is lost by freeing in another order.
TEST_F(Metal, FreedPiecesMerge) {
  std::vector<std::byte*> pieces;
  const long before = objects::live_objects("MTLBuffer");
  for (int i = 0; i < 300; ++i) pieces.push_back(driver().allocate(20000));
  EXPECT_GT(objects::live_objects("MTLBuffer"), before);
  for (std::size_t i = 0; i < pieces.size(); i += 2) driver().release(pieces[i], 20000);
  for (std::size_t i = 1; i < pieces.size(); i += 2) driver().release(pieces[i], 20000);
  EXPECT_EQ(objects::live_objects("MTLBuffer"), before);
}

TEST_F(Metal, OutOfMemoryIsAnErrorWithNumbers) {
  restart([] { settings().working_set = std::size_t{100} << 20; });
  Floats used(driver(),
              std::vector<float>(std::size_t{15} << 20, 1));  // 60 MiB, beside a block of 4 MiB for small pieces
  try {
    driver().allocate(std::size_t{50} << 20);
    FAIL() << "was granted";
  } catch (const OutOfMemoryError& error) {
    for (const std::size_t number : {50 << 20, 64 << 20, 100 << 20}) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(number)), std::string::npos) << error.what();
    }
  }
  EXPECT_FLOAT_EQ(used.read()[1], 1);
}

TEST_F(Metal, MemoryBeyondALargestBufferIsOneRangeOfAddresses) {
  restart([] { settings().max_buffer_length = std::size_t{1} << 20; });
  const std::size_t bytes = std::size_t{11} << 20;
  std::byte* const memory = driver().allocate(bytes);
  // Tensors of half a buffer at every boundary; each command buffer uses other MTLBuffers over the same memory.
  const std::size_t count = (std::size_t{1} << 19) / sizeof(float);
  for (std::size_t at = 0; at + 2 * count * sizeof(float) < bytes; at += 300000 / 64 * 64) {
    Floats x(driver(), memory + at, std::vector<float>(count, 1));
    Floats y(driver(), memory + at + count * sizeof(float), Count{count});
    scale(x, y, 2);
    driver().commit();
    scale(y, x, 3);
    driver().commit();
    ASSERT_FLOAT_EQ(x.read().back(), 6) << at;
  }
  EXPECT_THROW(scale_bytes(memory, memory, std::size_t{3} << 20), DeviceError);
  driver().release(memory, bytes);
}

// Metal orders command buffers by the MTLBuffers that they share. Two over the same bytes are ordered by a fence alone.
TEST_F(Metal, WorkThroughOverlappingBuffersIsOrdered) {
  restart([] { settings().max_buffer_length = std::size_t{1} << 20; });
  constexpr std::size_t quarter = std::size_t{1} << 18;
  constexpr std::size_t count = 2 * quarter / sizeof(float);
  std::byte* const memory = driver().allocate(40 * quarter);
  Floats x(driver(), memory + 32 * quarter, std::vector<float>(count, 1));
  Floats y(driver(), memory + quarter, Count{count});             // in the first buffer
  Floats half(driver(), memory + 2 * quarter, Count{count / 2});  // the second one starts here
  Floats z(driver(), memory + 20 * quarter, Count{count / 2});
  for (int i = 1; i < 10; ++i) {
    scale(x, y, static_cast<float>(i));
    driver().commit();
    scale(half, z, 2);
    driver().commit();
    ASSERT_FLOAT_EQ(z.read()[7], 2.0f * static_cast<float>(i));
  }
  driver().release(memory, 40 * quarter);
}

TEST_F(Metal, LostFencesAreReported) {
  if (!simulator::options().checked) GTEST_SKIP() << "the simulator checks nothing";
  restart([] {
    settings().max_buffer_length = std::size_t{1} << 20;
    settings().delay = std::chrono::milliseconds(50);  // both command buffers are in flight
  });
  constexpr std::size_t quarter = std::size_t{1} << 18;
  constexpr std::size_t count = 2 * quarter / sizeof(float);
  std::byte* const memory = driver().allocate(40 * quarter);
  Floats x(driver(), memory + 32 * quarter, std::vector<float>(count, 1));
  Floats y(driver(), memory + quarter, Count{count});
  Floats half(driver(), memory + 2 * quarter, Count{count / 2});
  Floats z(driver(), memory + 20 * quarter, Count{count / 2});
  for (const bool lost : {false, true}) {
    settings().lost_fences = lost;
    scale(x, y, 3);
    driver().commit();
    scale(half, z, 2);
    driver().commit();
    driver().synchronize();
    const std::vector<std::string> found = metal_test::reports();
    const auto is_race = [](const std::string& line) {
      return line.find("nothing orders their encoders") != std::string::npos;
    };
    EXPECT_EQ(std::any_of(found.begin(), found.end(), is_race), lost) << testing::PrintToString(found);
  }
  settings().lost_fences = false;
  driver().release(memory, 40 * quarter);
}

TEST_F(Metal, CompilerErrorsAreItsWords) {
  const gpu::CompilationUnit unit{"KERNEL(broken, 64, OUT(float, x, 0)) { syntax error }", {{"broken", 64}}};
  try {
    driver().build({&unit, 1});
    FAIL() << "was compiled";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("broken"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("error"), std::string::npos) << error.what();
  }
  const gpu::CompilationUnit other{std::string(metal_test::kernels), {{"no_such_kernel", 64}}};
  EXPECT_THROW(driver().build({&other, 1}), DeviceError);
}

TEST_F(Metal, UnitsAreBuiltOnceAndInOrder) {
  std::vector<gpu::CompilationUnit> units;
  for (int i = 0; i < 10; ++i) {
    std::string text(metal_test::kernels);
    text.replace(text.find("KERNEL(scale"), 12, "KERNEL(scale" + std::to_string(i));
    units.push_back({text, {{"bump", 64}, {"scale" + std::to_string(i), 64}}});
  }
  const int before = statistics().libraries;
  const auto first = driver().build(units);
  ASSERT_EQ(first.size(), 20u);
  EXPECT_EQ(statistics().libraries - before, 10);
  const auto second = driver().build(units);
  EXPECT_EQ(first, second);
  EXPECT_EQ(statistics().libraries - before, 10);
}

TEST_F(Metal, ArchivesServeTheNextProcess) {
  const auto compile = [&] {
    const gpu::CompilationUnit unit{std::string(metal_test::kernels) + "// archived", {{"scale", 64}, {"bump", 64}}};
    driver().build({&unit, 1});
  };
  const std::filesystem::path folder = cache() / "russet" / "metal";
  std::filesystem::remove_all(folder);
  compile();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  ASSERT_EQ(files.size(), 1u);

  const auto compiled_by = [&] {
    restart();
    const int before = statistics().pipelines_compiled;
    compile();
    return statistics().pipelines_compiled - before;
  };
  EXPECT_EQ(compiled_by(), 0);
  std::ofstream(files[0]) << "damage";
  EXPECT_EQ(compiled_by(), 2);  // it is made anew
  EXPECT_EQ(compiled_by(), 0);
}

TEST_F(Metal, CommandBuffersGrowWithShortWork) {
  const auto command_buffers_of = [&](double seconds) {
    restart([&] { settings().seconds_per_dispatch = seconds; });
    Floats x(driver(), {1});
    Floats y(driver(), Count{1});
    const auto run = [&] {
      for (int i = 0; i < 400; ++i) {
        scale(x, y, 1);
        driver().barrier();
      }
      driver().synchronize();
    };
    run();
    const int before = statistics().command_buffers;
    run();
    return statistics().command_buffers - before;
  };
  EXPECT_EQ(command_buffers_of(1e-6), 1);
  EXPECT_EQ(command_buffers_of(1e-2), 50);
}

// Before anything was measured, and whatever was: launches that a model holds to be long are few in a command buffer.
TEST_F(Metal, CommandBuffersEndWhenTheyAreModelledToBeLong) {
  const auto command_buffers_of = [&](double seconds) {
    restart();
    modelled_seconds = seconds;
    Floats x(driver(), {1});
    Floats y(driver(), Count{1});
    driver().synchronize();
    const int before = statistics().command_buffers;
    for (int i = 0; i < 24; ++i) {
      scale(x, y, 1);
      driver().barrier();
    }
    driver().synchronize();
    return statistics().command_buffers - before;
  };
  EXPECT_EQ(command_buffers_of(1e-5), 1);
  EXPECT_EQ(command_buffers_of(3e-3), 8);
  EXPECT_EQ(command_buffers_of(5e-2), 24);
}

// A launch that continues what another began cannot make good what that one left undefined.
TEST_F(Metal, WhatALaunchContinuesStaysLost) {
  Floats x(driver(), {2, 3});
  Floats y(driver(), {0, 0});
  driver().synchronize();
  settings().next_failure = 2;
  copy_part(x, y, 0);
  driver().commit();
  EXPECT_THROW(driver().synchronize(), DeviceError);
  EXPECT_THROW(copy_part(x, y, 1), DeviceError);
  EXPECT_THROW(y.read(), DeviceError);
  y.write({7, 8});
  copy_part(x, y, 1);
  EXPECT_EQ(y.read(), (std::vector<float>{7, 3}));
}

// A value begins in the order of the work: what was launched before may still read what lay there.
TEST_F(Metal, AValueThatBeginsHasNotBeenWritten) {
  if (!driver().tracks_values() || !simulator::options().checked) GTEST_SKIP() << "the simulator checks nothing";
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  Floats z(driver(), {3});
  scale(x, y, 2);
  driver().barrier();
  driver().begin_value(x.memory(), x.bytes());
  scale(z, x, 2);
  driver().barrier();
  scale(x, y, 2);
  driver().synchronize();
  EXPECT_EQ(metal_test::reports(), std::vector<std::string>{});
  EXPECT_FLOAT_EQ(y.read()[0], 12);

  driver().begin_value(x.memory(), x.bytes());
  driver().synchronize();
  driver().host_wrote(x.memory(), x.bytes());  // as a step that ran on the CPU does
  scale(x, y, 1);
  driver().synchronize();
  EXPECT_EQ(metal_test::reports(), std::vector<std::string>{});

  driver().begin_value(x.memory(), x.bytes());
  scale(x, y, 1);
  driver().synchronize();
  const std::vector<std::string> found = metal_test::reports();
  ASSERT_EQ(found.size(), 1u) << testing::PrintToString(found);
  EXPECT_TRUE(found[0].starts_with("uninitialised")) << found[0];
  EXPECT_NE(found[0].find("of an MTLBuffer of"), std::string::npos) << found[0];
}

TEST_F(Metal, TellsHowLongTheGpuWorked) {
  restart([] { settings().seconds_per_dispatch = 0.25; });
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  const double before = driver().busy_seconds();
  for (int i = 0; i < 3; ++i) {
    scale(x, y, 1);
    driver().barrier();
  }
  driver().synchronize();
  EXPECT_NEAR(driver().busy_seconds() - before, 0.75, 1e-6);
}

TEST_F(Metal, LaunchesAreTimedApartFromAllOthers) {
  restart([] { settings().seconds_per_dispatch = 0.25; });
  Floats x(driver(), {1, 2});
  Floats y(driver(), Count{2});
  Floats z(driver(), Count{2});
  scale(x, y, 2);  // not yet committed
  EXPECT_NEAR(time_scale(x, z, 3, 5), 1.25, 1e-6);
  EXPECT_EQ(y.read(), (std::vector<float>{2, 4}));
  EXPECT_EQ(z.read(), (std::vector<float>{3, 6}));
  EXPECT_NEAR(driver().busy_seconds(), 0.25, 1e-6) << "time that was measured is not the work's";
}

TEST_F(Metal, AFailureOfATimedLaunchIsNoOneElses) {
  Floats x(driver(), {1, 2});
  Floats y(driver(), Count{2});
  Floats z(driver(), Count{2});
  scale(x, y, 2);
  driver().synchronize();
  settings().next_failure = 2;
  EXPECT_THROW(time_scale(x, z, 3, 2), DeviceError);
  driver().synchronize();
  EXPECT_EQ(y.read(), (std::vector<float>{2, 4}));
  // And the other way round: what failed before is said to those who wait for it.
  settings().next_failure = 2;
  scale(x, y, 3);
  EXPECT_GT(time_scale(x, z, 3, 2), 0);
  EXPECT_THROW(driver().synchronize(), DeviceError);
  y.write({0, 0});
}

TEST_F(Metal, ManyCommandBuffersStayBelowMetalsLimit) {
  restart([] {
    settings().delay = std::chrono::microseconds(2000);
    settings().uncompleted_command_buffers = 20;
  });
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  for (int i = 0; i < 100; ++i) {
    scale(x, y, 1);
    driver().commit();
  }
  driver().synchronize();
}

TEST_F(Metal, AFailureIsThrownAndItsValuesAreLostUntilTheyAreSetAgain) {
  for (const int code : {2, 8}) {  // timeout, out of memory
    Floats x(driver(), {1, 2});
    Floats y(driver(), {0, 0});
    Floats z(driver(), {0, 0});
    Floats healthy(driver(), {5, 6});
    driver().synchronize();
    settings().next_failure = code;
    scale(x, y, 2);
    driver().commit();
    scale(x, z, 3);  // is in flight, or being written, when the first one fails
    driver().commit();
    try {
      driver().synchronize();
      FAIL() << "no error";
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("code " + std::to_string(code)), std::string::npos) << error.what();
    }
    EXPECT_THROW(y.read(), DeviceError);
    EXPECT_THROW(scale(y, z, 1), DeviceError);  // a launch that would read it
    EXPECT_EQ(x.read(), (std::vector<float>{1, 2}));
    EXPECT_EQ(healthy.read(), (std::vector<float>{5, 6}));
    // Set by the host, or by a launch that the new queue runs.
    y.write({7, 8});
    EXPECT_EQ(y.read(), (std::vector<float>{7, 8}));
    scale(x, z, 4);
    EXPECT_EQ(z.read(), (std::vector<float>{4, 8}));
    driver().synchronize();
  }
}

TEST_F(Metal, AFailureIsNoticedByTheOneWhoReads) {
  Floats x(driver(), {1});
  Floats y(driver(), {0});
  driver().synchronize();
  settings().next_failure = 2;
  scale(x, y, 2);
  EXPECT_THROW(y.read(), DeviceError);
  EXPECT_THROW(driver().synchronize(), DeviceError);
  driver().synchronize();  // said once
}

TEST_F(Metal, MemoryOfAnotherDeviceIsRefused) {
  std::vector<float> host(16);
  auto* const memory = reinterpret_cast<std::byte*>(host.data());
  EXPECT_THROW(scale_bytes(memory, memory, 64), InternalError);
}

TEST_F(Metal, ThreadsShareADriver) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Floats x(driver(), {static_cast<float>(t)});
      Floats y(driver(), Count{1});
      for (int i = 0; i < 25; ++i) {
        scale(x, y, 2);
        if (y.read()[0] == 2.0f * static_cast<float>(t)) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

TEST_F(Metal, ACaptureIsMadeOnDemand) {
  const std::filesystem::path file = cache() / "frame.gputrace";
  setenv("RUSSET_METAL_CAPTURE", file.c_str(), 1);
  const int before = statistics().captures;
  restart();
  unsetenv("RUSSET_METAL_CAPTURE");
  EXPECT_EQ(statistics().captures, before + 1);
  Floats x(driver(), {1});
  Floats y(driver(), Count{1});
  for (int i = 0; i < 70; ++i) {
    scale(x, y, 1);
    driver().commit();
  }
  driver().synchronize();
}

}  // namespace
}  // namespace russet
