// needs: attention.metal
// Attention and its gradients, an element a thread: heads that no block holds.

/// The element of [batch, rows, columns] at a thread's position in the grid; false beyond the last.
template <uint RANK>
struct AttentionElement {
  AttentionBatch<RANK> batch;
  uint row, column;
};
template <uint RANK>
bool find_attention_element(thread AttentionElement<RANK>& element, constant AttentionValues& values, uint rows,
                            uint columns, ulong position) {
  if (position >= ulong(values.batches) * ulong(rows) * ulong(columns)) return false;
  const ulong line = position / ulong(columns);
  element.column = uint(position - line * ulong(columns));
  const ulong batch = line / ulong(rows);
  find_attention_batch(element.batch, values, uint(batch));
  element.row = uint(line - batch * ulong(rows));
  return true;
}

template <class T>
float dot_rows(thread const AttentionMatrix<T>& a, uint a_row, thread const AttentionMatrix<T>& b, uint b_row,
               uint width) {
  float sum = 0.0f;
  for (uint i = 0; i < width; ++i) sum = fma(a.at(a_row, i), b.at(b_row, i), sum);
  return sum;
}

/// The result (RESULT) or the logsumexp.
template <uint RANK, bool RESULT, class T, class Rules>
void attend_element(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                    ulong position) {
  AttentionElement<RANK> element = {};
  if (!find_attention_element(element, values, values.rows, RESULT ? values.values : 1u, position)) return;
  rules.start(values, element.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  query.start(at.query, values.query, element.batch);
  key.start(at.key, values.key, element.batch);
  if constexpr (RESULT) value.start(at.value, values.value, element.batch);
  float largest = -INFINITY;
  float total = 0.0f;
  float sum = 0.0f;
  for (uint column = 0; column < values.columns; ++column) {
    const float product = dot_rows(query, element.row, key, column, values.width);
    const float score = rules.score(product, element.row, column);
    const float next = max(largest, score);
    const float base = next == -INFINITY ? 0.0f : next;
    const float factor = precise::exp(largest - base);
    const float p = precise::exp(score - base);
    largest = next;
    total = fma(total, factor, p);
    if constexpr (RESULT) sum = sum * factor + p * rules.kept(element.row, column) * value.at(column, element.column);
  }
  if constexpr (RESULT) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, element.batch);
    visitor.visit(element.row, element.column, total == 0.0f ? 0.0f : sum / total);
  } else {
    device float* const statistics = at.statistics + attention_start(values.second, element.batch);
    statistics[long(element.row) * values.second.row] = total == 0.0f ? INFINITY : largest + precise::log(total);
  }
}

/// Which gradient an element belongs to.
enum AttentionGradient : uint { gradient_of_query = 0, gradient_of_key = 1, gradient_of_value = 2 };

template <uint RANK, uint WHICH, class T, class Rules>
void attention_gradient_element(thread const AttentionPointers<T>& at, thread Rules& rules,
                                constant AttentionValues& values, ulong position) {
  AttentionElement<RANK> element = {};
  const uint lines = WHICH == gradient_of_query ? values.rows : values.columns;
  if (!find_attention_element(element, values, lines, WHICH == gradient_of_value ? values.values : values.width,
                              position)) {
    return;
  }
  rules.start(values, element.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;
  query.start(at.query, values.query, element.batch);
  key.start(at.key, values.key, element.batch);
  gradient.start(at.gradient, values.gradient, element.batch);
  logsumexp.start(at.logsumexp, values.logsumexp, element.batch);
  if constexpr (WHICH != gradient_of_value) {
    value.start(at.value, values.value, element.batch);
    delta.start(at.delta, values.delta, element.batch);
  }
  float sum = 0.0f;
  const uint others = WHICH == gradient_of_query ? values.columns : values.rows;
  for (uint other = 0; other < others; ++other) {
    const uint row = WHICH == gradient_of_query ? element.row : other;
    const uint column = WHICH == gradient_of_query ? other : element.row;
    const float product = dot_rows(query, row, key, column, values.width);
    const float p = precise::exp(rules.score(product, row, column) - logsumexp.at(row, 0u));
    const float kept = rules.kept(row, column);
    if constexpr (WHICH == gradient_of_value) {
      sum = fma(p * kept, gradient.at(row, element.column), sum);
    } else {
      const float slope = dot_rows(gradient, row, value, column, values.values);
      const float factor = WHICH == gradient_of_query ? key.at(column, element.column) : query.at(row, element.column);
      sum = fma(p * (slope * kept - delta.at(row, 0u)), factor, sum);
    }
  }
  AttentionVisitor<T> visitor;
  if constexpr (WHICH == gradient_of_value) {
    visitor.start(at.second, values.second, element.batch);
  } else {
    visitor.start(at.result, values.result, element.batch);
    visitor.factor = values.scale;
  }
  visitor.visit(element.row, element.column, sum);
}
