#include "run/open_data.h"

#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/data/tensors.h>
#include <russet/error.h>

#include <algorithm>
#include <iterator>

namespace russet::app {
namespace {

struct Opener {
  std::string_view name;
  data::Parts (*open)(const std::filesystem::path& path);
};

constexpr Opener openers[] = {
    {"mnist", [](const std::filesystem::path& path) { return data::open_mnist(path); }},
    {"cifar10", [](const std::filesystem::path& path) { return data::open_cifar10(path); }},
    {"folder", [](const std::filesystem::path& path) { return data::open_folder(path); }},
    {"tensors",
     [](const std::filesystem::path& path) {
       return data::Parts{std::make_shared<const data::TensorDataset>(path), nullptr};
     }},
};

}  // namespace

data::Parts open_data(std::string_view description) {
  const std::size_t colon = description.find(':');
  const std::string_view kind = description.substr(0, colon);
  const std::filesystem::path path(colon == std::string_view::npos ? std::string_view{}
                                                                   : description.substr(colon + 1));
  if (description == "shapes") {
    return {std::make_shared<const data::Shapes>(data::ShapesOptions{.size = 10'000}),
            std::make_shared<const data::Shapes>(data::ShapesOptions{.size = 2'000, .test = true})};
  }
  const auto* const found = std::ranges::find(openers, kind, &Opener::name);
  if (found == std::end(openers) || path.empty()) {
    throw ValueError(fmt::format(
        "data \"{}\": expected shapes, mnist:FOLDER, cifar10:FOLDER, folder:FOLDER, tensors:FILE.safetensors, "
        "trec:FILE or text:FILE",
        description));
  }
  return found->open(path);
}

}  // namespace russet::app
