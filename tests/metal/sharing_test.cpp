// Tensors that move between cpu and mps are the same pages until one side writes.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <cstring>
#include <numeric>

#include "graph/tensor_state.h"
#include "metal/fixture.h"
#include "runtime/device.h"

namespace russet {
namespace {

using objects::settings;

const Device cpu(DeviceType::cpu);
const Device mps(DeviceType::mps);
constexpr std::int64_t large = 20000;  // floats: some pages
constexpr std::int64_t page_of_floats = 4096;

std::vector<float> counted(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Tensor on(Device device, float first = 0, std::int64_t count = large) {
  return Tensor::from(counted(count, first), {count}, device);
}

/// Where the value of a tensor lies, which must be computed.
const std::byte* place(const Tensor& tensor) {
  flush();
  return tensor.state()->cell->value()->buffer()->data();
}

bool holds(const Tensor& tensor, float first) { return tensor.to_vector<float>() == counted(tensor.numel(), first); }

/// On the device mps of this process; the simulator must have nothing to report.
class Sharing : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (runtime::driver_of(DeviceType::mps) == nullptr) {
      runtime::register_device(DeviceType::mps, metal::make_driver);
    }
  }
  Sharing() { metal_test::reports(); }
  ~Sharing() override {
    settings().delay = std::chrono::microseconds(200);
    settings().next_failure = 0;
    synchronize();
    objects::drain();
    EXPECT_EQ(metal_test::reports(), std::vector<std::string>{});
  }

