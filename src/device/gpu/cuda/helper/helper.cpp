#include "device/gpu/cuda/helper/helper.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "device/gpu/cuda/helper/message.h"

extern char** environ;

namespace russet::cuda {
namespace {

/// Starts a program that talks over `socket`, its standard input, and has no other file of ours but output and errors.
pid_t start(const std::filesystem::path& program, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::string name = program.string();
  char* const words[] = {name.data(), nullptr};
  pid_t process = 0;
  const int error = posix_spawn(&process, name.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw DeviceError(fmt::format("{} does not start: {}", name, std::strerror(error)));
  return process;
}

Answer answer_to(const Request& request) {
  const auto& [compiler, number, source] = request;
  int capability = 0;
  std::from_chars(number.data(), number.data() + number.size(), capability);
  try {
    if (compiler_name(capability) != compiler) return {ended::failed, "", "another compiler"};
    Cubin cubin = compile(source, capability);
    return {ended::compiled, std::move(cubin.code), std::move(cubin.log)};
  } catch (const CompileError& error) {
    return {ended::refused, "", error.what()};
  } catch (const std::exception& error) {
    return {ended::failed, "", error.what()};
  }
}

}  // namespace

std::filesystem::path helper_program() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&serve_compilations), &library) == 0) return {};
  return std::filesystem::absolute(library.dli_fname).parent_path() / "russet" / "compile-for-cuda";
}

Helper::Helper(const std::filesystem::path& program) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw DeviceError(fmt::format("no socket for a compile helper: {}", std::strerror(errno)));
  }
  socket_ = ends[0];
  try {
    process_ = start(program, ends[1]);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
}

Helper::~Helper() {
  close(socket_);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Helper::end() const { shutdown(socket_, SHUT_RDWR); }

std::optional<Cubin> Helper::compile(const std::string& source, int capability, const std::string& compiler) {
  const Request request{compiler, std::to_string(capability), source};
  Answer answer;
  if (!send_texts(socket_, request) || !receive_texts(socket_, answer)) return std::nullopt;
  auto& [end, code, words] = answer;
  if (end == ended::refused) throw CompileError(words);
  if (end != ended::compiled) return std::nullopt;
  return Cubin{std::move(code), std::move(words)};
}

void serve_compilations(int socket) {
  Request request;
  while (receive_texts(socket, request) && send_texts(socket, answer_to(request))) {
  }
}

}  // namespace russet::cuda
