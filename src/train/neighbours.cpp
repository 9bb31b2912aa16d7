#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/captured_function.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/operators.h>
#include <russet/train/neighbours.h>

#include <algorithm>
#include <vector>

namespace russet::train {

Tensor neighbour_votes(const Tensor& queries, const Tensor& bank, const Tensor& labels, std::int64_t classes,
                       const NeighbourOptions& options) {
  const std::int64_t count = std::min(options.neighbours, bank.size(0));
  const auto [similarity, places] = topk(matmul(normalize(queries), normalize(bank).t()), count, 1);
  const Tensor voted = index_select(labels, 0, places.flatten()).reshape(places.sizes());
  const Tensor none = zeros({queries.size(0), classes}, {similarity.dtype(), similarity.device(), false});
  return scatter_add(none, 1, voted, exp(similarity * (1 / options.temperature)));
}

double neighbour_accuracy(models::Model& model, data::DataLoader& bank, data::DataLoader& test,
                          const NeighbourEvaluation& options) {
  if (model.spec().features == nullptr) {
    throw ValueError(fmt::format("{} has no features of images to look for neighbours by", model.spec().name));
  }
  const nn::ModeScope mode(model, false);
  const NoGrad no_grad;
  const auto features_of = [&](const Tensor& images) {
    const Autocast scope = autocast_to(options.precision);
    return model.spec().features(model, images.to(DType::float32)).to(DType::float32);
  };
  std::int64_t batches = 0;
  const auto done = [&] {
    if (options.progress) options.progress(++batches);
  };
  CapturedFunction features_of_batch(
      [&](const std::vector<Tensor>& inputs) { return std::vector{features_of(inputs[0])}; });
  std::vector<Tensor> features;
  std::vector<Tensor> labels;
  for (const auto& [images, classes] : bank) {
    features.push_back(features_of_batch({images}).front());
    labels.push_back(classes);
    done();
  }
  const Tensor all_features = cat(features, 0);
  const Tensor all_labels = cat(labels, 0);
  features.clear();
  const std::int64_t classes = bank.dataset().classes();
  CapturedFunction right_answers([&](const std::vector<Tensor>& inputs) {
    const Tensor votes = neighbour_votes(features_of(inputs[0]), all_features, all_labels, classes, options.neighbours);
    return std::vector{sum(eq(argmax(votes, 1), inputs[1]))};
  });
  Tensor correct = zeros({}, {DType::int64, all_features.device(), false});
  for (const auto& batch : test) {
    correct = correct + right_answers(batch.tensors()).front();
    done();
  }
  return correct.item<double>() / static_cast<double>(std::max<std::int64_t>(test.samples(), 1));
}

}  // namespace russet::train
