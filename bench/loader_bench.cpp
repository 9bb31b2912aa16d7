// Images a second from JPEG files to two augmented views each, as SimCLR takes them: loader_bench FOLDER SIZE IMAGES
// WORKERS prints a line of JSON. bench/compare_loading.py runs it beside PyTorch's DataLoader. Without arguments:
// embedded images.
#include <fmt/format.h>
#include <russet/data.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>

namespace {

namespace data = russet::data;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t batch = 64;
constexpr std::int64_t small_side = 64;  // without blur, and with weaker colours, below

data::Transforms views(std::int64_t size) {
  const bool small = size < small_side;
  const double strength = small ? 0.5 : 1;
  std::vector<data::Transform> steps{data::RandomResizedCrop{size}, data::RandomHorizontalFlip{}};
  steps.emplace_back(data::ColorJitter{.brightness = 0.8 * strength,
                                       .contrast = 0.8 * strength,
                                       .saturation = 0.8 * strength,
                                       .hue = 0.2 * strength,
                                       .probability = 0.8});
  steps.emplace_back(data::RandomGrayscale{0.2});
  if (!small) steps.emplace_back(data::GaussianBlur{.kernel_size = size / 20 * 2 + 1, .probability = 0.5});
  steps.emplace_back(data::ToFloat{});
  steps.emplace_back(data::Normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}});
  return data::Transforms(std::move(steps)).with_views(2);
}

/// The images of an epoch, from its next batch on.
std::int64_t take_epoch(data::DataLoader& loader) {
  std::int64_t count = 0;
  while (const auto batch = loader.next()) count += batch->input.size(0);
  return count;
}

/// Draws images with replacement, as many as asked for.
void measure(const data::DatasetPtr& dataset, std::int64_t images, int workers) {
  const std::vector<double> weights(static_cast<std::size_t>(dataset->size()), 1.0);
  const auto sampler = std::make_shared<const data::WeightedRandomSampler>(weights, images);
  data::DataLoader loader(dataset, {.batch = batch, .workers = workers, .sampler = sampler});
  take_epoch(loader);  // now files are in the system's cache, and threads are there
  const Clock::time_point start = Clock::now();
  const std::clock_t used = std::clock();
  const std::int64_t count = take_epoch(loader);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  fmt::print("{{\"images\": {}, \"seconds\": {:.6f}, \"processor_seconds\": {:.6f}}}\n", count, seconds.count(),
             static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 5) {
      const data::Transforms transforms = views(std::atoll(arguments[2]));
      // PyTorch's reads the files anew each time, so this one does.
      const data::FolderOptions options{.cache_bytes = 0};
      measure(std::make_shared<const data::ImageFolder>(arguments[1], transforms, options), std::atoll(arguments[3]),
              std::atoi(arguments[4]));
    } else {
      measure(std::make_shared<const data::Shapes>(data::ShapesOptions{}, views(32)), 10'000, -1);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
