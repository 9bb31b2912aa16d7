#pragma once
// The folder in which compiled kernels are kept, shared by all processes of a user, and bounded.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace russet::simulator {

/// A folder in base::cache_folder().
std::filesystem::path cache_folder();

/// What the folder may hold, in bytes.
inline constexpr std::uint64_t cache_limit = std::uint64_t{1} << 30;

/// What was used more recently is never removed.
inline constexpr std::chrono::minutes cache_grace{10};

/// What a file holds; nothing if it cannot be read.
std::string read_file(const std::filesystem::path& path);
/// Throws FileError.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Marks a file as used now: those that were not used for longest are removed first. Missing files are ignored.
void touch(const std::filesystem::path& path);

/// If the files in the folders of `folder` are larger than `limit` in all, removes those that were not used for longest
/// until three quarters of it are left. A kernel's object, its text and what else begins with its name go together, the
/// text first: who finds a text finds the object. What was used in the last ten minutes stays, for someone may be about
/// to load it; loaded files stay readable. Any number of processes may call at once, while others read and write.
void trim(const std::filesystem::path& folder, std::uint64_t limit);

}  // namespace russet::simulator
