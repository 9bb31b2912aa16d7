// The stand-in for Metal's objects: each of its checks has a case that trips it, beside one that must not.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "device/gpu/metal/hooks.h"
#include "device/gpu/simulator/objects/metal.h"
#include "metal/fixture.h"

namespace russet {
namespace {

using metal_test::reports;
using objects::Object;
using objects::Size;

/// Sends a message whose types are those of the arguments.
template <class R = Object*, class... A>
R send(Object* self, const char* message, A... arguments) {
  return objects::Send<R, A...>::message(self, objects::selector_named(message), arguments...);
}
void tell(Object* self, const char* message) { send<void>(self, message); }
Object* type(const char* name) { return &objects::class_named(name); }
Object* device() { return &objects::system_device(); }

Object* new_buffer(std::size_t bytes) {
  return send(device(), "newBufferWithLength:options:", static_cast<unsigned long>(bytes), 0UL);
}
float* contents(Object* buffer) { return static_cast<float*>(send<void*>(buffer, "contents")); }

/// One thread's pool, queue and pipelines; at the end every object must be gone.
class Objects : public testing::Test {
 protected:
  Objects() : live_(objects::live_objects()) {
    objects::connect_hooks();
    reports();
    pool_ = send(send(type("NSAutoreleasePool"), "alloc"), "init");
    queue_ = send(device(), "newCommandQueue");
  }

  ~Objects() override {
    for (Object* const object : owned_) tell(object, "release");
    objects::drain();
    tell(queue_, "release");
    tell(pool_, "drain");
    objects::settings() = {};
    EXPECT_EQ(objects::live_objects(), live_);
    EXPECT_EQ(reports(), std::vector<std::string>{});
  }

  /// Released at the end of the test.
  Object* own(Object* object) {
    owned_.push_back(object);
    return object;
  }

  Object* library(bool safe = true, std::string_view text = metal_test::kernels) {
    Object* const options = own(send(send(type("MTLCompileOptions"), "alloc"), "init"));
    send<void>(options, "setLanguageVersion:", (3UL << 16) + 1);
    if (safe) {
      send<void>(options, "setFastMathEnabled:", false);
      if (objects::macos().major >= 15) {
        send<void>(options, "setMathMode:", 0L);
        send<void>(options, "setMathFloatingPointFunctions:", 1L);
      }
    }
    objects::Error* error = nullptr;
    return own(send(device(), "newLibraryWithSource:options:error:", string(text), options, &error));
  }

  Object* string(std::string_view text) { return objects::new_string(std::string(text)); }

  Object* pipeline(const char* name) {
    Object* const function = own(send(library(), "newFunctionWithName:", string(name)));
    Object* const descriptor = own(send(send(type("MTLComputePipelineDescriptor"), "alloc"), "init"));
    send<void>(descriptor, "setComputeFunction:", function);
    objects::Error* error = nullptr;
    return own(send(device(), "newComputePipelineStateWithDescriptor:options:reflection:error:", descriptor, 0UL,
                    static_cast<Object**>(nullptr), &error));
  }

  Object* command_buffer() { return send(queue_, "commandBuffer"); }
  static Object* encoder(Object* buffer, unsigned long type = 1) {
    return send(buffer, "computeCommandEncoderWithDispatchType:", type);
  }

