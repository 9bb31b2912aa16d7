#include "device/gpu/cuda/helper/message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace russet::cuda {
namespace {

/// More than any source or machine code has.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

bool send_bytes(int socket, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool receive_bytes(int socket, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = recv(socket, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

std::span<char> bytes_of(std::uint64_t& number) { return {reinterpret_cast<char*>(&number), sizeof(number)}; }

}  // namespace

bool send_texts(int socket, std::span<const std::string> texts) {
  for (const std::string& text : texts) {
    std::uint64_t size = text.size();
    if (!send_bytes(socket, bytes_of(size)) || !send_bytes(socket, text)) return false;
  }
  return true;
}

bool receive_texts(int socket, std::span<std::string> texts) {
  for (std::string& text : texts) {
    std::uint64_t size = 0;
    if (!receive_bytes(socket, bytes_of(size)) || size > most_bytes) return false;
    text.resize(size);
    if (!receive_bytes(socket, text)) return false;
  }
  return true;
}

}  // namespace russet::cuda
