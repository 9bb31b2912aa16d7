// Recurrent layers. The products of all inputs with their weights are one product; what follows step by step is the
// product with the state and the gates. Packed sequences run padded, with states that stay as they are behind a
// sequence's end: lengths are values then, and batches of other lengths are steps of the same form.
#include <fmt/format.h>
#include <russet/custom_function.h>
#include <russet/functional.h>
#include <russet/nn/recurrent.h>
#include <russet/nn_functional.h>

#include <algorithm>

#include "new_parameters.h"

namespace russet::nn {
namespace {

std::int64_t gates_of(RecurrentKind kind) {
  switch (kind) {
    case RecurrentKind::lstm: return 4;
    case RecurrentKind::gru: return 3;
    case RecurrentKind::rnn_tanh:
    case RecurrentKind::rnn_relu: break;
  }
  return 1;
}

/// The time steps of x. Their gradients are put together at once, not each added to a tensor of all steps.
struct TimeSteps : autograd::Function<TimeSteps> {
  static autograd::variable_list forward(autograd::AutogradContext*, const Tensor& x) {
    autograd::variable_list steps;
    for (const Tensor& step : unbind(x)) steps.push_back(step.clone());
    return steps;
  }
  static autograd::variable_list backward(autograd::AutogradContext*, const autograd::variable_list& gradients) {
    return {stack(gradients)};
  }
};

LSTMState lstm_step(const Tensor& gates, const LSTMState& before, const Tensor& projection) {
  const std::vector<Tensor> gate = chunk(gates, 4, -1);
  const Tensor c = sigmoid(gate[1]) * before.c + sigmoid(gate[0]) * tanh(gate[2]);
  const Tensor h = sigmoid(gate[3]) * tanh(c);
  return {projection.defined() ? linear(h, projection) : h, c};
}

Tensor gru_step(const Tensor& from_input, const Tensor& from_state, const Tensor& before) {
  const std::vector<Tensor> x = chunk(from_input, 3, -1);
  const std::vector<Tensor> h = chunk(from_state, 3, -1);
  const Tensor reset = sigmoid(x[0] + h[0]);
  const Tensor update = sigmoid(x[1] + h[1]);
  const Tensor candidate = tanh(x[2] + reset * h[2]);
  return candidate + update * (before - candidate);
}

/// One layer in one direction.
struct Recurrence {
  RecurrentKind kind;
  const RecurrentWeights& weights;

  // A GRU multiplies a part of what comes from the state, bias included, so its biases stay apart.
  bool keeps_biases_apart() const { return kind == RecurrentKind::gru; }

  /// The part of the gates that comes from the input, of all rows at once.
  Tensor from_input(const Tensor& rows) const {
    const bool join = weights.bias_ih.defined() && !keeps_biases_apart();
    const Tensor bias = join ? weights.bias_ih + weights.bias_hh : Tensor(weights.bias_ih);
    return linear(rows, weights.weight_ih, bias);
  }

  LSTMState step(const Tensor& from_input, const LSTMState& before) const {
    const Tensor bias = keeps_biases_apart() ? Tensor(weights.bias_hh) : Tensor();
    const Tensor from_state = linear(before.h, weights.weight_hh, bias);
    switch (kind) {
      case RecurrentKind::gru: return {gru_step(from_input, from_state, before.h), {}};
      case RecurrentKind::lstm: return lstm_step(from_state + from_input, before, weights.weight_hr);
      case RecurrentKind::rnn_relu: return {relu(from_state + from_input), {}};
      case RecurrentKind::rnn_tanh: break;
    }
    return {tanh(from_state + from_input), {}};
  }

