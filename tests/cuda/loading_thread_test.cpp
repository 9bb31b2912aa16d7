// The thread that loads NVIDIA's libraries. No GPU is needed.
#include "device/gpu/cuda/loading_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace russet::cuda {
namespace {

void load_slowly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::fputs("loaded ", stderr);
}

TEST(LoadingThread, IsWaitedFor) {
  std::atomic<bool> done = false;
  {
    const LoadingThread thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
    });
  }
  EXPECT_TRUE(done);
}

TEST(LoadingThread, DropsErrors) {
  const LoadingThread thread([] { throw std::runtime_error("no library"); });
}

TEST(LoadingThreadDeathTest, EndsBeforeTheProcessIsTornDown) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit([] { std::fputs("torn down", stderr); });
        new LoadingThread(load_slowly);  // a device is not given back either
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "loaded torn down");
}

}  // namespace
}  // namespace russet::cuda
