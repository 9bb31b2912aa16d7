// Recurrent layers, their cells and transformers against PyTorch: results, and the gradients of all parameters and
// inputs (scripts/golden/sequences.py has the same cases).
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/operators.h>

#include <map>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;
namespace nn = russet::nn;
using Tensors = std::vector<Tensor>;

constexpr std::uint64_t first_input = 1000, first_cotangent = 2000, first_mask = 3000;
constexpr std::int64_t input_size = 3, hidden_size = 4, width = 8, heads = 2;

const Json& file() {
  static const Json json = read_json("sequences.json.gz");
  return json;
}
std::uint64_t seed() { return file().at("seed"); }

/// A record as it is run: the module, once it is made, holds the record's weights.
struct Run {
  const Json& record;
  DType dtype;
  Tensors inputs{};
  std::map<std::string, Tensor> parameters{};

  template <class T>
  T option(const char* name, T otherwise) const {
    return record.at("options").value(name, otherwise);
  }
  bool batch_first() const { return option("batch_first", false); }
  Tensor input(std::size_t i) const { return i < inputs.size() ? inputs[i] : Tensor(); }

  void make_inputs() {
    for (const Json& shape : record.at("inputs")) {
      inputs.push_back(real(seed(), first_input + inputs.size(), shape_of(shape), -1, 1, dtype).requires_grad_());
    }
  }
  template <class M>
  M loaded(M module) {
    russet::StateDict state;
    std::uint64_t offset = 0;
    for (const Json& entry : record.at("state")) {
      state.insert(entry[0], real(seed(), offset++, shape_of(entry[1]), -1, 1, dtype));
    }
    module.load_state_dict(state);
    for (const auto& [name, parameter] : module.named_parameters()) parameters[name] = parameter;
    return module;
  }
};

template <class Module, class State>
Tensors recurrent(const Run& run, Module module, const State& state, auto&& last_of) {
  if (run.record.at("lengths").is_null()) {
    const auto result = module(run.inputs[0], state);
    Tensors all = last_of(result);
    all.insert(all.begin(), result.output);
    return all;
  }
  const auto lengths = run.record.at("lengths").get<std::vector<std::int64_t>>();
  const bool is_sorted = std::is_sorted(lengths.rbegin(), lengths.rend());
  const auto result = module(nn::pack_padded_sequence(run.inputs[0], lengths, run.batch_first(), is_sorted), state);
  const nn::PaddedSequence padded =
      nn::pad_packed_sequence(result.output, {.batch_first = run.batch_first(), .padding_value = 0.5});
  EXPECT_EQ(padded.lengths, lengths);
  Tensors all = last_of(result);
  all.insert(all.begin(), {result.output.data, padded.output});
  return all;
}

const auto last_state = [](const auto& result) { return Tensors{result.h_n}; };
const auto last_states = [](const auto& result) { return Tensors{result.h_n, result.c_n}; };

nn::RNNNonlinearity nonlinearity_of(const Run& run) {
  return run.option<std::string>("nonlinearity", "tanh") == "relu" ? nn::RNNNonlinearity::relu
                                                                   : nn::RNNNonlinearity::tanh;
}

Tensors rnn(Run& run) {
  const nn::RNNOptions options{.num_layers = run.option<std::int64_t>("num_layers", 1),
                               .nonlinearity = nonlinearity_of(run),
                               .bias = run.option("bias", true),
                               .batch_first = run.batch_first(),
                               .bidirectional = run.option("bidirectional", false)};
  return recurrent(run, run.loaded(nn::RNN(input_size, hidden_size, options)), run.input(1), last_state);
}

Tensors gru(Run& run) {
  const nn::GRUOptions options{.num_layers = run.option<std::int64_t>("num_layers", 1),
                               .bias = run.option("bias", true),
                               .batch_first = run.batch_first(),
                               .bidirectional = run.option("bidirectional", false)};
  return recurrent(run, run.loaded(nn::GRU(input_size, hidden_size, options)), run.input(1), last_state);
}

Tensors lstm(Run& run) {
  const nn::LSTMOptions options{.num_layers = run.option<std::int64_t>("num_layers", 1),
                                .bias = run.option("bias", true),
                                .batch_first = run.batch_first(),
                                .bidirectional = run.option("bidirectional", false),
                                .proj_size = run.option<std::int64_t>("proj_size", 0)};
  return recurrent(run, run.loaded(nn::LSTM(input_size, hidden_size, options)),
                   nn::LSTMState{run.input(1), run.input(2)}, last_states);
}

Tensors rnn_cell(Run& run) {
  return {run.loaded(nn::RNNCell(input_size, hidden_size, run.option("bias", true), nonlinearity_of(run)))(
      run.inputs[0], run.input(1))};
}
Tensors gru_cell(Run& run) {
  return {run.loaded(nn::GRUCell(input_size, hidden_size, run.option("bias", true)))(run.inputs[0], run.input(1))};
}
Tensors lstm_cell(Run& run) {
  const nn::LSTMState state = run.loaded(nn::LSTMCell(input_size, hidden_size, run.option("bias", true)))(
      run.inputs[0], {run.input(1), run.input(2)});
  return {state.h, state.c};
}

nn::TransformerLayerOptions layer_options(const Run& run) {
  const bool is_gelu = run.option<std::string>("activation", "relu") == "gelu";
  return {.dim_feedforward = 10,
          .dropout = 0,
          .activation = is_gelu ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
          .batch_first = run.batch_first(),
          .norm_first = run.option("norm_first", false),
          .bias = run.option("bias", true)};
}