  /// The outputs [l, n, width] of x: [l, n, input], and the last state. active: [l, n, 1], false behind the ends of
  /// sequences; undefined if all have the same length.
  std::pair<Tensor, LSTMState> over(const Tensor& x, const LSTMState& start, const Tensor& active, bool reverse) const {
    const std::int64_t length = x.size(0);
    const Tensor gates = from_input(x.reshape({length * x.size(1), x.size(2)}));
    const std::vector<Tensor> inputs = TimeSteps::apply(gates.reshape({length, x.size(1), gates.size(1)}));
    std::vector<Tensor> outputs(inputs.size());
    LSTMState state = start;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t at = reverse ? length - 1 - i : i;
      const auto place = static_cast<std::size_t>(at);
      LSTMState next = step(inputs[place], state);
      if (active.defined()) {
        const Tensor counts = active.select(0, at);
        next.h = where(counts, next.h, state.h);
        if (next.c.defined()) next.c = where(counts, next.c, state.c);
      }
      state = next;
      outputs[place] = state.h;
    }
    return {stack(outputs), state};
  }
};

RecurrentWeights new_weights(RecurrentKind kind, std::int64_t input, std::int64_t hidden, bool bias,
                             std::int64_t projected) {
  const double bound = default_bound(hidden);
  const std::int64_t rows = gates_of(kind) * hidden;
  RecurrentWeights made;
  made.weight_ih = new_uniform({rows, input}, bound);
  made.weight_hh = new_uniform({rows, projected > 0 ? projected : hidden}, bound);
  if (bias) {
    made.bias_ih = new_uniform({rows}, bound);
    made.bias_hh = new_uniform({rows}, bound);
  }
  if (projected > 0) made.weight_hr = new_uniform({projected, hidden}, bound);
  return made;
}

void check_sizes(const char* name, std::int64_t input_size, std::int64_t hidden_size) {
  if (input_size < 1) throw ValueError(fmt::format("{}: input_size is above 0, not {}", name, input_size));
  if (hidden_size < 1) throw ValueError(fmt::format("{}: hidden_size is above 0, not {}", name, hidden_size));
}

void check_state(const char* name, const char* part, const Tensor& state, const Shape& expected) {
  if (state.sizes() == expected) return;
  throw ShapeError(fmt::format("{}: {} has the shape {} where {} is needed", name, part, to_string(state.sizes()),
                               to_string(expected)));
}

TensorOptions like(const Tensor& x) { return {x.dtype(), x.device()}; }

/// [l, n, 1]: whether time step i belongs to sequence j; undefined if all do.
Tensor active_steps(const std::vector<std::int64_t>& lengths, std::int64_t length, Device device) {
  const auto is_whole = [&](std::int64_t own) { return own == length; };
  if (std::all_of(lengths.begin(), lengths.end(), is_whole)) return {};
  const Tensor ends = Tensor::from(lengths, {1, static_cast<std::int64_t>(lengths.size()), 1}, device);
  return lt(arange(length, {.device = device}).reshape({length, 1, 1}), ends);
}

}  // namespace

struct RecurrentLayers::Layered {
  Tensor output;
  LSTMState last;
};

RecurrentLayers::RecurrentLayers(const char* name, std::int64_t input_size, std::int64_t hidden_size,
                                 const Options& options)
    : name_(name), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  check_sizes(name, input_size, hidden_size);
  if (options.num_layers < 1)
    throw ValueError(fmt::format("{}: num_layers is above 0, not {}", name, options.num_layers));
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw ValueError(fmt::format("{}: dropout is a probability in [0, 1], not {}", name, options.dropout));
  }
  if (options.proj_size < 0 || options.proj_size >= hidden_size) {
    throw ValueError(fmt::format("{}: proj_size is from 0 (none) to hidden_size - 1, not {} beside a hidden_size of {}",
                                 name, options.proj_size, hidden_size));
  }
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t input = layer == 0 ? input_size : width() * directions();
    for (std::int64_t direction = 0; direction < directions(); ++direction) {
      RecurrentWeights made = new_weights(options.kind, input, hidden_size, options.bias, options.proj_size);
      const std::string end = fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "");
      made.weight_ih = register_parameter("weight_ih" + end, made.weight_ih);
      made.weight_hh = register_parameter("weight_hh" + end, made.weight_hh);
      if (options.bias) {
        made.bias_ih = register_parameter("bias_ih" + end, made.bias_ih);
        made.bias_hh = register_parameter("bias_hh" + end, made.bias_hh);
      }
      if (options.proj_size > 0) made.weight_hr = register_parameter("weight_hr" + end, made.weight_hr);
      weights_.push_back(made);
    }
  }
}

const RecurrentWeights& RecurrentLayers::weights(std::int64_t layer, bool reverse) const {
  if (layer < 0 || layer >= options_.num_layers || (reverse && !options_.bidirectional)) {
    throw IndexError(fmt::format("{}: there is no {}layer {} among {}", name_, reverse ? "reverse " : "", layer,
                                 options_.num_layers));
  }
  return weights_[static_cast<std::size_t>(layer * directions() + (reverse ? 1 : 0))];
}

void RecurrentLayers::check_width(const Tensor& x) const {
  if (x.size(-1) == input_size_) return;
  throw ShapeError(fmt::format("{}: the input's last dimension is input_size, {}; the input is {}", name_, input_size_,
                               to_string(x.sizes())));
}

// The state with a batch axis, zeros if it is not given. x: [l, n, input].
LSTMState RecurrentLayers::checked_state(const LSTMState& start, const Tensor& x, bool is_batched) const {
  const auto part = [&](const char* name, const Tensor& given, std::int64_t width) {
    const Shape sizes{options_.num_layers * directions(), x.size(1), width};
    if (!given.defined()) return zeros(sizes, like(x));
    check_state(name_, name, given, is_batched ? sizes : Shape{sizes[0], width});
    return is_batched ? given : given.unsqueeze(1);
  };
  if (options_.kind != RecurrentKind::lstm) return {part("hx", start.h, width()), {}};
  if (start.h.defined() != start.c.defined()) throw ValueError(fmt::format("{}: takes h and c, or neither", name_));
  return {part("h", start.h, width()), part("c", start.c, hidden_size_)};
}