  /// y = x * factor, `count` floats, from offset `first` of both.
  void scale(Object* encoder, Object* x, Object* y, std::uint32_t count, std::size_t first = 0) {
    if (scale_ == nullptr) scale_ = pipeline("scale");
    struct {
      std::uint32_t count;
      float factor;
    } const values{count, 2};
    send<void>(encoder, "setComputePipelineState:", scale_);
    send<void>(encoder, "setBuffer:offset:atIndex:", x, static_cast<unsigned long>(first), 0UL);
    send<void>(encoder, "setBuffer:offset:atIndex:", y, static_cast<unsigned long>(first), 1UL);
    send<void>(encoder, "setBytes:length:atIndex:", static_cast<const void*>(&values), sizeof(values), 2UL);
    metal::hooks->plan(encoder, 0, count * sizeof(float), false);
    metal::hooks->plan(encoder, 1, count * sizeof(float), true);
    dispatch(encoder, (count + 63) / 64, 64);
  }
  static void dispatch(Object* encoder, unsigned long groups, unsigned long threads) {
    send<void>(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", Size{groups, 1, 1}, Size{threads, 1, 1});
  }
  static void finish(Object* buffer) {
    tell(buffer, "commit");
    tell(buffer, "waitUntilCompleted");
  }

  /// One report, of this check, that holds these words.
  static void expect_report(std::string_view check, std::string_view words) {
    const std::vector<std::string> found = reports();
    ASSERT_EQ(found.size(), 1u) << testing::PrintToString(found);
    EXPECT_TRUE(found[0].starts_with(check)) << found[0];
    EXPECT_NE(found[0].find(words), std::string::npos) << found[0];
  }
  static void expect_none() { EXPECT_EQ(reports(), std::vector<std::string>{}); }

  Object* queue_;

 private:
  std::vector<std::string> live_;
  Object* pool_;
  std::vector<Object*> owned_;
  Object* scale_ = nullptr;
};

template <class F>
void expect_error(F&& act, std::string_view words) {
  try {
    act();
    ADD_FAILURE() << "no error that says: " << words;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string_view(error.what()).find(words), std::string_view::npos) << error.what();
  }
}

TEST_F(Objects, AMessageThatTheTableLacksIsNamed) {
  expect_error([] { tell(device(), "newDepthStencilStateWithDescriptor:"); },
               "[MTLDevice newDepthStencilStateWithDescriptor:]");
  expect_error([] { tell(type("MTLCompileOptions"), "new"); }, "[MTLCompileOptions (class) new]");
}

TEST_F(Objects, TypesOfAMessageAreCompared) {
  EXPECT_EQ(send<bool>(device(), "supportsFamily:", 1009L), true);
  expect_error([] { send<bool>(device(), "supportsFamily:", 1009); }, "takes the types Bq and was sent with Bi");
  expect_error([] { send<void>(device(), "supportsFamily:", 1009L); }, "sent with vq");
}

TEST_F(Objects, NilAnswersWithZero) {
  EXPECT_EQ(send(nullptr, "newCommandQueue"), nullptr);
  EXPECT_EQ(send<double>(nullptr, "GPUStartTime"), 0.0);
  EXPECT_EQ(send<Size>(nullptr, "maxThreadsPerThreadgroup").width, 0u);
}

TEST_F(Objects, AMacOSHasWhatItsSDKSays) {
  const bool has_sets = objects::macos().major >= 15;
  const objects::Selector message = objects::selector_named("newResidencySetWithDescriptor:error:");
  EXPECT_EQ(send<bool>(device(), "respondsToSelector:", message), has_sets);
  objects::Error* error = nullptr;
  if (has_sets) {
    own(send(device(), message, static_cast<Object*>(nullptr), &error));
  } else {
    expect_error([&] { send(device(), message, static_cast<Object*>(nullptr), &error); }, "came with macOS 15.0");
  }
}

TEST_F(Objects, OnlySharedBuffersShowTheirContents) {
  const auto contents = [&](unsigned long options) {
    Object* const made = own(send(device(), "newBufferWithLength:options:", 4096UL, options));
    return send<void*>(made, "contents");
  };
  EXPECT_NE(contents(0), nullptr);
  expect_none();
  for (const unsigned long mode : {1UL, 2UL, 3UL}) {  // managed, private, memoryless
    EXPECT_EQ(contents(mode << 4), nullptr);
    expect_report("api", "contents of a buffer that is not shared (storage mode " + std::to_string(mode) + ")");
  }
}

TEST_F(Objects, OneReleaseTooMany) {
  Object* const fence = send(device(), "newFence");
  objects::retain(fence);
  tell(fence, "release");
  tell(fence, "release");
  expect_none();
  expect_error([&] { tell(fence, "release"); }, "[MTLFence release] was sent to an object that had been deallocated");
  objects::release(fence);
  expect_report("lifetime", "released once too often");
}

TEST_F(Objects, ALeakCounts) {
  const long before = objects::live_objects("MTLFence");
  Object* const fence = send(device(), "newFence");
  EXPECT_EQ(objects::live_objects("MTLFence"), before + 1);
  tell(fence, "release");
  EXPECT_EQ(objects::live_objects("MTLFence"), before);
}

TEST_F(Objects, AutoreleaseNeedsAPool) {
  std::thread([] {
    Object* const pool = send(send(type("NSAutoreleasePool"), "alloc"), "init");
    objects::new_string("goes with the pool");
    tell(pool, "release");
  }).join();
  expect_none();
  Object* leaked = nullptr;
  std::thread([&] { leaked = objects::new_string("stays"); }).join();
  expect_report("lifetime", "a NSString was autoreleased on a thread without a pool");
  objects::release(leaked);
}

TEST_F(Objects, PoolsEndInTheirOrder) {
  Object* const outer = send(send(type("NSAutoreleasePool"), "alloc"), "init");
  Object* const inner = send(send(type("NSAutoreleasePool"), "alloc"), "init");
  (void)inner;
  tell(outer, "drain");
  expect_report("lifetime", "ended before one that was opened inside of it");
}

TEST_F(Objects, AnEncoderEndsOnceAndBeforeTheCommit) {
  Object* const buffer = command_buffer();
  Object* const first = encoder(buffer);
  tell(first, "endEncoding");
  Object* const second = encoder(buffer);
  tell(second, "endEncoding");
  expect_none();
  tell(second, "endEncoding");
  expect_report("api", "endEncoding came after endEncoding");
  send<void>(second, "memoryBarrierWithScope:", 1UL);
  expect_report("api", "memoryBarrierWithScope: came after endEncoding");
  finish(buffer);
  expect_none();

  Object* const other = command_buffer();
  Object* const open = encoder(other);
  tell(other, "commit");
  expect_report("api", "committed before its encoder ended");
  tell(open, "endEncoding");
  tell(other, "waitUntilCompleted");

  Object* const third = command_buffer();
  Object* const one = encoder(third);
  Object* const two = encoder(third);
  expect_report("api", "a second encoder before the first one ended");
  tell(one, "endEncoding");
  tell(two, "endEncoding");
}

TEST_F(Objects, AnEncoderThatNeverEnds) {
  Object* const pool = send(send(type("NSAutoreleasePool"), "alloc"), "init");
  encoder(command_buffer());
  tell(pool, "release");
  expect_report("api", "deallocated without endEncoding");
}

TEST_F(Objects, ACommandBufferIsCommittedOnce) {
  Object* const buffer = command_buffer();
  expect_error([&] { tell(buffer, "waitUntilCompleted"); }, "would wait for ever");
  send<double>(buffer, "GPUStartTime");
  expect_report("api", "GPU times were asked for before");
  finish(buffer);
  EXPECT_GT(send<double>(buffer, "GPUStartTime"), 0.0);
  EXPECT_EQ(send<unsigned long>(buffer, "status"), 4u);
  expect_none();
  tell(buffer, "commit");
  expect_report("api", "committed twice");
}

TEST_F(Objects, CommandBuffersThatAreNotCommittedFillTheQueue) {
  objects::settings().uncompleted_command_buffers = 4;
  Object* const pool = send(send(type("NSAutoreleasePool"), "alloc"), "init");
  for (int i = 0; i < 12; ++i) tell(command_buffer(), "commit");  // these complete
  for (int i = 0; i < 4; ++i) command_buffer();
  expect_error([&] { command_buffer(); }, "4 command buffers that were not committed");
  tell(pool, "release");
  command_buffer();
}

class HostAccess : public Objects {
 protected:
  void SetUp() override {
    if (!simulator::options().checked) GTEST_SKIP() << "the simulator checks nothing";
  }

