// Memory that submissions write to: it comes back, and is taken again.
#include "device/gpu/driver/chunks.h"

#include <gtest/gtest.h>
#include <russet/error.h>

#include <map>
#include <memory>

namespace russet::gpu {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Memory of the host, counted.
struct Memory {
  std::map<std::byte*, std::unique_ptr<std::byte[]>> pieces;
  std::size_t bytes = 0;
  int allocations = 0;
  bool refuses = false;

  Chunks::Source source() {
    return {[this](std::size_t wanted) {
              if (refuses) throw OutOfMemoryError("no memory");
              auto piece = std::make_unique_for_overwrite<std::byte[]>(wanted);
              std::byte* const begin = piece.get();
              pieces.emplace(begin, std::move(piece));
              bytes += wanted;
              ++allocations;
              return begin;
            },
            [this](std::byte* begin, std::size_t size) {
              bytes -= size;
              pieces.erase(begin);
            }};
  }
};

/// As many submissions in flight as a driver has, each with a batch of so many bytes; then all of them are done.
void run_through(Chunks& chunks, std::size_t bytes) {
  std::vector<std::vector<Chunk>> in_flight(16);
  for (auto& submission : in_flight) chunks.take(bytes, submission);
  EXPECT_GE(chunks.bytes_in_use(), 16 * bytes);
  for (auto& submission : in_flight) chunks.give_back(submission);
  EXPECT_EQ(chunks.bytes_in_use(), 0U);
}

TEST(Chunks, AllThatIsInFlightIsTakenAgain) {
  Memory memory;
  Chunks chunks(memory.source(), 64 * mib);
  for (int round = 0; round < 5; ++round) run_through(chunks, 3 * mib);
  EXPECT_EQ(memory.allocations, 16);
}

TEST(Chunks, WhatIsKeptIsBoundedAndTheOldestGoesFirst) {
  Memory memory;
  Chunks chunks(memory.source(), 20 * mib);
  run_through(chunks, 3 * mib);
  EXPECT_EQ(memory.bytes, 18 * mib);
  std::vector<Chunk> large;
  std::byte* const begin = chunks.take(16 * mib, large);
  chunks.give_back(large);
  EXPECT_EQ(memory.bytes, 19 * mib);  // it, and one of the others
  std::vector<Chunk> again;
  EXPECT_EQ(chunks.take(16 * mib, again), begin);
  chunks.give_back(again);
}

TEST(Chunks, ARefusalLeavesTheRest) {
  Memory memory;
  Chunks chunks(memory.source());
  std::vector<Chunk> first, second;
  std::byte* const begin = chunks.take(mib, first);
  memory.refuses = true;
  EXPECT_THROW(chunks.take(mib, second), OutOfMemoryError);
  EXPECT_EQ(chunks.bytes_in_use(), mib);
  chunks.give_back(first);
  EXPECT_EQ(chunks.take(mib, second), begin);
  chunks.give_back(second);
}

}  // namespace
}  // namespace russet::gpu
