#pragma once
// Recurrent layers and cells, with PyTorch's names.
#include <russet/nn/module.h>
#include <russet/nn/packed_sequence.h>

namespace russet::nn {

enum class RNNNonlinearity : std::uint8_t { tanh, relu };

struct RNNOptions {
  std::int64_t num_layers = 1;
  RNNNonlinearity nonlinearity = RNNNonlinearity::tanh;
  bool bias = true;
  /// [n, l, ...] instead of [l, n, ...].
  bool batch_first = false;
  /// Of the outputs of all layers but the last.
  double dropout = 0;
  /// Each layer has a second half that runs from the end to the start.
  bool bidirectional = false;
};

struct LSTMOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  /// Above 0: the width to which each output is projected.
  std::int64_t proj_size = 0;
};

struct GRUOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

template <class Sequence>
struct RecurrentResult {
  /// The last layer's output at every time step, those of both directions side by side: [l, n, directions * width].
  Sequence output;
  /// The state of every layer and direction behind its last time step: [layers * directions, n, width].
  Tensor h_n;
};

template <class Sequence>
struct LSTMResult {
  Sequence output;
  Tensor h_n;
  Tensor c_n;
};

/// The state of an LSTM: [layers * directions, n, width] each, for a cell [n, width]. Zeros if undefined.
struct LSTMState {
  Tensor h;
  Tensor c;
};

enum class RecurrentKind : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };

/// The parameters of a layer in one direction. Gates lie one below the other: input, forget, cell, output (LSTM);
/// reset, update, new (GRU).
struct RecurrentWeights {
  Parameter weight_ih;  // [gates * hidden_size, input]
  Parameter weight_hh;  // [gates * hidden_size, width]
  Parameter bias_ih;    // [gates * hidden_size]; undefined without bias
  Parameter bias_hh;
  Parameter weight_hr;  // [proj_size, hidden_size]; undefined without projection
};

/// What RNN, LSTM and GRU share: layers of weights, named weight_ih_l0, weight_hh_l0_reverse, and so on.
/// Initial values: uniform within 1 / sqrt(hidden_size).
class RecurrentLayers : public Module {
 public:
  const RecurrentWeights& weights(std::int64_t layer, bool reverse = false) const;
  /// The output alone, from a state of zeros.
  Tensor forward(const Tensor& x) override;

 protected:
  struct Options {
    RecurrentKind kind;
    std::int64_t num_layers;
    bool bias;
    bool batch_first;
    double dropout;
    bool bidirectional;
    std::int64_t proj_size;
  };
  RecurrentLayers(const char* name, std::int64_t input_size, std::int64_t hidden_size, const Options& options);

  LSTMResult<Tensor> run(const Tensor& x, const LSTMState& start);
  LSTMResult<PackedSequence> run(const PackedSequence& x, const LSTMState& start);
  /// run(), with the hooks of the module around it.
  LSTMResult<Tensor> run_hooked(const Tensor& x, const LSTMState& start);

 private:
  struct Layered;
  Layered run_layers(const Tensor& x, const LSTMState& start, const Tensor& active);
  LSTMState checked_state(const LSTMState& start, const Tensor& x, bool is_batched) const;
  void check_width(const Tensor& x) const;
  std::int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  std::int64_t width() const { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }

  const char* name_;
  std::int64_t input_size_;
  std::int64_t hidden_size_;
  Options options_;
  std::vector<RecurrentWeights> weights_;
};

/// Layers whose state is one tensor.
class SingleStateLayers : public RecurrentLayers {
 public:
  using RecurrentLayers::forward;
  /// x: [l, n, input_size], [n, l, input_size] with batch_first, or [l, input_size]. hx: as RecurrentResult's h_n.
  RecurrentResult<Tensor> forward(const Tensor& x, const Tensor& hx);
  RecurrentResult<Tensor> operator()(const Tensor& x, const Tensor& hx = {});
  RecurrentResult<PackedSequence> operator()(const PackedSequence& x, const Tensor& hx = {});

 protected:
  using RecurrentLayers::RecurrentLayers;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it, over the time steps of sequences.
class RNN : public SingleStateLayers {
 public:
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options = {});
};

/// Long short-term memory (Hochreiter, Schmidhuber 1997), with projections if asked for (Sak et al. 2014).
class LSTM : public RecurrentLayers {
 public:
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options = {});
  using RecurrentLayers::forward;
  LSTMResult<Tensor> forward(const Tensor& x, const LSTMState& hx);
  LSTMResult<Tensor> operator()(const Tensor& x, const LSTMState& hx = {});
  LSTMResult<PackedSequence> operator()(const PackedSequence& x, const LSTMState& hx = {});
};

/// Gated recurrent units (Cho et al. 2014), in the form of PyTorch and cuDNN.
class GRU : public SingleStateLayers {
 public:
  GRU(std::int64_t input_size, std::int64_t hidden_size, const GRUOptions& options = {});
};

/// What the three cells share: one time step of one layer.
class RecurrentCell : public Module {
 public:
  Parameter weight_ih;  // as RecurrentWeights'
  Parameter weight_hh;
  Parameter bias_ih;
  Parameter bias_hh;

 protected:
  RecurrentCell(const char* name, RecurrentKind kind, std::int64_t input_size, std::int64_t hidden_size, bool bias);
  LSTMState step(const Tensor& x, const LSTMState& before) const;

 private:
  Tensor checked_state(const Tensor& state, const Tensor& x) const;

  const char* name_;
  RecurrentKind kind_;
  std::int64_t input_size_;
  std::int64_t hidden_size_;
};

class RNNCell : public RecurrentCell {
 public:
  RNNCell(std::int64_t input_size, std::int64_t hidden_size, bool bias = true,
          RNNNonlinearity nonlinearity = RNNNonlinearity::tanh);
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  /// x: [n, input_size] or [input_size]. hx: [n, hidden_size] or [hidden_size], zeros if undefined. Returns hx's shape.
  Tensor forward(const Tensor& x, const Tensor& hx);
  Tensor operator()(const Tensor& x, const Tensor& hx = {});
};

class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, bool bias = true);
  Tensor forward(const Tensor& x) override { return forward(x, {}).h; }
  LSTMState forward(const Tensor& x, const LSTMState& hx);
  LSTMState operator()(const Tensor& x, const LSTMState& hx = {});
};

class GRUCell : public RecurrentCell {
 public:
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, bool bias = true);
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  Tensor forward(const Tensor& x, const Tensor& hx);
  Tensor operator()(const Tensor& x, const Tensor& hx = {});
};

}  // namespace russet::nn
