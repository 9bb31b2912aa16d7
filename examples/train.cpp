// Trains a perceptron on images: `train FOLDER`, where the folder holds MNIST's files.
#include <russet/data.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>

#include <cstdio>
#include <exception>

using namespace russet;

int main(int count, char** arguments) try {
  if (count != 2) {
    std::fprintf(stderr, "usage: train FOLDER\n");
    return 2;
  }
  const data::Parts parts = data::open_mnist(arguments[1]);
  const data::DatasetPtr images = parts.train;
  data::DataLoader loader(images, {.batch = 64, .shuffle = true, .drop_last = true});

  const Tensor first = loader.next()->input;
  const std::int64_t features = first.numel() / first.size(0);
  auto net = nn::Sequential(nn::Flatten(), nn::Linear(features, 128), nn::ReLU(), nn::Linear(128, images->classes()));
  auto optim = optim::SGD(net.parameters(), {.lr = 0.1, .momentum = 0.9});

  for (int epoch = 0; epoch < 5; ++epoch) {
    Tensor right = zeros({}, {.dtype = DType::int64});
    Tensor loss;
    for (auto [image, label] : loader) {
      const Tensor scores = net(image);
      loss = cross_entropy(scores, label);
      optim.zero_grad();
      loss.backward();
      optim.step();
      right.add_(sum(argmax(scores.detach(), 1) == label));
    }
    const double share = right.item() / static_cast<double>(loader.samples());
    std::printf("epoch %d: loss %.4f, accuracy %.1f %%\n", epoch + 1, loss.item(), 100 * share);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return 1;
}
