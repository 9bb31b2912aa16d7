#include "run/open_data.h"

#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/data/tensors.h>
#include <russet/error.h>

namespace russet::app {

data::Parts open_data(std::string_view description) {
  const std::size_t colon = description.find(':');
  const std::string_view kind = description.substr(0, colon);
  const std::filesystem::path path(colon == std::string_view::npos ? std::string_view{}
                                                                   : description.substr(colon + 1));
  if (description == "shapes") {
    return {std::make_shared<const data::Shapes>(data::ShapesOptions{.size = 10'000}),
            std::make_shared<const data::Shapes>(data::ShapesOptions{.size = 2'000, .test = true})};
  }
  const bool known = kind == "mnist" || kind == "cifar10" || kind == "folder" || kind == "tensors";
  if (!known || path.empty()) {
    throw ValueError(fmt::format(
        "data \"{}\": expected shapes, mnist:FOLDER, cifar10:FOLDER, folder:FOLDER, tensors:FILE.safetensors "
        "or trec:FILE",
        description));
  }
  if (kind == "mnist") return data::open_mnist(path);
  if (kind == "cifar10") return data::open_cifar10(path);
  if (kind == "folder") return data::open_folder(path);
  return {std::make_shared<const data::TensorDataset>(path), nullptr};
}

}  // namespace russet::app
