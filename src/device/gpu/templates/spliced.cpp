#include "device/gpu/templates/spliced.h"

#include <fmt/format.h>

namespace russet::gpu {

KernelText spliced_kernel(std::string stem, std::size_t first) {
  KernelText kernel(std::move(stem), 32);
  for (std::size_t i = 0; i < first; ++i) kernel.bind("char", {});
  return kernel;
}

void SplicedText::bind(std::string_view type_of, std::string_view argument, std::string_view member,
                       const Region& region) {
  arguments.push_back({std::string(type_of), std::string(argument), region.writes});
  members.emplace_back(member);
  regions.push_back(region);
}

void SplicedText::take(const KernelText& kernel, std::size_t first) {
  for (std::size_t i = first; i < kernel.bindings(); ++i) {
    const Piece::Argument& argument = kernel.arguments()[i];
    bind(argument.type, argument.name, argument.name, kernel.regions()[i]);
  }
  files = kernel.files();
  values = kernel.values().values();
}

std::string declare(Piece& piece, const SplicedText& text, std::string_view variable, std::string_view values) {
  std::string lines = fmt::format("  {} {};\n", text.type, variable);
  if (!values.empty()) lines += fmt::format("  {}.values = &{};\n", variable, values);
  for (std::size_t i = 0; i < text.arguments.size(); ++i) {
    piece.arguments.push_back(text.arguments[i]);
    lines += fmt::format("  {}.{} = {};\n", variable, text.members[i], text.arguments[i].name);
  }
  piece.declarations += text.declarations;
  return lines;
}

}  // namespace russet::gpu
