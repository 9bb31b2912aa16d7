#pragma once
// Layers of a stack that are made from one.
#include <fmt/format.h>
#include <russet/nn/containers.h>

#include <cstdint>
#include <vector>

namespace russet::nn {

/// `count` copies of a layer, which `list` gets as its children "0", "1", ... Throws ValueError that names the stack.
template <class Layer>
std::vector<Layer> cloned_layers(const char* name, const Layer& layer, std::int64_t count, ModuleList& list) {
  if (count < 1) throw ValueError(fmt::format("{}: {} layers", name, count));
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < count; ++i) {
    layers.push_back(clone(layer));
    list.push_back(layers.back());
  }
  return layers;
}

}  // namespace russet::nn
