// Images a second from JPEG files to two augmented views each, as `russet train simclr_resnet18` takes them:
// loader_bench FOLDER SIZE IMAGES WORKERS prints a line of JSON. bench/compare_loading.py runs it beside PyTorch's
// DataLoader. Without arguments: embedded images.
#include <fmt/format.h>
#include <russet/data.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>

#include "run/task.h"

namespace {

namespace data = russet::data;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t batch = 64;
/// ImageNet's mean and deviation, as bench/compare_loading.py has them.
data::Transforms views(std::int64_t size) {
  return russet::app::views_of({.size = size, .mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}});
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
