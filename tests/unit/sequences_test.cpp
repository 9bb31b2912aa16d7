// Packed sequences, recurrent layers, the transformer's decoder and CTC: names, errors, corners. Values are held
// against PyTorch's in tests/golden.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/operators.h>

#include <array>
#include <cmath>

#include "unit/gradcheck.h"

namespace russet {
namespace {

constexpr Device device{DeviceType::reference};
using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

class SequenceModules : public ::testing::Test {
 protected:
  nn::NewModules place_{device};
};

Tensor integers(std::initializer_list<std::int64_t> values) {
  return Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}, device);
}

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters()) names.push_back(name);
  return names;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(SequenceModules, PackedAndPadded) {
  const Tensor x = Tensor::from<float>({1, 2, 0, 3, 0, 0, 4, 5, 6}, {3, 3}, device);
  const nn::PackedSequence packed = nn::pack_padded_sequence(x, {2, 1, 3}, true, false);
  EXPECT_EQ(packed.data.to_vector<float>(), (Floats{4, 1, 3, 5, 2, 6}));
  EXPECT_EQ(packed.batch_sizes, (Numbers{3, 2, 1}));
  EXPECT_EQ(packed.sorted_indices, (Numbers{2, 0, 1}));
  EXPECT_EQ(packed.unsorted_indices, (Numbers{1, 2, 0}));
  const nn::PaddedSequence padded = nn::pad_packed_sequence(packed, {.batch_first = true});
  EXPECT_TRUE(equal(padded.output, x));
  EXPECT_EQ(padded.lengths, (Numbers{2, 1, 3}));
  const nn::PaddedSequence longer = nn::pad_packed_sequence(packed, {.padding_value = -1, .total_length = 4});
  EXPECT_EQ(longer.output.to_vector<float>(), (Floats{1, 3, 4, 2, -1, 5, -1, -1, 6, -1, -1, -1}));
}

TEST_F(SequenceModules, PackedFromLists) {
  const std::vector<Tensor> sequences{ones({3, 2}, {.device = device}), zeros({1, 2}, {.device = device})};
  EXPECT_EQ(nn::pad_sequence(sequences).sizes(), (Shape{3, 2, 2}));
  EXPECT_EQ(nn::pad_sequence(sequences, true, 7).select(0, 1).to_vector<float>(), (Floats{0, 0, 7, 7, 7, 7}));
  const nn::PackedSequence packed = nn::pack_sequence(sequences);
  EXPECT_EQ(packed.data.to_vector<float>(), (Floats{1, 1, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(packed.lengths(), (Numbers{3, 1}));
  EXPECT_TRUE(packed.sorted_indices.empty());
  const Tensor lengths = integers({3, 1});
  EXPECT_TRUE(equal(nn::pack_padded_sequence(nn::pad_sequence(sequences), lengths).data, packed.data));
}

TEST_F(SequenceModules, PackedGradientsReachWhatIsNotPadding) {
  const Tensor x = ones({3, 2}, {.device = device, .requires_grad = true});
  const nn::PackedSequence packed = nn::pack_padded_sequence(x, {3, 1});
  sum(nn::pad_packed_sequence(packed).output * 2).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 2, 2, 0, 2, 0}));
}

TEST_F(SequenceModules, PackingRefuses) {
  const Tensor x = zeros({3, 2}, {.device = device});
  EXPECT_THROW(nn::pack_padded_sequence(x, {3}), ShapeError);
  EXPECT_THROW(nn::pack_padded_sequence(x, {3, 0}), ValueError);
  EXPECT_THROW(nn::pack_padded_sequence(x, {4, 1}), ValueError);
  EXPECT_THROW(nn::pack_padded_sequence(x.narrow(0, 0, 0), {1, 1}), ShapeError);
  EXPECT_THROW(nn::pack_padded_sequence(x.select(0, 0), {1, 1}), ShapeError);
  EXPECT_NE(message_of([&] { nn::pack_padded_sequence(x, {1, 3}); }).find("enforce_sorted"), std::string::npos);
  const nn::PackedSequence packed = nn::pack_padded_sequence(x, {3, 1});
  EXPECT_THROW(nn::pad_packed_sequence(packed, {.total_length = 2}), ValueError);
  EXPECT_THROW(nn::pad_sequence({}), ValueError);
}

