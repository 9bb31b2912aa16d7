#pragma once
// Signatures of messages as metal-cpp declares them.
#include <cstddef>
#include <string>
#include <vector>

namespace russet::metal_test {

struct Declared {
  std::string type;
  std::string message;
  std::string types;
};
std::vector<Declared> declared_messages();

/// sizeof and offsets of the structs that messages pass by value.
struct DeclaredSizes {
  std::size_t size;
  std::size_t height;
  std::size_t depth;
  std::size_t system_version;
};
DeclaredSizes declared_sizes();

}  // namespace russet::metal_test
