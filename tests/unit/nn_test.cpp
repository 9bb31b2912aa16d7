// Modules: handles, names, modes, state dicts, clones; layers against values worked out by hand.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>

#include <cmath>

namespace russet {
namespace {

constexpr Device device{DeviceType::reference};

class Modules : public ::testing::Test {
 protected:
  nn::NewModules place_{device};
};

struct Net : nn::Module {
  nn::Linear fc1 = register_module("fc1", nn::Linear(4, 3));
  nn::Linear fc2{3, 2};
  nn::Parameter scale = register_parameter("scale", ones({2}, {.device = device}));
  nn::Parameter offset = register_buffer("offset", zeros({2}, {.device = device}));
  Net() { register_module("fc2", fc2); }
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))) * scale + offset; }
};

std::vector<std::string> names_of(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

Tensor vector(std::initializer_list<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())}, device);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Modules, NamesAndCounts) {
  Net net;
  EXPECT_EQ(names_of(net.named_parameters()),
            (std::vector<std::string>{"scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(names_of(net.named_buffers()), std::vector<std::string>{"offset"});
  EXPECT_EQ(net.num_parameters(), 2 + 12 + 3 + 6 + 2);
  EXPECT_EQ(net.state_dict().size(), 6U);
  for (const Tensor& parameter : net.parameters()) EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf());
}

TEST_F(Modules, SharedParametersCountOnce) {
  nn::Linear layer(2, 2);
  nn::Sequential net(layer, nn::ReLU(), layer);
  EXPECT_EQ(net.parameters().size(), 2U);
  EXPECT_EQ(net.state_dict().size(), 4U);
}

TEST_F(Modules, CopiesAlias) {
  Net net;
  Net copy = net;
  EXPECT_TRUE(copy.is_same(net));
  copy.eval();
  EXPECT_FALSE(net.is_training() || net.fc1.is_training());
  nn::init::zeros_(copy.fc2.weight);
  EXPECT_EQ(net.fc2.weight.to_vector<float>(), std::vector<float>(6, 0));
}

TEST_F(Modules, HaveTheirOwnModesAfterAScope) {
  Net net;
  net.fc1.eval();
  {
    const nn::ModeScope scope(net, false);
    EXPECT_FALSE(net.is_training() || net.fc1.is_training() || net.fc2.is_training());
    const nn::ModeScope inner(net, true);
    EXPECT_TRUE(net.is_training() && net.fc1.is_training() && net.fc2.is_training());
  }
  EXPECT_TRUE(net.is_training() && net.fc2.is_training());
  EXPECT_FALSE(net.fc1.is_training());
}

TEST_F(Modules, ClonesDoNot) {
  Net net;
  Net copy = nn::clone(net);
  EXPECT_FALSE(copy.is_same(net));
  EXPECT_EQ(names_of(copy.named_parameters()), names_of(net.named_parameters()));
  const Tensor x = rand({5, 4}, {.device = device});
  EXPECT_TRUE(equal(net(x), copy(x)));
  for (const Tensor& parameter : net.parameters()) nn::init::zeros_(parameter);
  nn::init::ones_(net.offset);
  EXPECT_TRUE(equal(net(x), ones({5, 2}, {.device = device})));
  EXPECT_FALSE(equal(net(x), copy(x)));
  // The clone's members are what its names show.
  nn::init::zeros_(copy.fc2.weight);
  EXPECT_EQ(copy.state_dict().at("fc2.weight").to_vector<float>(), std::vector<float>(6, 0));
  copy(x).backward(ones({5, 2}, {.device = device}));
  EXPECT_TRUE(copy.scale.grad().defined());
  EXPECT_FALSE(net.scale.grad().defined());
}

TEST_F(Modules, ClonesOfContainersKeepTypesAndSharing) {
  nn::Linear layer(2, 2);
  nn::Sequential net(layer, nn::BatchNorm1d(2), layer);
  nn::Sequential copy = nn::clone(net);
  EXPECT_EQ(copy.parameters().size(), 4U);
  ASSERT_TRUE(copy[0].as<nn::Linear>());
  ASSERT_TRUE(copy[1].as<nn::BatchNorm1d>());
  EXPECT_TRUE(copy[0].is_same(copy[2]));
  EXPECT_FALSE(copy[0].is_same(net[0]));
  nn::init::zeros_(copy[0].as<nn::Linear>()->weight);
  EXPECT_EQ(copy.state_dict().at("2.weight").to_vector<float>(), std::vector<float>(4, 0));
  EXPECT_NE(net.state_dict().at("2.weight").to_vector<float>(), std::vector<float>(4, 0));
}

TEST_F(Modules, LoadsWhatItSaved) {
  Net net;
  Net other;
  const nn::LoadResult result = other.load_state_dict(net.state_dict());
  EXPECT_TRUE(result.missing.empty() && result.unexpected.empty());
  const Tensor x = rand({5, 4}, {.device = device});
  EXPECT_TRUE(equal(net(x), other(x)));
}

TEST_F(Modules, OneErrorListsAllThatDoesNotFit) {
  Net net;
  const std::vector<float> before = net.fc1.bias.to_vector<float>();
  StateDict state;
  state.insert("fc1.weight", zeros({4, 3}, {.device = device}));
  state.insert("fc1.bias", zeros({3}, {.device = device}));
  state.insert("fc3.bias", zeros({3}, {.device = device}));
  const std::string message = message_of([&] { net.load_state_dict(state); });
  for (const char* part : {"missing: scale, offset, fc2.weight, fc2.bias", "unexpected: fc3.bias",
                           "fc1.weight ([4, 3] in the state dict, [3, 4] in the module)"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  EXPECT_EQ(net.fc1.bias.to_vector<float>(), before);
  EXPECT_THROW(net.load_state_dict(state, false), ValueError);  // a shape is wrong all the same
  state.insert("fc1.weight", zeros({3, 4}, {.device = device}));
  EXPECT_EQ(net.load_state_dict(state, false).unexpected, std::vector<std::string>{"fc3.bias"});
  EXPECT_EQ(net.fc1.bias.to_vector<float>(), std::vector<float>(3, 0));
}

TEST_F(Modules, WeightsMayLackTheCountOfBatches) {
  nn::BatchNorm1d norm(2);
  const Tensor two = Tensor::from<float>({1, 2}, {2}, device);
  StateDict state{{"weight", two}, {"bias", two}, {"running_mean", two}, {"running_var", two}};
  norm(rand({3, 2}, {.device = device}));
  EXPECT_TRUE(norm.load_state_dict(state).missing.empty());
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_EQ(norm.running_var.to_vector<float>(), (std::vector<float>{1, 2}));
  const StateDict lacking{{"weight", two}, {"bias", two}, {"running_mean", two}};
  const std::string message = message_of([&] { norm.load_state_dict(lacking); });
  EXPECT_TRUE(message.ends_with("missing: running_var")) << message;
}

TEST_F(Modules, NamesAreChecked) {
  Net net;
  EXPECT_THROW(net.register_parameter("a.b", {}), ValueError);
  EXPECT_THROW(net.register_module("", nn::ReLU()), ValueError);
  EXPECT_THROW(net.register_module("self", net), ValueError);
}

TEST_F(Modules, TypesGoDeepButLeaveIntegers) {
  nn::Sequential net(nn::Linear(2, 2), nn::BatchNorm1d(2));
  const nn::Linear first = *net[0].as<nn::Linear>();
  net.to(DType::float64);
  EXPECT_EQ(first.weight.dtype(), DType::float64);
  EXPECT_TRUE(first.weight.requires_grad());
  EXPECT_EQ(net.state_dict().at("1.num_batches_tracked").dtype(), DType::int64);
  EXPECT_EQ(net(rand({3, 2}, {.dtype = DType::float64, .device = device})).dtype(), DType::float64);
  EXPECT_THROW(net.to(DType::int32), TypeError);
}

TEST_F(Modules, ApplyVisitsChildrenFirst) {
  Net net;
  std::vector<std::int64_t> counts;
  net.apply([&](nn::Module& module) { counts.push_back(module.num_parameters()); });
  EXPECT_EQ(counts, (std::vector<std::int64_t>{15, 8, 25}));
}

TEST_F(Modules, ZeroGradDrops) {
  Net net;
  net(ones({1, 4}, {.device = device})).backward(ones({1, 2}, {.device = device}));
  EXPECT_TRUE(net.fc2.bias.grad().defined());
  net.zero_grad();
  EXPECT_FALSE(net.fc2.bias.grad().defined());
}

TEST_F(Modules, LinearByHand) {
  nn::Linear layer(2, 3);
  layer.load_state_dict({{"weight", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}, device)},
                         {"bias", Tensor::from<float>({0.5F, 0, -1}, {3}, device)}});
  const Tensor y = layer(vector({1, -1}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-0.5F, -1, -2}));
  EXPECT_EQ(layer(ones({2, 5, 2}, {.device = device})).sizes(), (Shape{2, 5, 3}));
  EXPECT_EQ(layer(ones({0, 5, 2}, {.device = device})).sizes(), (Shape{0, 5, 3}));
  EXPECT_THROW(layer(ones({2, 5, 4}, {.device = device})), ShapeError);
}

TEST_F(Modules, BatchNormByHand) {
  nn::BatchNorm1d norm(1, {.eps = 0, .momentum = 0.25});
  const Tensor x = vector({1, 3, 5, 7}).reshape({4, 1});  // mean 4, variance 5, unbiased 20 / 3
  const std::vector<float> y = norm(x).to_vector<float>();
  EXPECT_NEAR(y[0], -3 / std::sqrt(5.0), 1e-6);
  EXPECT_NEAR(norm.running_mean.item(), 1, 1e-6);
  EXPECT_NEAR(norm.running_var.item(), 0.75 + 0.25 * 20 / 3, 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
  norm.eval();
  EXPECT_NEAR(norm(x).to_vector<float>()[3], 6 / std::sqrt(0.75 + 5.0 / 3), 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_THROW(norm(ones({1, 1, 1, 1}, {.device = device})), ShapeError);
}

TEST_F(Modules, DropoutFollowsTheMode) {
  nn::Sequential net{nn::Dropout(0.5)};
  const Tensor x = ones({1000}, {.device = device});
  const std::vector<float> trained = net(x).to_vector<float>();
  const auto zeros_found = std::count(trained.begin(), trained.end(), 0.0F);
  EXPECT_GT(zeros_found, 400);
  EXPECT_LT(zeros_found, 600);
  EXPECT_EQ(std::count(trained.begin(), trained.end(), 2.0F), 1000 - zeros_found);
  net.eval();
  EXPECT_TRUE(equal(net(x), x));
  EXPECT_THROW(nn::Dropout(1.5), ValueError);
  nn::Sequential branch{nn::StochasticDepth(1, StochasticDepthMode::row)};
  EXPECT_TRUE(equal(branch(x), zeros({1000}, {.device = device})));
  branch.eval();
  EXPECT_TRUE(equal(branch(x), x));
  EXPECT_THROW(nn::StochasticDepth(1.5, StochasticDepthMode::row), ValueError);
}

TEST_F(Modules, EmbeddingPadding) {
  nn::Embedding table(5, 3, {.padding_idx = 2});
  const Tensor y = table(Tensor::from<std::int64_t>({2, 4}, {2}, device));
  EXPECT_EQ(y.select(0, 0).to_vector<float>(), std::vector<float>(3, 0));
  y.backward(ones({2, 3}, {.device = device}));
  EXPECT_EQ(table.weight.grad().select(0, 2).to_vector<float>(), std::vector<float>(3, 0));
  EXPECT_EQ(table.weight.grad().select(0, 4).to_vector<float>(), std::vector<float>(3, 1));
}

TEST_F(Modules, EmbeddingBags) {
  nn::EmbeddingBag table(5, 3, {.mode = EmbeddingBagMode::sum, .padding_idx = 2});
  const std::vector<float> unset(3, 0);
  EXPECT_EQ(table.weight.select(0, 2).to_vector<float>(), unset);
  const Tensor indices = Tensor::from<std::int64_t>({4, 2, 4, 2}, {4}, device);
  const Tensor found = table(indices, Tensor::from<std::int64_t>({0, 3}, {2}, device));
  EXPECT_TRUE(equal(found.select(0, 0), table.weight.select(0, 4) * 2));
  EXPECT_EQ(found.select(0, 1).to_vector<float>(), unset);
  EXPECT_TRUE(equal(table(indices.reshape({1, 4})), found.narrow(0, 0, 1)));
  const Tensor halves = full({1, 4}, 0.5, {.device = device});
  EXPECT_TRUE(equal(table(indices.reshape({1, 4}), {}, halves).select(0, 0), table.weight.select(0, 4)));
  found.backward(ones({2, 3}, {.device = device}));
  EXPECT_EQ(table.weight.grad().select(0, 4).to_vector<float>(), std::vector<float>(3, 2));
  EXPECT_EQ(table.weight.grad().select(0, 2).to_vector<float>(), unset);
  EXPECT_THROW(nn::EmbeddingBag(5, 3, {.padding_idx = 5}), ValueError);
}

TEST_F(Modules, LayersOfImages) {
  const Tensor x = randn({1, 2, 4, 6}, {.device = device});
  const Tensor columns = nn::Unfold(2, {.stride = 2})(x);
  EXPECT_EQ(columns.sizes(), (Shape{1, 8, 6}));
  EXPECT_TRUE(equal(nn::Fold({4, 6}, 2, {.stride = 2})(columns), x));  // windows that do not overlap
  const Tensor larger = nn::Upsample({.scale_factor = 2})(x);
  EXPECT_TRUE(equal(larger, interpolate(x, {.size = Size2(8, 12)})));
  // Of one channel the mean square is the channel's own.
  const Tensor scaled = nn::LocalResponseNorm(1, {.alpha = 3, .beta = 1, .k = 2})(x);
  EXPECT_TRUE(allclose(scaled, x / (x * x * 3 + 2)));
  // A flat picture stays as it is, and a point becomes the kernel: along y alone here.
  nn::GaussianBlur2d blur({3, 1}, {0.8, 1}, {.border_type = PadMode::replicate});
  EXPECT_TRUE(allclose(blur(ones({1, 2, 4, 6}, {.device = device})), ones({1, 2, 4, 6}, {.device = device})));
  const Tensor point = pad(ones({1, 1, 1, 1}, {.device = device}), {2, 2, 2, 2});
  const Tensor column = blur(point).select(3, 2).flatten();
  const double side = std::exp(-0.5 / (0.8 * 0.8));
  EXPECT_NEAR(column.select(0, 1).item(), side / (1 + 2 * side), 1e-6);
  EXPECT_NEAR(column.select(0, 2).item(), 1 / (1 + 2 * side), 1e-6);
}

TEST_F(Modules, LayersOfVolumes) {
  const Tensor x = randn({1, 4, 4, 6, 4}, {.device = device});
  nn::Conv3d convolution(4, 6, {3, 2, 2}, {.stride = 2, .padding = {1, 0, 0}, .groups = 2});
  EXPECT_EQ(convolution.weight.sizes(), (Shape{6, 2, 3, 2, 2}));
  EXPECT_LE(amax(abs(convolution.weight)).item(), 1 / std::sqrt(24.0));
  const Tensor y = convolution(x);
  EXPECT_EQ(y.sizes(), (Shape{1, 6, 2, 3, 2}));
  nn::ConvTranspose3d back(6, 4, {3, 2, 2}, {.stride = 2, .padding = {1, 0, 0}, .output_padding = {1, 0, 0}});
  EXPECT_EQ(back.weight.sizes(), (Shape{6, 4, 3, 2, 2}));
  EXPECT_EQ(back(y).sizes(), x.sizes());
  EXPECT_TRUE(equal(back(y, {4, 6, 4}), back(y)));
  EXPECT_EQ(back(y, {3, 7, 4}).sizes(), (Shape{1, 4, 3, 7, 4}));
  EXPECT_THROW(back(y, {3, 8, 4}), ValueError);
  nn::ConvTranspose2d plane(4, 2, 3, {.stride = {2, 3}});
  EXPECT_EQ(plane(x.select(2, 0), {14, 12}).sizes(), (Shape{1, 2, 14, 12}));
  nn::ConvTranspose1d line(4, 2, 3, {.stride = 2, .bias = false});
  EXPECT_EQ(line(x.flatten(2), 194).sizes(), (Shape{1, 2, 194}));
  EXPECT_FALSE(line.bias.defined());
  EXPECT_EQ(line(x.flatten(2)).sizes(), (Shape{1, 2, 193}));
  EXPECT_THROW(nn::Conv3d(4, 6, 3, {.groups = 4}), ValueError);
  EXPECT_THROW(nn::ConvTranspose3d(4, 6, {0, 1, 1}), ValueError);

  EXPECT_TRUE(equal(nn::MaxPool3d(2)(x), max_pool3d(x, 2)));
  EXPECT_TRUE(equal(nn::AvgPool3d({2, 3, 2})(x), avg_pool3d(x, {2, 3, 2})));
  EXPECT_TRUE(equal(nn::AdaptiveAvgPool3d(2)(x), adaptive_avg_pool3d(x, 2)));
  EXPECT_TRUE(equal(nn::AdaptiveMaxPool3d(2)(x), adaptive_max_pool3d(x, 2)));
  const auto [values, indices] = max_pool3d_with_indices(x, 2);
  EXPECT_TRUE(equal(nn::MaxUnpool3d(2)(values, indices), max_unpool3d(values, indices, 2)));
}

TEST_F(Modules, AttendingRowsIsAttention) {
  nn::MultiheadAttention attention(8, 2, {.batch_first = true});
  const Tensor x = randn({3, 5, 8}, {.device = device});
  const Tensor expected = attention(x, x, x, {}, false).output;
  const Tensor found = attention.attend_rows(x.reshape({15, 8}), 3).reshape({3, 5, 8});
  EXPECT_TRUE(allclose(found, expected, 1e-5, 1e-6));
  EXPECT_THROW(nn::MultiheadAttention(8, 3), ValueError);
}

TEST_F(Modules, EncoderLayerIsItsParts) {
  for (const bool norm_first : {false, true}) {
    nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0, .norm_first = norm_first});
    const Tensor x = randn({5, 3, 8}, {.device = device});
    const Tensor padding = Tensor::from<bool>({false, false, false, false, false,  //
                                               false, false, true, true, true,     //
                                               false, false, false, false, true},
                                              {3, 5}, device);
    const auto attend = [&](const Tensor& v) {
      const Tensor b = v.transpose(0, 1);
      return layer.self_attn(b, b, b, {.key_padding_mask = padding}, false).output.transpose(0, 1);
    };
    const auto feed = [&](const Tensor& v) { return layer.linear2(relu(layer.linear1(v))); };
    Tensor expected;
    if (norm_first) {
      const Tensor h = x + attend(layer.norm1(x));
      expected = h + feed(layer.norm2(h));
    } else {
      const Tensor h = layer.norm1(x + attend(x));
      expected = layer.norm2(h + feed(h));
    }
    EXPECT_TRUE(allclose(layer(x, {.key_padding_mask = padding}), expected, 1e-5, 1e-6));
  }
}

TEST_F(Modules, EncoderLayersAreIndependent) {
  nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .batch_first = true}), 2,
                                 nn::LayerNorm(8));
  EXPECT_EQ(encoder.parameters().size(), 2 * 12U + 2U);
  EXPECT_TRUE(encoder.state_dict().contains("layers.1.self_attn.out_proj.weight"));
  EXPECT_TRUE(encoder.state_dict().contains("norm.bias"));
  EXPECT_EQ(encoder(randn({2, 4, 8}, {.device = device})).sizes(), (Shape{2, 4, 8}));
}

TEST_F(Modules, LossesAreTheirFunctions) {
  const Tensor x = randn({4, 3}, {.device = device});
  const Tensor y = Tensor::from<std::int64_t>({0, 2, 1, 1}, {4}, device);
  const Tensor weight = vector({1, 2, 3});
  EXPECT_TRUE(equal(nn::CrossEntropyLoss({.weight = weight})(x, y), cross_entropy(x, y, {.weight = weight})));
  EXPECT_TRUE(equal(nn::MSELoss()(x, x + 1.0), mse_loss(x, x + 1.0)));
}

TEST_F(Modules, SequentialByNameAndPlace) {
  nn::Sequential net({{"fc", nn::Linear(2, 2)}, {"act", nn::ReLU()}});
  EXPECT_TRUE(net.state_dict().contains("fc.weight"));
  EXPECT_EQ(net.size(), 2U);
  EXPECT_THROW(net[2], IndexError);
  EXPECT_NE(nn::to_string(net).find("(fc): Linear, 6 parameters"), std::string::npos) << nn::to_string(net);
}

}  // namespace
}  // namespace russet
