#include <gtest/gtest.h>
#include <russet/io.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "files/damage.h"

namespace russet::files {
namespace {

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(WriteAtomically, ReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  io::write_file_atomically(folder / "a", "old");
  io::write_file_atomically(folder / "a", "new");
  EXPECT_EQ(io::read_file(folder / "a"), bytes_of("new"));
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(WriteAtomically, AFailureChangesNothing) {
  const TemporaryFolder folder;
  io::write_file_atomically(folder / "a", "old");
  EXPECT_THROW(io::write_file_atomically(folder / "a",
                                         [](io::FileWriter& writer) {
                                           writer.write("half");
                                           throw ValueError("no more");
                                         }),
               ValueError);
  EXPECT_EQ(io::read_file(folder / "a"), bytes_of("old"));
  EXPECT_EQ(files_in(folder.path()), 1U);
  EXPECT_NE(file_error([&] { io::write_file_atomically(folder / "no" / "a", "x"); }).find("cannot write it"),
            std::string::npos);
  EXPECT_NE(file_error([&] { io::write_file_atomically(folder.path(), "x"); }).find("it is a folder"),
            std::string::npos);
}

/// A child writes generations of one byte value each and is killed at seeded moments: the file always holds one
/// generation whole, and what the killed ones left is cleared by the next.
TEST(WriteAtomically, SurvivesKill) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  constexpr std::size_t size = 300'000;
  for (std::uint64_t round = 0; round < 50; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int generation = 0;; ++generation) {
        io::write_file_atomically(path, [&](io::FileWriter& writer) {
          const Bytes chunk(size / 10, static_cast<std::byte>(generation));
          for (int i = 0; i < 10; ++i) writer.write(chunk);
        });
      }
    }
    usleep(500 + philox(round, 0, 0)[0] % 8000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (!std::filesystem::exists(path)) continue;
    const Bytes content = io::read_file(path);
    ASSERT_EQ(content.size(), size);
    ASSERT_TRUE(std::all_of(content.begin(), content.end(), [&](std::byte byte) { return byte == content[0]; }));
  }
  io::write_file_atomically(path, "last");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(Checkpoint, ComesBack) {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint";
  io::Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", Tensor::from<float>({1.5F, -2, 3}, {3}));
  checkpoint.tensors.insert("step", Tensor::from<std::int64_t>({12}, {}));
  checkpoint.state = R"({"epoch": 3, "name": "größer"})";
  io::save_checkpoint(path, checkpoint);
  const io::Checkpoint read = io::load_checkpoint(path);
  EXPECT_EQ(read.state, checkpoint.state);
  ASSERT_EQ(read.tensors.size(), 2U);
  EXPECT_EQ(read.tensors[0].first, "weight");
  EXPECT_EQ(read.tensors.at("weight").to_vector<float>(), (std::vector<float>{1.5F, -2, 3}));
  EXPECT_EQ(read.tensors.at("step").to_vector<std::int64_t>(), std::vector<std::int64_t>{12});

  EXPECT_THROW(io::save_checkpoint(path, {{}, "{"}), ValueError);
  EXPECT_EQ(io::load_checkpoint(path).state, checkpoint.state);
}

TEST(Checkpoint, DamageIsSeen) {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint";
  io::Checkpoint checkpoint;
  checkpoint.tensors.insert("weight", Tensor::from<float>({1.5F, -2, 3}, {3}));
  checkpoint.state = "{}";
  io::save_checkpoint(path, checkpoint);
  const Bytes good = io::read_file(path);
  const Parser load = [&](std::span<const std::byte> file) {
    write(path, file);
    io::load_checkpoint(path);
  };
  expect_truncations_refused(good, load);
  for (std::size_t bit = 0; bit < 12 * 8; ++bit) {  // every bit of the data
    Bytes bad = good;
    bad[good.size() - 12 + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    EXPECT_THROW(load(bad), FileError) << bit;
  }
  io::save_safetensors(path, checkpoint.tensors);
  EXPECT_NE(file_error([&] { io::load_checkpoint(path); }).find("it is no checkpoint of russet"), std::string::npos);
}

}  // namespace
}  // namespace russet::files
