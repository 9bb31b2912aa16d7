// Answers of a trained model: `inference MODEL WEIGHTS.safetensors INPUT.safetensors`, the input being tensor "x".
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/models.h>

#include <cstdio>
#include <exception>

using namespace russet;

int main(int count, char** arguments) try {
  if (count != 4) {
    std::fprintf(stderr, "usage: inference MODEL WEIGHTS.safetensors INPUT.safetensors\n");
    return 2;
  }
  const StateDict weights = io::load_safetensors(arguments[2]);
  models::Model model = models::get_model(arguments[1]);
  model.load_state_dict(weights);
  model.eval();

  const NoGrad guard;
  const Tensor x = io::load_safetensors(arguments[3]).at("x");
  const auto [probability, label] = max(softmax(model(x), 1), 1);
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    std::printf("%lld: class %lld, %.1f %%\n", static_cast<long long>(i),
                static_cast<long long>(label[i].item<std::int64_t>()), 100 * probability[i].item());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "inference: %s\n", error.what());
  return 1;
}
