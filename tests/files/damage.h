#pragma once
// What the tests of parsers share: folders of their own, and ways to damage a file.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/philox.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>

#include "files/bytes.h"
#include "files/temporary_folder.h"

namespace russet::files {

inline void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw FileError(path.string() + ": the test cannot write it");
}

/// The message of the FileError that `parse` throws; fails the test for anything else.
inline std::string file_error(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const FileError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

using Parser = std::function<void(std::span<const std::byte>)>;

/// Every proper beginning of the file is refused. The copies have no spare room behind them, for the address sanitizer.
inline void expect_truncations_refused(const Bytes& file, const Parser& parse) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse(cut), FileError) << "cut to " << size << " of " << file.size() << " bytes";
  }
}

/// Up to eight flipped bits, chosen by `seed`.
inline Bytes flipped(Bytes file, std::uint64_t seed) {
  const auto words = philox(seed, 0, 0);
  for (std::uint32_t flip = 0; flip <= words[0] % 8; ++flip) {
    const auto where = philox(seed, 1, flip);
    file[where[0] % file.size()] ^= std::byte{1} << static_cast<int>(where[1] % 8);
  }
  return file;
}

/// Whatever bits flip, the file is read or refused by a FileError.
inline int expect_flips_survived(const Bytes& file, const Parser& parse, int rounds) {
  int refused = 0;
  for (int seed = 0; seed < rounds; ++seed) {
    try {
      parse(flipped(file, static_cast<std::uint64_t>(seed)));
    } catch (const FileError&) {
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
  }
  return refused;
}

}  // namespace russet::files