RecurrentLayers::Layered RecurrentLayers::run_layers(const Tensor& x, const LSTMState& start, const Tensor& active) {
  if (x.size(0) == 0) throw ShapeError(fmt::format("{}: a sequence has one time step or more", name_));
  Tensor y = x;
  std::vector<Tensor> hidden;
  std::vector<Tensor> cells;
  for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (std::int64_t direction = 0; direction < directions(); ++direction) {
      const std::int64_t place = layer * directions() + direction;
      const Recurrence recurrence{options_.kind, weights_[static_cast<std::size_t>(place)]};
      const LSTMState first{start.h.select(0, place), start.c.defined() ? start.c.select(0, place) : Tensor()};
      const auto [output, last] = recurrence.over(y, first, active, direction == 1);
      outputs.push_back(output);
      hidden.push_back(last.h);
      cells.push_back(last.c);
    }
    y = outputs.size() == 1 ? outputs[0] : cat(outputs, 2);
    if (layer + 1 < options_.num_layers) y = dropout(y, options_.dropout, is_training());
  }
  return {y, {stack(hidden), start.c.defined() ? stack(cells) : Tensor()}};
}

LSTMResult<Tensor> RecurrentLayers::run(const Tensor& x, const LSTMState& start) {
  if (x.dim() != 2 && x.dim() != 3) {
    throw ShapeError(fmt::format("{}: takes two or three dimensions, not {}", name_, to_string(x.sizes())));
  }
  check_width(x);
  const bool is_batched = x.dim() == 3;
  const bool swap = is_batched && options_.batch_first;
  const Tensor steps = swap ? x.transpose(0, 1) : is_batched ? x : x.unsqueeze(1);
  const auto [y, last] = run_layers(steps, checked_state(start, steps, is_batched), {});
  if (is_batched) return {swap ? y.transpose(0, 1) : y, last.h, last.c};
  return {y.squeeze(1), last.h.squeeze(1), last.c.defined() ? last.c.squeeze(1) : Tensor()};
}

LSTMResult<PackedSequence> RecurrentLayers::run(const PackedSequence& x, const LSTMState& start) {
  if (x.data.dim() != 2) {
    throw ShapeError(fmt::format("{}: takes packed data of two dimensions, not {}", name_, to_string(x.data.sizes())));
  }
  check_width(x.data);
  const PaddedSequence padded = pad_packed_sequence(x);
  const LSTMState first = checked_state(start, padded.output, true);
  const Tensor active = active_steps(padded.lengths, padded.output.size(0), x.data.device());
  const auto [y, last] = run_layers(padded.output, first, active);
  PackedSequence output = pack_padded_sequence(y, padded.lengths, false, x.sorted_indices.empty());
  return {std::move(output), last.h, last.c};
}

LSTMResult<Tensor> RecurrentLayers::run_hooked(const Tensor& x, const LSTMState& start) {
  LSTMResult<Tensor> result;
  result.output = call({&x, 1}, [&](std::span<const Tensor> inputs) {
    result = run(inputs[0], start);
    return result.output;
  });
  return result;
}

Tensor RecurrentLayers::forward(const Tensor& x) { return run(x, {}).output; }

RecurrentResult<Tensor> SingleStateLayers::forward(const Tensor& x, const Tensor& hx) {
  const LSTMResult<Tensor> result = run(x, {hx, {}});
  return {result.output, result.h_n};
}

RecurrentResult<Tensor> SingleStateLayers::operator()(const Tensor& x, const Tensor& hx) {
  const LSTMResult<Tensor> result = run_hooked(x, {hx, {}});
  return {result.output, result.h_n};
}

RecurrentResult<PackedSequence> SingleStateLayers::operator()(const PackedSequence& x, const Tensor& hx) {
  LSTMResult<PackedSequence> result = run(x, {hx, {}});
  return {std::move(result.output), result.h_n};
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options)
    : SingleStateLayers(
          "RNN", input_size, hidden_size,
          {.kind = options.nonlinearity == RNNNonlinearity::relu ? RecurrentKind::rnn_relu : RecurrentKind::rnn_tanh,
           .num_layers = options.num_layers,
           .bias = options.bias,
           .batch_first = options.batch_first,
           .dropout = options.dropout,
           .bidirectional = options.bidirectional,
           .proj_size = 0}) {}

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options)
    : RecurrentLayers("LSTM", input_size, hidden_size,
                      {.kind = RecurrentKind::lstm,
                       .num_layers = options.num_layers,
                       .bias = options.bias,
                       .batch_first = options.batch_first,
                       .dropout = options.dropout,
                       .bidirectional = options.bidirectional,
                       .proj_size = options.proj_size}) {}

