// Random functions: every call starts from one seed, so the numbers are the same on every device. And the few functions
// that have no golden values for another reason.
#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

/// A generator that starts anew with each call; good for one use.
Generator* fresh() {
  static thread_local Generator generator;
  generator.manual_seed(Call::seed);
  return &generator;
}

template <class F>
Results filled(const Call& c, F fill) {
  const Tensor x = c.tensor(0).clone();
  fill(x);
  return {x};
}

TensorOptions float32_on(const Call& c) { return {DType::float32, c.device()}; }

void add_new(Functions& table) {
  table["rand"] = [](const Call& c) -> Results { return {rand(c.dims(0), float32_on(c), fresh())}; };
  table["randn"] = [](const Call& c) -> Results { return {randn(c.dims(0), float32_on(c), fresh())}; };
  table["rand_like"] = [](const Call& c) -> Results { return {rand_like(c.tensor(0), {}, fresh())}; };
  table["randn_like"] = [](const Call& c) -> Results { return {randn_like(c.tensor(0), {}, fresh())}; };
  table["normal"] = [](const Call& c) -> Results {
    return {normal(c.real(0), c.real(1), c.dims(2), float32_on(c), fresh())};
  };
  table["randint"] = [](const Call& c) -> Results {
    return {randint(c.integer(0), c.integer(1), c.dims(2), {{}, c.device()}, fresh())};
  };
  table["randperm"] = [](const Call& c) -> Results { return {randperm(c.integer(0), {{}, c.device()}, fresh())}; };
  table["bernoulli"] = [](const Call& c) -> Results { return {bernoulli(c.tensor(0), fresh())}; };
  table["multinomial"] = [](const Call& c) -> Results {
    return {multinomial(c.tensor(0), c.integer(1), c.flag(2), fresh())};
  };
  table["dropout1d"] = [](const Call& c) -> Results { return {dropout1d(c.tensor(0), c.real(1), true, fresh())}; };
  table["dropout2d"] = [](const Call& c) -> Results { return {dropout2d(c.tensor(0), c.real(1), true, fresh())}; };
  table["dropout_seeded"] = [](const Call& c) -> Results { return {dropout(c.tensor(0), c.real(1), true, fresh())}; };
}

void add_fills(Functions& table) {
  table["uniform_"] = [](const Call& c) {
    return filled(c, [&](const Tensor& x) { uniform_(x, c.real(1), c.real(2), fresh()); });
  };
  table["normal_"] = [](const Call& c) {
    return filled(c, [&](const Tensor& x) { normal_(x, c.real(1), c.real(2), fresh()); });
  };
  table["bernoulli_"] = [](const Call& c) {
    return filled(c, [&](const Tensor& x) { bernoulli_(x, c.real(1), fresh()); });
  };
  table["exponential_"] = [](const Call& c) {
    return filled(c, [&](const Tensor& x) { exponential_(x, c.real(1), fresh()); });
  };
}

Results multi_head(const Call& c) {
  MultiHeadAttentionOptions options;
  options.num_heads = c.integer(3);
  options.in_proj_weight = c.tensor(4);
  options.in_proj_bias = c.tensor(5);
  options.out_proj_weight = c.tensor(6);
  options.out_proj_bias = c.tensor(7);
  options.bias_k = c.tensor(8);
  options.bias_v = c.tensor(9);
  const MultiHeadAttentionResult found = multi_head_attention_forward(c.tensor(0), c.tensor(1), c.tensor(2), options);
  return {found.output, found.weights};
}

/// A boolean as a tensor: what functions that read their arguments answer.
Results answer(bool value, const Call& c) { return {full({}, value, {{}, c.device()})}; }

void add_others(Functions& table) {
  table["empty"] = [](const Call& c) -> Results { return {empty(c.dims(0), float32_on(c))}; };
  table["empty_like"] = [](const Call& c) -> Results { return {empty_like(c.tensor(0))}; };
  table["scalar_tensor"] = [](const Call& c) -> Results { return {scalar_tensor(c.scalar(0), {{}, c.device()})}; };
  table["tril_indices"] = [](const Call& c) -> Results {
    return {tril_indices(c.integer(0), c.integer(1), c.integer(2), c.device())};
  };
  table["triu_indices"] = [](const Call& c) -> Results {
    return {triu_indices(c.integer(0), c.integer(1), c.integer(2), c.device())};
  };
  table["positive"] = [](const Call& c) -> Results { return {positive(c.tensor(0))}; };
  table["broadcast_tensors"] = [](const Call& c) { return broadcast_tensors(c.tensors(0)); };
  table["unfold_axis"] = [](const Call& c) -> Results {
    return {russet::unfold(c.tensor(0), c.integer(1), c.integer(2), c.integer(3))};
  };
  table["max_pool1d_with_indices"] = [](const Call& c) -> Results {
    const ValuesIndices found = max_pool1d_with_indices(c.tensor(0), c.integer(1));
    return {found.values, found.indices};
  };
  table["multi_head_attention_forward"] = multi_head;
  table["allclose"] = [](const Call& c) { return answer(allclose(c.tensor(0), c.tensor(1)), c); };
  table["equal"] = [](const Call& c) { return answer(equal(c.tensor(0), c.tensor(1)), c); };
}

}  // namespace

void add_random(Functions& table) {
  add_new(table);
  add_fills(table);
  add_others(table);
}

}  // namespace golden
