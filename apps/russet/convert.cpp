// russet convert: a file of weights as safetensors.
#include <russet/io.h>

#include "command.h"

namespace russet::app {

void run_convert(const Arguments& arguments) {
  const io::WeightsFile file(arguments.text("in"));
  const std::string path = arguments.text("out");
  const StateDict tensors = file.tensors();
  io::Metadata metadata = file.metadata();
  metadata.try_emplace("format", "pt");  // without which transformers refuses a file
  io::save_safetensors(path, tensors, metadata);
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    bytes += static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
  }
  if (arguments.flag("json")) return print_json({{"output", path}, {"tensors", tensors.size()}, {"bytes", bytes}});
  fmt::print("{}: {} tensors, {} bytes\n", path, tensors.size(), bytes);
}

}  // namespace russet::app
