// The models by name: parameter counts of torchvision and Hugging Face, shapes, gradients, options, errors.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/train.h>

#include <map>

namespace russet {
namespace {

constexpr Device reference{DeviceType::reference};
constexpr Device null{DeviceType::null};

models::ModelOptions small_bert() {
  return {.num_classes = 3,
          .config = {{"vocab_size", 50},
                     {"hidden_size", 16},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 2},
                     {"intermediate_size", 32},
                     {"max_position_embeddings", 12}},
          .device = reference};
}

TEST(Models, ParameterCounts) {
  const std::map<std::string, std::int64_t> counts = {
      {"mlp", 658698},
      {"lenet5", 61706},
      {"alexnet", 61100840},
      {"vgg16", 138357544},
      {"resnet18", 11689512},
      {"resnet18_cifar", 11173962},
      {"resnet50", 25557032},
      {"efficientnet_b0", 5288548},
      {"efficientnet_b4", 19341616},
      {"convmixer_768_32", 21110248},
      {"vit_b_16", 86567656},
      {"simclr_resnet18", 11497152},
      {"bert_base", 109483778},
      {"bert_base_mlm", 109514298},
  };
  ASSERT_EQ(models::list_models().size(), counts.size());
  for (const std::string& name : models::list_models()) {
    EXPECT_EQ(models::get_model(name, {.device = null}).num_parameters(), counts.at(name)) << name;
  }
}

TEST(Models, ForwardGivesLogits) {
  for (const std::string& name : models::list_models()) {
    models::Model model = models::get_model(name, {.device = null});
    std::vector<Tensor> inputs;
    for (const models::Input& input : model.inputs()) {
      Shape sizes = input.shape;
      sizes.insert(0, 2);
      inputs.push_back(zeros(sizes, {input.dtype, null}));
    }
    Shape expected{2, model.num_classes()};
    if (model.spec().answers_tokens) expected.insert(1, inputs.front().size(1));
    EXPECT_EQ(model.forward_all(inputs).sizes(), expected) << name;
  }
}

TEST(Models, EveryParameterGetsAGradient) {
  models::ModelOptions bert = small_bert();
  bert.dropout = 0.1;
  const std::map<std::string, models::ModelOptions> options = {
      {"mlp", {.num_classes = 3, .dropout = 0.1, .image_size = 4}},
      {"lenet5", {.num_classes = 3, .dropout = 0.1, .in_channels = 2, .image_size = 12}},
      {"resnet18_cifar", {.num_classes = 3, .image_size = 8}},
      {"bert_base", bert},
  };
  for (auto [name, chosen] : options) {
    chosen.device = reference;
    models::Model model = models::get_model(name, chosen);
    std::vector<Tensor> inputs;
    for (const models::Input& input : model.inputs()) {
      Shape sizes = input.shape;
      sizes.insert(0, 2);
      inputs.push_back(input.limit > 0 ? randint(0, input.limit, sizes, {.device = reference})
                                       : randn(sizes, {.device = reference}));
    }
    const Tensor y = model.forward_all(inputs);
    ASSERT_EQ(y.sizes(), (Shape{2, 3})) << name;
    cross_entropy(y, Tensor::from<std::int64_t>({0, 2}, {2}, reference)).backward();
    for (const auto& [path, parameter] : model.named_parameters()) {
      EXPECT_TRUE(parameter.grad().defined()) << name << " " << path;
    }
  }
}

TEST(Models, SmallVisionTransformer) {
  const nn::NewModules place(reference);
  models::VisionTransformer model({.image_size = 8,
                                   .patch_size = 4,
                                   .num_layers = 2,
                                   .num_heads = 2,
                                   .hidden_dim = 8,
                                   .mlp_dim = 16,
                                   .num_classes = 3});
  const Tensor x = randn({2, 3, 8, 8}, {.device = reference});
  // torchvision's head starts as zeros.
  EXPECT_TRUE(equal(model(x), zeros({2, 3}, {.device = reference})));
  nn::init::ones_(model.state_dict().at("heads.head.weight"));
  const Tensor y = model(x);
  sum(y).backward();
  for (const auto& [path, parameter] : model.named_parameters()) EXPECT_TRUE(parameter.grad().defined()) << path;
  EXPECT_THROW(model(randn({2, 3, 4, 4}, {.device = reference})), ShapeError);
}

TEST(Models, SimClrGivesItsEncodersFeatures) {
  const nn::NewModules place(reference);
  models::SimClr model({.encoder = {.layers = {1, 1}, .width = 4, .small_stem = true}, .projection_dim = 3});
  EXPECT_EQ(model.state_dict().find("encoder.fc.weight"), nullptr);
  const Tensor x = randn({2, 3, 8, 8}, {.device = reference});
  model.eval();
  const Tensor features = model.features(x);
  EXPECT_EQ(features.sizes(), (Shape{2, 8}));
  const StateDict state = model.state_dict();
  const Tensor hidden = relu(linear(features, state.at("projection.0.weight"), state.at("projection.0.bias")));
  EXPECT_TRUE(equal(model(x), linear(hidden, state.at("projection.2.weight"), state.at("projection.2.bias"))));
}

TEST(Models, EfficientNetsDropBlocksInTraining) {
  const Tensor x = randn({4, 3, 32, 32}, {.device = reference});
  const auto differ = [&](const models::ModelOptions& options) {
    models::Model model = models::get_model("efficientnet_b0", options);
    const NoGrad guard;
    return !equal(model(x), model(x));
  };
  models::ModelOptions options{.num_classes = 3, .dropout = 0, .width = 0.01, .device = reference};
  EXPECT_FALSE(differ(options));  // with 0, blocks are not left out either
  options.dropout = 1e-9;
  EXPECT_TRUE(differ(options));
}

TEST(Models, BertIgnoresPadding) {
  models::Model model = models::get_model("bert_base", small_bert());
  model.eval();
  const NoGrad guard;
  const Tensor ids = randint(1, 50, {2, 6}, {.device = reference});
  const Tensor padded = cat({ids, zeros({2, 3}, {DType::int64, reference})}, 1);
  const Tensor mask = cat({ones({2, 6}, {DType::int64, reference}), zeros({2, 3}, {DType::int64, reference})}, 1);
  const Tensor expected = model(ids);
  EXPECT_TRUE(allclose(model(padded, mask), expected, 1e-5, 1e-6));
  EXPECT_FALSE(allclose(model(padded), expected, 1e-5, 1e-6));
  EXPECT_TRUE(allclose(model(ids, Tensor(), zeros({2, 6}, {DType::int64, reference})), expected, 1e-6, 1e-7));
  EXPECT_THROW(model(randint(1, 50, {2, 13}, {.device = reference})), ShapeError);
  EXPECT_THROW(model(ids, mask), ShapeError);
}

TEST(Models, BertTakesPublishedWeights) {
  const models::Model model = models::get_model("bert_base", small_bert());
  const StateDict today = model.state_dict();
  EXPECT_EQ(model.spec().published(today).size(), today.size());
  StateDict pretraining;  // as bert-base-uncased has them
  StateDict encoder;      // as sentence-transformers write them
  for (const auto& [name, tensor] : today) {
    const std::size_t norm = name.find("LayerNorm.");
    const std::string kind = name.ends_with("weight") ? "gamma" : "beta";
    if (name.starts_with("classifier.")) continue;
    pretraining.insert(norm == std::string::npos ? name : name.substr(0, norm) + "LayerNorm." + kind, tensor);
    encoder.insert(name.substr(std::string_view("bert.").size()), tensor);
  }
  pretraining.insert("cls.predictions.bias", zeros({50}, {DType::float32, reference}));
  pretraining.insert("bert.embeddings.position_ids", zeros({1, 12}, {DType::int64, reference}));
  encoder.insert("embeddings.position_ids", zeros({1, 12}, {DType::int64, reference}));
  EXPECT_FALSE(pretraining.contains("bert.embeddings.LayerNorm.weight"));
  for (const StateDict& theirs : {pretraining, encoder}) {
    const StateDict ours = model.spec().published(theirs);
    EXPECT_EQ(ours.size() + 2, today.size());
    for (const auto& [name, tensor] : ours) EXPECT_EQ(tensor.sizes(), today.at(name).sizes()) << name;
  }
}

TEST(Models, MaskedWordsShareTheirWeight) {
  models::Model model = models::get_model("bert_base_mlm", small_bert());
  EXPECT_EQ(model.num_classes(), 50);
  const StateDict state = model.state_dict();
  const Tensor& words = state.at("bert.embeddings.word_embeddings.weight");
  words.fill_(0.25);
  EXPECT_TRUE(equal(state.at("cls.predictions.decoder.weight"), words));
  const auto parameters = model.named_parameters();
  EXPECT_EQ(parameters.size() + 2, state.size());  // a weight and a bias that have two names
  const Tensor ids = Tensor::from<std::int64_t>({5, 6, 7, 8, 9, 0}, {2, 3}, reference);
  cross_entropy(model.forward(ids).flatten(0, 1), ids.flatten()).backward();
  for (const auto& [path, parameter] : parameters) EXPECT_TRUE(parameter.grad().defined()) << path;
  const auto copy = nn::clone(model);
  EXPECT_EQ(copy.named_parameters().size(), parameters.size());
  const StateDict copied = copy.state_dict();
  copied.at("cls.predictions.bias").fill_(2);
  EXPECT_TRUE(equal(copied.at("cls.predictions.decoder.bias"), copied.at("cls.predictions.bias")));
  EXPECT_FALSE(equal(state.at("cls.predictions.bias"), copied.at("cls.predictions.bias")));
}

TEST(Models, MaskedWordsTakePublishedWeights) {
  models::Model model = models::get_model("bert_base_mlm", small_bert());
  const StateDict today = model.state_dict();
  StateDict untied;  // as safetensors have them
  StateDict early;   // as bert-base-uncased has them
  for (const auto& [name, tensor] : today) {
    if (!name.starts_with("cls.predictions.decoder.")) untied.insert(name, tensor);
    if (name != "cls.predictions.decoder.bias") early.insert(name, tensor);
  }
  early.insert("bert.pooler.dense.weight", zeros({16, 16}, {DType::float32, reference}));
  early.insert("cls.seq_relationship.bias", zeros({2}, {DType::float32, reference}));
  early.insert("bert.embeddings.position_ids", zeros({1, 12}, {DType::int64, reference}));
  for (const StateDict& theirs : {today, untied, early}) {
    const StateDict ours = model.spec().published(theirs);
    EXPECT_EQ(ours.size(), today.size());
    EXPECT_NO_THROW(model.load_state_dict(ours));
  }
}

TEST(Models, TheLossOfMaskedWordsIsThatOfTheirs) {
  const Tensor logits = randn({2, 3, 5}, {.device = reference});
  const Tensor target = Tensor::from<std::int64_t>({-100, 4, -100, 2, -100, -100}, {2, 3}, reference);
  const Tensor rows = cat({logits.select(0, 0).narrow(0, 1, 1), logits.select(0, 1).narrow(0, 0, 1)}, 0);
  const Tensor expected = cross_entropy(rows, Tensor::from<std::int64_t>({4, 2}, {2}, reference));
  EXPECT_TRUE(allclose(train::loss_of(train::Objective::masked_tokens, logits, target), expected));
}

TEST(Models, ABatchGivesItsFieldsByName) {
  models::Model model = models::get_model("bert_base", small_bert());
  model.eval();
  const Tensor ids = Tensor::from<std::int64_t>({5, 6, 7, 8, 0, 0}, {2, 3}, reference);
  const Tensor mask = Tensor::from<std::int64_t>({1, 1, 1, 1, 0, 0}, {2, 3}, reference);
  const NoGrad no_grad;
  const auto expected = model(ids, mask).to_vector<float>();
  EXPECT_EQ(train::forward(model, {ids, {}, {{"attention_mask", mask}, {"other", ids}}}).to_vector<float>(), expected);
  EXPECT_NE(train::forward(model, {ids, {}}).to_vector<float>(), expected);
}

TEST(Models, AFrozenEncoderKeepsNoActivations) {
  train::Workload workload = train::benchmark_workload("bert_base");
  workload.options = small_bert();
  workload.options.config["num_hidden_layers"] = 8;
  workload.input = data::Field{DType::int64, {12}};
  workload.attention_mask = true;
  const auto bytes_a_sample = [&] {
    const auto peak = [&](std::int64_t batch) {
      workload.batch = batch;
      return static_cast<double>(train::forecast(workload, Device(), train::Phase::train).peak_bytes);
    };
    return (peak(128) - peak(64)) / 64;
  };
  const double whole = bytes_a_sample();
  workload.freeze_encoder = true;
  EXPECT_LT(bytes_a_sample(), whole / 4);
}

TEST(Models, AFrozenEncoderIsNotTrained) {
  models::Model model = models::get_model("bert_base", small_bert());
  const auto trained = train::freeze_encoder(model);
  EXPECT_EQ(trained.size(), 2U);
  sum(model.forward(Tensor::from<std::int64_t>({5, 6}, {1, 2}, reference))).backward();
  for (const auto& [name, parameter] : model.named_parameters()) {
    EXPECT_EQ(parameter.grad().defined(), name.starts_with("classifier.")) << name;
  }
  models::Model images = models::get_model("resnet18_cifar");
  EXPECT_EQ(train::freeze_encoder(images).size(), 2U);
}

TEST(Models, TypesAndOptions) {
  models::Model model =
      models::get_model("lenet5", {.num_classes = 4, .image_size = 32, .device = reference, .dtype = DType::float64});
  EXPECT_EQ(model.state_dict().at("c.0.weight").sizes(), (Shape{120, 576}));
  EXPECT_EQ(model(randn({1, 1, 32, 32}, {DType::float64, reference})).sizes(), (Shape{1, 4}));
}

TEST(Models, WidthScalesHiddenLayers) {
  const auto sizes = [](const char* name, const char* weight) {
    const models::Model model = models::get_model(name, {.width = 0.125, .device = null});
    return model.state_dict().at(weight).sizes();
  };
  EXPECT_EQ(sizes("mlp", "fc2.weight"), (Shape{32, 64}));
  EXPECT_EQ(sizes("lenet5", "f.3.weight"), (Shape{2, 1, 5, 5}));
  EXPECT_EQ(sizes("lenet5", "c.2.weight"), (Shape{11, 15}));
  EXPECT_EQ(sizes("resnet18_cifar", "conv1.weight"), (Shape{8, 3, 3, 3}));
  EXPECT_EQ(sizes("resnet18", "layer4.1.conv2.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(sizes("resnet50", "fc.weight"), (Shape{1000, 256}));
  EXPECT_EQ(sizes("alexnet", "classifier.1.weight"), (Shape{512, 1152}));
  EXPECT_EQ(sizes("vgg16", "features.28.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_EQ(sizes("efficientnet_b0", "features.8.0.weight"), (Shape{160, 40, 1, 1}));
  EXPECT_EQ(sizes("efficientnet_b4", "features.8.0.weight"), (Shape{224, 56, 1, 1}));
  EXPECT_EQ(sizes("convmixer_768_32", "blocks.31.0.fn.0.weight"), (Shape{96, 1, 7, 7}));
  EXPECT_EQ(sizes("simclr_resnet18", "projection.2.weight"), (Shape{128, 64}));
  EXPECT_EQ(sizes("vit_b_16", "conv_proj.weight"), (Shape{96, 3, 16, 16}));
  EXPECT_EQ(sizes("bert_base", "bert.encoder.layer.0.intermediate.dense.weight"), (Shape{384, 96}));
}

TEST(Models, ErrorsSpeak) {
  const auto message_of = [](std::string_view name, const models::ModelOptions& options) -> std::string {
    try {
      models::get_model(name, options);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of("resnet19", {}),
            "there is no model \"resnet19\"; the models are alexnet, bert_base, bert_base_mlm, convmixer_768_32, "
            "efficientnet_b0, "
            "efficientnet_b4, lenet5, mlp, resnet18, resnet18_cifar, resnet50, simclr_resnet18, vgg16, vit_b_16");
  EXPECT_NE(message_of("mlp", {.num_classes = 0}), "");
  EXPECT_NE(message_of("mlp", {.dropout = 2}), "");
  EXPECT_NE(message_of("mlp", {.width = 0}), "");
  EXPECT_NE(message_of("lenet5", {.image_size = 8}), "");
  EXPECT_NE(message_of("vit_b_16", {.image_size = 100}), "");
  EXPECT_NE(message_of("bert_base", {.image_size = 28}), "");
  EXPECT_EQ(message_of("mlp", {.config = {{"vocab_size", 3}}}),
            "mlp: its configuration has no \"vocab_size\"; it has: nothing");
  EXPECT_NE(message_of("bert_base", {.config = {{"vocab", 3}}}).find("vocab_size, hidden_size"), std::string::npos);
}

}  // namespace
}  // namespace russet