nn::LayerNorm last_norm(const Run& run) { return nn::LayerNorm(width, {.bias = run.option("bias", true)}); }

/// The masks of a side: 0 is the source's, 1 the target's, 2 the memory's. `length` queries look at `keys` keys.
nn::AttentionMasks masks_of(const Run& run, std::size_t side, std::int64_t length, std::int64_t keys) {
  const Json& spec = run.record.at("masks")[side];
  nn::AttentionMasks masks;
  if (spec.contains("padding")) {
    const auto lengths = spec["padding"].get<std::vector<std::int64_t>>();
    masks.key_padding_mask =
        russet::arange(keys) >= Tensor::from(lengths, {static_cast<std::int64_t>(lengths.size()), 1});
  }
  const std::string kind = spec.value("attention", "");
  masks.is_causal = kind == "causal";
  if (kind == "number") masks.attn_mask = real(seed(), first_mask + side, {length, keys}, -1, 1, run.dtype);
  if (kind == "boolean") {
    masks.attn_mask = boolean(seed(), first_mask + side, {length, keys});
    masks.attn_mask.narrow(1, 0, 1).zero_();
  }
  return masks;
}

std::int64_t length_of(const Run& run, const Tensor& x) { return x.size(x.dim() == 3 && run.batch_first() ? 1 : 0); }

Tensors encoder(Run& run) {
  const Tensor& x = run.inputs[0];
  const std::int64_t length = length_of(run, x);
  const nn::TransformerEncoderLayer layer(width, heads, layer_options(run));
  return {run.loaded(nn::TransformerEncoder(layer, 2, last_norm(run)))(x, masks_of(run, 0, length, length))};
}

Tensors decoder(Run& run) {
  const Tensor& memory = run.inputs[0];
  const Tensor& x = run.inputs[1];
  const std::int64_t length = length_of(run, x);
  const nn::TransformerDecoderLayer layer(width, heads, layer_options(run));
  return {run.loaded(nn::TransformerDecoder(layer, 2, last_norm(run)))(
      x, memory, masks_of(run, 1, length, length), masks_of(run, 2, length, length_of(run, memory)))};
}

Tensors transformer(Run& run) {
  const std::int64_t source = length_of(run, run.inputs[0]);
  const std::int64_t target = length_of(run, run.inputs[1]);
  nn::Transformer module = run.loaded(nn::Transformer({.d_model = width,
                                                       .num_heads = heads,
                                                       .num_encoder_layers = 1,
                                                       .num_decoder_layers = 2,
                                                       .layer = layer_options(run)}));
  return {
      module(run.inputs[0], run.inputs[1],
             {masks_of(run, 0, source, source), masks_of(run, 1, target, target), masks_of(run, 2, target, source)})};
}

const std::map<std::string, Tensors (*)(Run&)>& modules() {
  static const std::map<std::string, Tensors (*)(Run&)> all{{"RNN", rnn},
                                                            {"GRU", gru},
                                                            {"LSTM", lstm},
                                                            {"RNNCell", rnn_cell},
                                                            {"GRUCell", gru_cell},
                                                            {"LSTMCell", lstm_cell},
                                                            {"TransformerEncoder", encoder},
                                                            {"TransformerDecoder", decoder},
                                                            {"Transformer", transformer}};
  return all;
}

void compare(const Json& record, DType dtype, double tolerance) {
  const nn::NewModules place({}, dtype);
  Run run{record, dtype};
  run.make_inputs();
  const Tensors results = modules().at(record.at("module"))(run);
  ASSERT_EQ(results.size(), record.at("results").size());
  Tensor total;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Json& expected = record.at("results")[i];
    ASSERT_EQ(results[i].sizes(), shape_of(expected[0])) << "result " << i;
    EXPECT_EQ(difference(results[i].to_vector<double>(), numbers(expected[1]), tolerance), "") << "result " << i;
    const Tensor part = sum(results[i] * real(seed(), first_cotangent + i, results[i].sizes(), -1, 1, dtype));
    total = total.defined() ? total + part : part;
  }
  total.backward();
  ASSERT_EQ(run.parameters.size(), record.at("gradients").size());
  for (const Json& entry : record.at("gradients")) {
    const Tensor gradient = run.parameters.at(entry[0]).grad();
    ASSERT_TRUE(gradient.defined()) << entry[0];
    // A key's bias has a gradient of zero but for rounding.
    EXPECT_EQ(difference(gradient.to_vector<double>(), numbers(entry[1]), tolerance, 1), "") << entry[0];
  }
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const std::vector<double> gradient = run.inputs[i].grad().to_vector<double>();
    EXPECT_EQ(difference(gradient, numbers(record.at("input_gradients")[i]), tolerance), "") << "input " << i;
  }
}

class Sequences : public testing::TestWithParam<std::size_t> {};

TEST_P(Sequences, InFloat64) { compare(file().at("records")[GetParam()], DType::float64, 1e-10); }
TEST_P(Sequences, InFloat32) { compare(file().at("records")[GetParam()], DType::float32, 1e-5); }

INSTANTIATE_TEST_SUITE_P(All, Sequences, testing::Range(std::size_t{0}, file().at("records").size()),
                         [](const auto& info) {
                           return file().at("records")[info.param].at("module").template get<std::string>() + "_" +
                                  std::to_string(info.param);
                         });

}  // namespace
}  // namespace golden