  /// Work that is started from now on completes late.
  static void be_slow() { settings().delay = std::chrono::milliseconds(100); }
};

TEST_F(Sharing, ATensorThatMovesIsTheSamePages) {
  const Tensor x = on(cpu);
  const Tensor moved = x.to(mps);
  EXPECT_EQ(moved.device(), mps);
  EXPECT_EQ(place(moved), place(x));
  const Tensor computed = moved + 1;
  const Tensor back = computed.to(cpu);
  EXPECT_EQ(place(back), place(computed));
  EXPECT_TRUE(holds(back, 1));
  EXPECT_TRUE(holds(x, 0));
}

TEST_F(Sharing, WhatComesBackIsWhatWasLent) {
  const Tensor x = on(cpu);
  EXPECT_EQ(place(x.to(mps).to(cpu)), place(x));
  const Tensor y = on(mps, 5);
  const Tensor there_again = y.to(cpu).to(mps);
  EXPECT_EQ(place(there_again), place(y));
  there_again.add_(1);
  EXPECT_TRUE(holds(y, 5));
  EXPECT_TRUE(holds(there_again, 6));
}

TEST_F(Sharing, KeepsTheShape) {
  const Tensor x = on(cpu).reshape({100, 200});
  const Tensor moved = x.to(mps);
  EXPECT_EQ(moved.sizes(), Shape({100, 200}));
  EXPECT_EQ(place(moved), place(x));
  // Neither a view of a part nor a transposed one is the memory as it is.
  EXPECT_EQ(x.narrow(0, 50, 50).to(mps).to_vector<float>(), counted(10000, 10000));
  EXPECT_EQ(x.transpose(0, 1).to(mps).to_vector<float>()[1], 200);
}

TEST_F(Sharing, SmallTensorsAreCopied) {
  for (const std::int64_t count : {std::int64_t{1}, page_of_floats, page_of_floats + 1}) {
    const Tensor x = on(cpu, 0, count);
    const Tensor y = on(mps, 0, count);
    EXPECT_EQ(place(x.to(mps)) == place(x), count > page_of_floats) << count;
    EXPECT_EQ(place(y.to(cpu)) == place(y), count > page_of_floats) << count;
  }
}

TEST_F(Sharing, WhoWritesGetsACopy) {
  for (const Device home : {cpu, mps}) {
    const Device away = home == cpu ? mps : cpu;
    for (const bool owner_writes : {true, false}) {
      const Tensor x = on(home);
      const Tensor moved = x.to(away);
      const std::byte* const shared = place(x);
      const Tensor& writer = owner_writes ? x : moved;
      const Tensor& other = owner_writes ? moved : x;
      writer.add_(1);
      EXPECT_NE(place(writer), shared);
      EXPECT_EQ(place(other), shared);
      EXPECT_TRUE(holds(writer, 1));
      EXPECT_TRUE(holds(other, 0));
      // From now on each has its own.
      const std::byte* const own = place(writer);
      writer.add_(1);
      EXPECT_EQ(place(writer), own);
      other.sub_(1);
      EXPECT_TRUE(holds(writer, 2));
      EXPECT_TRUE(holds(other, -1));
    }
  }
}

TEST_F(Sharing, TheOwnerWritesInPlaceOnceItIsAlone) {
  for (const Device home : {cpu, mps}) {
    const Tensor x = on(home);
    const std::byte* const before = place(x);
    { const Tensor moved = x.to(home == cpu ? mps : cpu); }
    x.add_(1);
    EXPECT_EQ(place(x), before);
    EXPECT_TRUE(holds(x, 1));
  }
}

TEST_F(Sharing, AViewsWriteIsNoticed) {
  const Tensor x = on(cpu);
  const Tensor moved = x.to(mps);
  x.narrow(0, 100, 100).fill_(-1);
  EXPECT_TRUE(holds(moved, 0));
  EXPECT_EQ(x.to_vector<float>()[150], -1);
}

TEST_F(Sharing, EitherSideOutlivesTheOther) {
  for (const Device home : {cpu, mps}) {
    const Device away = home == cpu ? mps : cpu;
    Tensor x = on(home, 3);
    const Tensor moved = x.to(away);
    x = Tensor();
    const Tensor next = on(home, 100);  // would be given the memory if it were free
    EXPECT_NE(place(next), place(moved));
    EXPECT_TRUE(holds(moved, 3));
  }
}

// The GPU still reads the memory when both tensors are gone, and when the cpu's is written again.
TEST_F(Sharing, WorkInFlightKeepsWhatItReads) {
  Tensor x = on(cpu, 7);
  const std::byte* const before = place(x);
  Tensor result;
  {
    const Tensor moved = x.to(mps);
    be_slow();
    result = moved * 2;
    flush();
  }
  x.add_(1);
  EXPECT_NE(place(x), before);
  x = Tensor();
  const Tensor next = on(cpu, 1000);
  EXPECT_NE(place(next), before);
  std::vector<float> expected = counted(large, 7);
  for (float& value : expected) value *= 2;
  EXPECT_EQ(result.to_vector<float>(), expected);
  // And it is given back then.
  EXPECT_EQ(place(on(cpu)), before);
}

TEST_F(Sharing, WhatIsComputedIsWaitedFor) {
  const Tensor x = on(mps);
  be_slow();
  const Tensor y = (x + 1).to(cpu);
  EXPECT_TRUE(holds(y + 1, 2));
}

// Reading what the GPU reads needs no waiting.
TEST_F(Sharing, BothSidesReadAtOnce) {
  const Tensor x = on(cpu);
  const Tensor moved = x.to(mps);
  be_slow();
  const Tensor there = moved + 1;
  flush();
  const Tensor here = x + 2;
  EXPECT_TRUE(holds(here, 2));
  EXPECT_TRUE(holds(there, 1));
}

TEST_F(Sharing, MemoryThatIsExportedIsNotShared) {
  const Tensor x = on(cpu);
  Tensor moved = x.to(mps);
  auto* const exported = static_cast<float*>(x.data());  // gives x memory of its own
  exported[0] = 50;
  EXPECT_TRUE(holds(moved, 0));
  EXPECT_EQ(x.to_vector<float>()[0], 50);
  moved = x.to(mps);
  exported[0] = 60;
  EXPECT_EQ(moved.to_vector<float>()[0], 50);
}

TEST_F(Sharing, GradientsMoveBack) {
  const Tensor x = on(cpu).requires_grad_();
  for (int i = 0; i < 3; ++i) sum(x.to(mps) * 2).backward();
  EXPECT_EQ(x.grad().device(), cpu);
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(large, 6));
}

TEST_F(Sharing, ModulesAreCopiedIntoFewBuffers) {
  nn::Linear layer(100, 100);
  const std::byte* const before = place(layer.weight);
  const std::vector<float> values = layer.weight.to_vector<float>();
  layer.to(mps);
  EXPECT_EQ(layer.weight.device(), mps);
  EXPECT_NE(place(layer.weight), before);
  EXPECT_EQ(layer.weight.to_vector<float>(), values);
}

