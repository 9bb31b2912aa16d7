#pragma once
// The prelude of kernels, precompiled by clang and kept on disk.
#include <filesystem>
#include <string>
#include <vector>

namespace russet::simulator {

/// A precompiled prelude, in a folder that is named by all that went into it.
struct Prelude {
  std::filesystem::path folder;    // canonical: clang notes where headers lie
  std::vector<std::string> words;  // of a command that compiles a text with it: the program, flags, the prelude
};

/// The prelude for kernels with or without checks; made if it is not there.
Prelude prelude(bool checked);

/// Whoever could not compile a text asks for this, then tries once more: if clang does not take the prelude with any
/// text (it is damaged, or the folder has moved), it is made anew.
void mend(const Prelude& prelude, bool checked);

/// Runs a compiler or linker. Throws DeviceError with what it said behind `what`, or if it cannot be started.
void run_tool(const std::vector<std::string>& words, std::string_view what);

}  // namespace russet::simulator