  /// A pass over 64 KiB of x and y is in flight while `touch` runs.
  void during(const std::function<void(float* x, float* y)>& touch) {
    x_ = own(new_buffer(65536));
    y_ = own(new_buffer(65536));
    std::fill_n(contents(x_), 16384, 1.0f);
    Object* const buffer = command_buffer();
    Object* const pass = encoder(buffer);
    scale(pass, x_, y_, 16384);
    tell(pass, "endEncoding");
    auto& queue = static_cast<objects::CommandQueue&>(*queue_);
    objects::settings().next_failure = 3;  // it does not run: what counts is when it completes
    queue.timeline->paused = true;
    tell(buffer, "commit");
    touch(contents(x_), contents(y_));
    queue.timeline->paused = false;
    tell(buffer, "waitUntilCompleted");
  }
  Object* x_ = nullptr;
  Object* y_ = nullptr;
};

TEST_F(HostAccess, ReadsOfWhatWorkInFlightReads) {
  float sum = 0;
  during([&](const float* x, float*) { sum = x[0] + x[16383]; });
  EXPECT_EQ(sum, 2);
  contents(x_)[0] = 5;
  contents(y_)[0] = 6;
}

TEST_F(HostAccess, WritesToWhatWorkInFlightReads) {
  during([](float* x, float*) { x[5000] = 3; });
  expect_report("host", "the host writes byte 20000 of a buffer of 65536 bytes that work in flight reads");
  EXPECT_EQ(contents(x_)[5000], 3);
}

TEST_F(HostAccess, ReadsOfWhatWorkInFlightWrites) {
  volatile float read = 0;
  during([&](float*, const float* y) { read = y[12288]; });
  expect_report("host", "the host reads byte 49152");
}

TEST_F(Objects, SmallTensorsShareAPageWithOthers) {
  Object* const small = own(new_buffer(65536));
  std::fill_n(contents(small), 16384, 1.0f);
  Object* const buffer = command_buffer();
  Object* const pass = encoder(buffer);
  scale(pass, small, small, 16);
  tell(pass, "endEncoding");
  tell(buffer, "commit");
  contents(small)[100] = 7;  // the tensor is 64 bytes long
  tell(buffer, "waitUntilCompleted");
  EXPECT_EQ(contents(small)[3], 2);
}

TEST_F(Objects, Bindings) {
  Object* const x = own(new_buffer(256));
  Object* const pass_of = command_buffer();
  Object* const pass = encoder(pass_of);
  const auto set_buffer = [&](Object* buffer, unsigned long offset, unsigned long index) {
    send<void>(pass, "setBuffer:offset:atIndex:", buffer, offset, index);
  };
  set_buffer(x, 0, 0);
  set_buffer(x, 252, 30);
  expect_none();
  set_buffer(x, 256, 0);
  expect_report("binding", "starts at byte 256 of a buffer of 256 bytes");
  set_buffer(x, 0, 31);
  expect_report("binding", "there is no binding 31");
  const std::vector<std::byte> values(4097);
  const auto set_bytes = [&](unsigned long length) {
    send<void>(pass, "setBytes:length:atIndex:", static_cast<const void*>(values.data()), length, 2UL);
  };
  set_bytes(4096);
  expect_none();
  set_bytes(4097);
  expect_report("binding", "not 4097");
  tell(pass, "endEncoding");
}

TEST_F(Objects, TensorsLieInTheirBuffers) {
  Object* const x = own(new_buffer(256));
  Object* const y = own(new_buffer(256));
  Object* const buffer = command_buffer();
  Object* const pass = encoder(buffer);
  scale(pass, x, y, 64);
  expect_none();
  scale(pass, x, y, 64, 4);
  const std::vector<std::string> found = reports();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[1].find("the tensor at 1 ends 4 bytes behind its buffer"), std::string::npos) << found[1];
  tell(pass, "endEncoding");
}

TEST_F(Objects, NothingBound) {
  Object* const x = own(new_buffer(256));
  Object* const buffer = command_buffer();
  Object* const pass = encoder(buffer);
  dispatch(pass, 1, 64);
  expect_report("launch", "without a pipeline");
  send<void>(pass, "setComputePipelineState:", pipeline("scale"));
  send<void>(pass, "setBuffer:offset:atIndex:", x, 0UL, 1UL);
  dispatch(pass, 1, 64);
  expect_report("binding", "scale: nothing is bound at 0");
  tell(pass, "endEncoding");
}

TEST_F(Objects, Threadgroups) {
  Object* const x = own(new_buffer(256));
  Object* const buffer = command_buffer();
  Object* const pass = encoder(buffer);
  scale(pass, x, x, 64);
  expect_none();
  dispatch(pass, 1, 96);
  expect_report("launch", "a threadgroup of 96 threads; the pipeline allows 64");
  dispatch(pass, 1, 48);
  expect_report("launch", "is not a row of whole simdgroups");
  send<void>(pass, "dispatchThreadgroups:threadsPerThreadgroup:", Size{1, 1, 1}, Size{32, 2, 1});
  expect_report("launch", "is not a row of whole simdgroups");
  tell(pass, "endEncoding");
}

TEST_F(Objects, BuffersReleasedInFlight) {
  auto& timeline = *static_cast<objects::CommandQueue&>(*queue_).timeline;
  for (const bool retained : {true, false}) {
    Object* const x = new_buffer(65536);
    Object* const pool = send(send(type("NSAutoreleasePool"), "alloc"), "init");
    Object* const buffer = retained ? command_buffer() : send(queue_, "commandBufferWithUnretainedReferences");
    objects::retain(buffer);
    Object* const pass = encoder(buffer);
    scale(pass, x, x, 64);
    tell(pass, "endEncoding");
    tell(pool, "release");
    timeline.paused = true;  // else a busy machine may complete the work before the release
    tell(buffer, "commit");
    tell(x, "release");
    timeline.paused = false;
    tell(buffer, "waitUntilCompleted");
    tell(buffer, "release");
    if (retained) {
      expect_none();
    } else {
      expect_report("lifetime", "released while work in flight had it");
    }
  }
}

// Two encoders over the same memory through two buffers: Metal orders them only by a fence.
TEST_F(Objects, EncodersThatNothingOrders) {
  const std::size_t bytes = objects::page;
  void* const memory = std::aligned_alloc(objects::page, bytes);
  std::memset(memory, 0, bytes);
  const auto view = [&] {
    return own(send(device(), "newBufferWithBytesNoCopy:length:options:deallocator:", memory,
                    static_cast<unsigned long>(bytes), 0UL, static_cast<void*>(nullptr)));
  };
  Object* const one = view();
  Object* const other = view();
  Object* const fence = own(send(device(), "newFence"));
  const auto run = [&](Object* first_buffer, Object* second_buffer, bool fenced) {
    Object* const buffer = command_buffer();
    Object* const first = encoder(buffer);
    scale(first, first_buffer, first_buffer, 64);
    if (fenced) send<void>(first, "updateFence:", fence);
    tell(first, "endEncoding");
    Object* const second = encoder(buffer);
    if (fenced) send<void>(second, "waitForFence:", fence);
    scale(second, second_buffer, second_buffer, 64);
    tell(second, "endEncoding");
    finish(buffer);
  };
  run(one, one, false);   // the buffer orders them
  run(one, other, true);  // the fence does
  expect_none();
  run(one, other, false);
  expect_report("race", "scale and scale touch the same bytes");
  std::free(memory);
}

TEST_F(Objects, SharedMemoryIsWholePages) {
  void* const memory = std::aligned_alloc(objects::page, 2 * objects::page);
  const auto view = [&](std::size_t offset, std::size_t bytes) {
    return send(device(), "newBufferWithBytesNoCopy:length:options:deallocator:",
                static_cast<void*>(static_cast<std::byte*>(memory) + offset), static_cast<unsigned long>(bytes), 0UL,
                static_cast<void*>(nullptr));
  };
  own(view(objects::page, objects::page));
  expect_none();
  EXPECT_EQ(view(4096, objects::page), nullptr);
  expect_report("api", "takes whole pages");
  EXPECT_EQ(view(0, 100), nullptr);
  expect_report("api", "not 100 bytes");
  std::free(memory);
}

TEST_F(Objects, FastMathIsReported) {
  library();
  expect_none();
  library(false);
  expect_report("options", "fast math");
}

TEST_F(Objects, AFailedQueueRunsNothingMore) {
  Object* const x = own(new_buffer(256));
  const auto status_of_a_run = [&] {
    Object* const buffer = command_buffer();
    Object* const pass = encoder(buffer);
    scale(pass, x, x, 64);
    tell(pass, "endEncoding");
    finish(buffer);
    Object* const error = send(buffer, "error");
    return error == nullptr ? 0L : send<long>(error, "code");
  };
  EXPECT_EQ(status_of_a_run(), 0);
  objects::settings().next_failure = 2;
  EXPECT_EQ(status_of_a_run(), 2);
  EXPECT_EQ(status_of_a_run(), 4);  // ignored
  tell(queue_, "release");
  queue_ = send(device(), "newCommandQueue");
  EXPECT_EQ(status_of_a_run(), 0);
}

TEST_F(Objects, ResidencySetsHoldWhatWasAdded) {
  if (objects::macos().major < 15) GTEST_SKIP() << "macOS 14 has none";
  objects::Error* error = nullptr;
  Object* const set =
      own(send(device(), "newResidencySetWithDescriptor:error:", static_cast<Object*>(nullptr), &error));
  Object* const x = own(new_buffer(256));
  send<void>(set, "addAllocation:", x);
  tell(set, "commit");
  send<void>(set, "removeAllocation:", x);
  tell(set, "commit");
  expect_none();
  send<void>(set, "removeAllocation:", x);
  expect_report("api", "that the residency set does not hold");
}

}  // namespace
}  // namespace russet