LSTMResult<Tensor> LSTM::forward(const Tensor& x, const LSTMState& hx) { return run(x, hx); }
LSTMResult<Tensor> LSTM::operator()(const Tensor& x, const LSTMState& hx) { return run_hooked(x, hx); }
LSTMResult<PackedSequence> LSTM::operator()(const PackedSequence& x, const LSTMState& hx) { return run(x, hx); }

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const GRUOptions& options)
    : SingleStateLayers("GRU", input_size, hidden_size,
                        {.kind = RecurrentKind::gru,
                         .num_layers = options.num_layers,
                         .bias = options.bias,
                         .batch_first = options.batch_first,
                         .dropout = options.dropout,
                         .bidirectional = options.bidirectional,
                         .proj_size = 0}) {}

RecurrentCell::RecurrentCell(const char* name, RecurrentKind kind, std::int64_t input_size, std::int64_t hidden_size,
                             bool bias)
    : name_(name), kind_(kind), input_size_(input_size), hidden_size_(hidden_size) {
  check_sizes(name, input_size, hidden_size);
  const RecurrentWeights made = new_weights(kind, input_size, hidden_size, bias, 0);
  weight_ih = register_parameter("weight_ih", made.weight_ih);
  weight_hh = register_parameter("weight_hh", made.weight_hh);
  bias_ih = register_parameter("bias_ih", made.bias_ih);
  bias_hh = register_parameter("bias_hh", made.bias_hh);
}

Tensor RecurrentCell::checked_state(const Tensor& state, const Tensor& x) const {
  const Shape sizes = x.dim() == 1 ? Shape{hidden_size_} : Shape{x.size(0), hidden_size_};
  if (!state.defined()) return zeros(sizes, like(x));
  check_state(name_, "the state", state, sizes);
  return state;
}

LSTMState RecurrentCell::step(const Tensor& x, const LSTMState& before) const {
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != input_size_) {
    throw ShapeError(
        fmt::format("{}: takes [n, {}] or [{}], not {}", name_, input_size_, input_size_, to_string(x.sizes())));
  }
  const bool is_lstm = kind_ == RecurrentKind::lstm;
  if (is_lstm && before.h.defined() != before.c.defined()) {
    throw ValueError(fmt::format("{}: takes h and c, or neither", name_));
  }
  const RecurrentWeights weights{weight_ih, weight_hh, bias_ih, bias_hh, {}};
  const Recurrence recurrence{kind_, weights};
  return recurrence.step(recurrence.from_input(x),
                         {checked_state(before.h, x), is_lstm ? checked_state(before.c, x) : Tensor()});
}

RNNCell::RNNCell(std::int64_t input_size, std::int64_t hidden_size, bool bias, RNNNonlinearity nonlinearity)
    : RecurrentCell("RNNCell",
                    nonlinearity == RNNNonlinearity::relu ? RecurrentKind::rnn_relu : RecurrentKind::rnn_tanh,
                    input_size, hidden_size, bias) {}

Tensor RNNCell::forward(const Tensor& x, const Tensor& hx) { return step(x, {hx, {}}).h; }
Tensor RNNCell::operator()(const Tensor& x, const Tensor& hx) {
  return call({&x, 1}, [&](std::span<const Tensor> inputs) { return forward(inputs[0], hx); });
}

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, bool bias)
    : RecurrentCell("LSTMCell", RecurrentKind::lstm, input_size, hidden_size, bias) {}

LSTMState LSTMCell::forward(const Tensor& x, const LSTMState& hx) { return step(x, hx); }
LSTMState LSTMCell::operator()(const Tensor& x, const LSTMState& hx) {
  LSTMState result;
  result.h = call({&x, 1}, [&](std::span<const Tensor> inputs) {
    result = forward(inputs[0], hx);
    return result.h;
  });
  return result;
}

GRUCell::GRUCell(std::int64_t input_size, std::int64_t hidden_size, bool bias)
    : RecurrentCell("GRUCell", RecurrentKind::gru, input_size, hidden_size, bias) {}

Tensor GRUCell::forward(const Tensor& x, const Tensor& hx) { return step(x, {hx, {}}).h; }
Tensor GRUCell::operator()(const Tensor& x, const Tensor& hx) {
  return call({&x, 1}, [&](std::span<const Tensor> inputs) { return forward(inputs[0], hx); });
}

}  // namespace russet::nn
