#pragma once
// Programs that the simulator calls: clang, addr2line.
#include <span>
#include <string>

namespace russet::simulator {

struct Finished {
  int status = 0;      // exit status; 127 if the program could not be started
  std::string output;  // standard output and standard error
};

/// Runs a program, looked up on PATH, and waits for it. Throws InternalError if there are no processes to be had.
Finished run_program(std::span<const std::string> words);

}  // namespace russet::simulator
