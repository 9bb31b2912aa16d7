// What goes wrong on a GPU of NVIDIA's while a model trains: too large a batch is refused and a smaller one goes on; a
// fault of the GPU ends in one clear error. Without a GPU there is nothing to see.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "devices/tested.h"

namespace russet {
namespace {

bool is_tested() {
  const std::vector<std::string> names = conformance::tested_devices();
  return std::find(names.begin(), names.end(), "cuda") != names.end();
}

class CudaFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_tested()) GTEST_SKIP() << "needs a GPU: RUSSET_TEST_DEVICES=cuda";
  }
};

/// A model in training, and steps of it on images that the GPU makes.
class Training {
 public:
  explicit Training(const std::string& name)
      : model_(models::get_model(name, {.device = Device("cuda")})), optimizer_(model_.parameters(), {.lr = 1e-3}) {}

  double step(std::int64_t batch) {
    Shape sizes = model_.inputs().front().shape;
    sizes.insert(0, batch);
    const Tensor x = randn(sizes, {.device = Device("cuda")});
    const Tensor y = randint(0, model_.num_classes(), {batch}, {.device = Device("cuda")});
    Tensor loss;
    in_one_plan([&] {
      const Autocast autocast(DType::bfloat16);
      loss = cross_entropy(model_.forward(x), y);
      loss.backward();
      optimizer_.step();
      optimizer_.zero_grad();
    });
    return loss.item();
  }

 private:
  models::Model model_;
  optim::SGD optimizer_;
};

TEST_F(CudaFaults, TooLargeABatchIsRefusedAndASmallerOneGoesOn) {
  Training training("resnet50");
  EXPECT_TRUE(std::isfinite(training.step(64)));
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      training.step(4096);
      FAIL() << "a batch of 4096 images fits";
    } catch (const OutOfMemoryError& error) {
      fmt::print("{}\n", error.what());
      EXPECT_NE(std::string(error.what()).find("bytes are needed"), std::string::npos);
    }
    EXPECT_TRUE(std::isfinite(training.step(64)));
  }
}

/// Writes to an address where no memory is, in the context that russet works in.
void write_nowhere() {
  static constexpr char text[] =
      ".version 7.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry fault() {\n"
      "  .reg .b64 %place;\n  .reg .b32 %value;\n"
      "  mov.u64 %place, 16;\n  mov.u32 %value, 1;\n  st.global.u32 [%place], %value;\n  ret;\n}\n";
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto call = [&]<class... Arguments>(const char* name, Arguments... arguments) {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(library, name));
    ASSERT_NE(function, nullptr) << name;
    ASSERT_EQ(function(arguments...), 0) << name;
  };
  void *context = nullptr, *module = nullptr, *function = nullptr;
  void** const none = nullptr;
  void* const stream = nullptr;
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, static_cast<const void*>(text));
  call("cuModuleGetFunction", &function, module, "fault");
  call("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, none, none);
}

/// Trains, lets the GPU fail, and says what the next steps say. Exits with 0 if each says what to do.
void train_through_a_fault() {
  Training training("lenet5");
  training.step(8);
  write_nowhere();
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      training.step(8);
      std::fputs("a step after the fault succeeded\n", stderr);
      std::exit(1);
    } catch (const DeviceError& error) {
      fmt::print(stderr, "{}\n", error.what());
      if (std::string(error.what()).find("started again") == std::string::npos) std::exit(2);
    }
  }
  std::exit(0);
}

TEST_F(CudaFaults, AFaultOfTheGpuIsOneClearError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the process that sees the fault can do no more
  EXPECT_EXIT(train_through_a_fault(), testing::ExitedWithCode(0), "illegal");
}

}  // namespace
}  // namespace russet