TEST_F(SequenceModules, RecurrentNames) {
  const nn::LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  const std::vector<std::string> parts{"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"};
  std::vector<std::string> expected;
  for (const char* end : {"_l0", "_l0_reverse", "_l1", "_l1_reverse"}) {
    for (const std::string& part : parts) expected.push_back(part + end);
  }
  EXPECT_EQ(names_of(lstm), expected);
  EXPECT_EQ(lstm.weights(1, true).weight_ih.sizes(), (Shape{16, 4}));
  EXPECT_EQ(lstm.weights(0).weight_hh.sizes(), (Shape{16, 2}));
  EXPECT_EQ(lstm.weights(0).weight_hr.sizes(), (Shape{2, 4}));
  EXPECT_THROW(lstm.weights(2), IndexError);
  EXPECT_EQ(names_of(nn::GRU(3, 4, {.bias = false})), (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0"}));
  EXPECT_EQ(names_of(nn::GRUCell(3, 4)), (std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}));
  for (const Tensor& parameter : nn::RNN(3, 16).parameters()) EXPECT_LE(amax(abs(parameter)).item(), 0.25);
}

TEST_F(SequenceModules, LayersAreCells) {
  nn::GRU layer(3, 4);
  nn::GRUCell cell(3, 4);
  StateDict state;
  for (const auto& [name, tensor] : layer.state_dict()) state.insert(name.substr(0, name.size() - 3), tensor);
  cell.load_state_dict(state);
  const Tensor x = randn({2, 5, 3}, {.device = device});
  const Tensor first = cell(x.select(0, 0));
  const Tensor both[] = {first, cell(x.select(0, 1), first)};
  EXPECT_TRUE(allclose(layer(x).output, stack({both[0], both[1]})));
}

TEST_F(SequenceModules, RecurrentStates) {
  nn::LSTM lstm(3, 4, {.num_layers = 2});
  const Tensor x = randn({5, 2, 3}, {.device = device});
  const auto [output, h, c] = lstm(x);
  EXPECT_EQ(output.sizes(), (Shape{5, 2, 4}));
  EXPECT_EQ(h.sizes(), (Shape{2, 2, 4}));
  EXPECT_TRUE(equal(h.select(0, 1), output.select(0, 4)));
  // Going on from a state is as if there had been no break.
  const auto first = lstm(x.narrow(0, 0, 2));
  const auto second = lstm(x.narrow(0, 2, 3), {first.h_n, first.c_n});
  EXPECT_TRUE(allclose(second.output, output.narrow(0, 2, 3)));
  EXPECT_TRUE(allclose(second.c_n, c));
  // As one module among others it gives its output.
  EXPECT_TRUE(allclose(nn::Sequential(lstm, nn::ReLU())(x), relu(output)));
  // A copy is a handle, a clone has weights of its own.
  nn::LSTM cloned = nn::clone(lstm);
  nn::init::zeros_(cloned.weights(0).weight_ih);
  EXPECT_TRUE(equal(lstm(x).output, output));
  EXPECT_FALSE(equal(cloned(x).output, output));
}

TEST_F(SequenceModules, DropoutIsBetweenLayers) {
  const Tensor x = randn({5, 2, 3}, {.device = device});
  nn::GRU one(3, 4, {.dropout = 1});
  EXPECT_GT(amax(abs(one(x).output)).item(), 0);  // of the last layer nothing is dropped
  nn::GRU two(3, 4, {.num_layers = 2, .bias = false, .dropout = 1});
  EXPECT_EQ(amax(abs(two(x).output)).item(), 0);
  two.eval();
  EXPECT_GT(amax(abs(two(x).output)).item(), 0);
}

TEST_F(SequenceModules, HooksOfRecurrentLayers) {
  nn::RNN rnn(3, 4);
  const Tensor x = randn({5, 2, 3}, {.device = device});
  rnn.register_forward_hook([](nn::Module&, std::span<const Tensor>, const Tensor& output) { return output * 2; });
  const auto result = rnn(x);
  EXPECT_TRUE(equal(result.output.select(0, 4), result.h_n.select(0, 0) * 2));
}

TEST_F(SequenceModules, RecurrentRefuses) {
  EXPECT_THROW(nn::RNN(0, 4), ValueError);
  EXPECT_THROW(nn::RNN(3, 0), ValueError);
  EXPECT_THROW(nn::GRU(3, 4, {.num_layers = 0}), ValueError);
  EXPECT_THROW(nn::GRU(3, 4, {.dropout = 1.5}), ValueError);
  EXPECT_THROW(nn::LSTM(3, 4, {.proj_size = 4}), ValueError);
  EXPECT_THROW(nn::LSTM(3, 4, {.proj_size = -1}), ValueError);
  nn::LSTM lstm(3, 4);
  const auto zeros_of = [](const Shape& sizes) { return zeros(sizes, {.device = device}); };
  EXPECT_THROW(lstm(zeros_of({3})), ShapeError);
  EXPECT_THROW(lstm(zeros_of({5, 2, 4})), ShapeError);
  EXPECT_THROW(lstm(zeros_of({0, 2, 3})), ShapeError);
  EXPECT_THROW(lstm(zeros_of({5, 2, 3}), {zeros_of({1, 2, 4}), {}}), ValueError);
  EXPECT_THROW(lstm(zeros_of({5, 2, 3}), {zeros_of({1, 3, 4}), zeros_of({1, 2, 4})}), ShapeError);
  EXPECT_THROW(lstm(zeros_of({5, 2, 3}), {zeros_of({1, 4}), zeros_of({1, 4})}), ShapeError);
  EXPECT_THROW(lstm(zeros_of({5, 3}), {zeros_of({1, 1, 4}), zeros_of({1, 1, 4})}), ShapeError);
  EXPECT_THROW(lstm(nn::pack_padded_sequence(zeros_of({3, 2, 4}), {3, 1})), ShapeError);
  const std::string message = message_of([&] {
    lstm(zeros_of({5, 2, 3}), {zeros_of({1, 2, 4}), zeros_of({2, 2, 4})});
  });
  EXPECT_EQ(message, "LSTM: c has the shape [2, 2, 4] where [1, 2, 4] is needed");
  EXPECT_THROW(nn::GRUCell(3, 4)(zeros_of({2, 4})), ShapeError);
  EXPECT_THROW(nn::GRUCell(3, 4)(zeros_of({1, 2, 3})), ShapeError);
  EXPECT_THROW(nn::RNNCell(3, 4)(zeros_of({2, 3}), zeros_of({4})), ShapeError);
  EXPECT_THROW(nn::LSTMCell(3, 4)(zeros_of({2, 3}), {zeros_of({2, 4}), {}}), ValueError);
}

TEST_F(SequenceModules, Transformers) {
  nn::Transformer model({.d_model = 8, .num_heads = 2, .num_encoder_layers = 1, .num_decoder_layers = 1});
  EXPECT_EQ(names_of(model.decoder).size(), 4U + 4 + 4 + 6 + 2);
  const auto zeros_of = [](const Shape& sizes) { return zeros(sizes, {.device = device}); };
  EXPECT_EQ(model(zeros_of({5, 2, 8}), zeros_of({3, 2, 8})).sizes(), (Shape{3, 2, 8}));
  EXPECT_THROW(model(zeros_of({5, 2, 8}), zeros_of({3, 1, 8})), ShapeError);
  EXPECT_THROW(model(zeros_of({5, 2, 4}), zeros_of({3, 2, 8})), ShapeError);
  EXPECT_THROW(model(zeros_of({5, 8}), zeros_of({3, 2, 8})), ShapeError);
  EXPECT_THROW(nn::TransformerDecoder(nn::TransformerDecoderLayer(8, 2), 0), ValueError);
  EXPECT_THROW(nn::TransformerDecoderLayer(8, 3), ValueError);
  EXPECT_THROW(nn::TransformerDecoderLayer(8, 2, {.dropout = -1}), ValueError);
  const Tensor mask = nn::Transformer::generate_square_subsequent_mask(2, {.device = device});
  EXPECT_EQ(mask.to_vector<float>(), (Floats{0, -INFINITY, 0, 0}));
}

TEST_F(SequenceModules, CtcOfOneWalk) {
  // Two steps for two classes: there is one walk.
  const Tensor log_probs = log_softmax(randn({2, 1, 3}, {.device = device}), 2);
  const Tensor loss = nn::CTCLoss({.reduction = Reduction::sum})(log_probs, integers({1, 2}).reshape({1, 2}),
                                                                 integers({2}), integers({2}));
  const Tensor walk = log_probs.select(0, 0).select(1, 1) + log_probs.select(0, 1).select(1, 2);
  EXPECT_NEAR(loss.item(), -walk.item(), 1e-6);
}

TEST_F(SequenceModules, CtcIsASumOverWalks) {
  // Of the 27 sequences of three classes in three steps, these read as "1".
  const std::vector<std::array<std::size_t, 3>> walks{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {0, 1, 1}, {1, 1, 1}};
  const Tensor log_probs = log_softmax(randn({3, 1, 3}, {.device = device}), 2);
  const std::vector<double> p = exp(log_probs).to_vector<double>();
  double total = 0;
  for (const auto& [a, b, c] : walks) total += p[a] * p[3 + b] * p[6 + c];
  EXPECT_NEAR(ctc_loss(log_probs, integers({1}), integers({3}), integers({1})).item(), -std::log(total), 1e-5);
}

TEST_F(SequenceModules, CtcGradientsAreThoseOfLogits) {
  // The second sample is shorter than the batch; the first target repeats a class.
  const Tensor targets = integers({1, 1, 2, 0}).reshape({2, 2});
  const Tensor lengths = integers({4, 3});
  const auto loss = [&](const auto& x) {
    return ctc_loss(log_softmax(x[0], 2), targets, lengths, integers({2, 1}), 0, Reduction::none);
  };
  test::expect_gradients(loss, {test::scattered_tensor({4, 2, 3})});
}

TEST_F(SequenceModules, RecurrentGradientsCanBeDifferentiated) {
  const nn::NewModules place(device, DType::float64);
  nn::GRU layer(2, 3, {.bidirectional = true});
  const auto run = [&](const auto& x) {
    return nn::pad_packed_sequence(layer(nn::pack_padded_sequence(x[0], {3, 2})).output).output;
  };
  test::expect_gradients(run, {test::scattered_tensor({3, 2, 2})});
}

TEST_F(SequenceModules, CtcChecksClasses) {
  const Tensor log_probs = log_softmax(randn({3, 1, 3}, {.device = device}), 2);
  EXPECT_THROW(ctc_loss(log_probs, integers({3}), integers({3}), integers({1})).item(), IndexError);
}

}  // namespace
}  // namespace russet
