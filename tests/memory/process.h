#pragma once
// What the system says about this process's memory (Linux).
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace russet {

struct ProcessMemory {
  std::size_t addresses = 0;  // bytes of the address space in use
  std::size_t resident = 0;   // bytes in memory
};

inline ProcessMemory process_memory() {
  std::ifstream file("/proc/self/statm");
  ProcessMemory memory;
  file >> memory.addresses >> memory.resident;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return {memory.addresses * page, memory.resident * page};
}

}  // namespace russet