TEST_F(Sharing, WhatWasLostIsNotLent) {
  const Tensor x = on(mps);
  synchronize();
  settings().next_failure = 2;
  const Tensor y = x + 1;
  EXPECT_THROW(y.to(cpu), DeviceError);
  EXPECT_THROW(y.to(cpu), DeviceError);  // nor later
  EXPECT_TRUE(holds(x.to(cpu), 0));
}

/// Memory of the cpu, for a driver that is the test's own.
class HostBuffer final : public graph::Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : Buffer(cpu, driver().allocate(bytes), bytes) {}
  ~HostBuffer() override { driver().release(data(), bytes()); }
  float* floats() const { return reinterpret_cast<float*>(data()); }

 private:
  static runtime::DeviceDriver& driver() { return *runtime::driver_of(DeviceType::cpu); }
};

class Lent : public metal_test::Metal {
 protected:
  static constexpr std::size_t count = 16384;
  Ref<HostBuffer> make() {
    const auto lender = make_ref<HostBuffer>(count * sizeof(float));
    std::fill_n(lender->floats(), count, 2.0f);
    return lender;
  }
};

TEST_F(Lent, TheHostMustNotWriteWhatWorkInFlightReads) {
  if (!simulator::options().checked) GTEST_SKIP() << "the simulator checks nothing";
  restart([] { settings().delay = std::chrono::milliseconds(100); });
  const Ref<HostBuffer> lender = make();
  ASSERT_TRUE(driver().borrow(lender->data(), lender->bytes()));
  {
    const metal_test::Floats x(driver(), lender->data(), metal_test::Count{count});
    const metal_test::Floats y(driver(), metal_test::Count{count});
    scale(x, y, 3);
    driver().commit();
    EXPECT_EQ(lender->floats()[5000], 2);
    EXPECT_EQ(metal_test::reports(), std::vector<std::string>{});
    lender->floats()[5000] = 9;
    const std::vector<std::string> found = metal_test::reports();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0], "host: the host writes byte 20000 of a buffer of 65536 bytes that work in flight reads");
    EXPECT_EQ(y.read()[4999], 6);
  }
  driver().end_borrowing(lender);
  lender->floats()[1] = 3;
}

TEST_F(Lent, IsGivenBackWhenWorkIsDone) {
  restart([] { settings().delay = std::chrono::milliseconds(100); });
  const long buffers = objects::live_objects("MTLBuffer");
  const Ref<HostBuffer> lender = make();
  const metal_test::Floats y(driver(), metal_test::Count{count});
  for (const bool commits : {false, true}) {
    ASSERT_TRUE(driver().borrow(lender->data(), lender->bytes()));
    ASSERT_TRUE(driver().borrow(lender->data(), lender->bytes()));  // by two tensors
    driver().end_borrowing(lender);
    EXPECT_EQ(lender->reference_count(), 1U);
    scale({driver(), lender->data(), metal_test::Count{count}}, y, 3);
    if (commits) driver().commit();
    driver().end_borrowing(lender);
    EXPECT_EQ(lender->reference_count(), 2U);  // the driver's and ours
    driver().synchronize();
    EXPECT_EQ(lender->reference_count(), 1U);
    EXPECT_EQ(y.read()[7], 6);
  }
  EXPECT_LE(objects::live_objects("MTLBuffer"), buffers + 1);  // a block for y
}

TEST_F(Lent, WhatCannotBeABufferIsRefused) {
  const Ref<HostBuffer> lender = make();
  EXPECT_FALSE(driver().borrow(lender->data() + 64, runtime::page * 2));
  EXPECT_FALSE(driver().borrow(lender->data(), runtime::page));
  restart([] { settings().max_buffer_length = std::size_t{32} << 10; });
  EXPECT_FALSE(driver().borrow(lender->data(), lender->bytes()));
  restart([] {
    settings().max_buffer_length = std::size_t{1} << 30;
    settings().working_set = std::size_t{4} << 20;  // one block
  });
  EXPECT_FALSE(driver().borrow(lender->data(), lender->bytes()));
}

}  // namespace
}  // namespace russet
