#pragma once
// What a program and its compile helper say to each other: texts, over a socket.
#include <array>
#include <span>
#include <string>

namespace russet::cuda {

using Request = std::array<std::string, 3>;  // the compiler's name, the compute capability, the source
using Answer = std::array<std::string, 3>;   // how it ended, the machine code, the compiler's words

/// How a compilation ended.
namespace ended {
inline constexpr const char* compiled = "compiled";
inline constexpr const char* refused = "refused";  // the compiler refuses the source
inline constexpr const char* failed = "failed";    // for a reason that lies in the helper
}  // namespace ended

/// False if the other end is gone.
bool send_texts(int socket, std::span<const std::string> texts);
/// Fills all of them. False if the other end is gone, or sends what is no message.
bool receive_texts(int socket, std::span<std::string> texts);

}  // namespace russet::cuda
