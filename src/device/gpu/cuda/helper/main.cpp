// compile-for-cuda: a process that compiles kernels for the one that started it (helper.h), which its standard input is
// a socket to.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "device/gpu/cuda/helper/helper.h"

int main() {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("compile-for-cuda: russet starts this program when it compiles kernels for the device cuda\n", stderr);
    return 2;
  }
  russet::cuda::serve_compilations(STDIN_FILENO);
  return 0;  // NVRTC deletes its precompiled prelude in its own exit handler, which _exit would leave out
}
