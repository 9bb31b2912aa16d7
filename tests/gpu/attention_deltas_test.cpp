// Deltas of attention that a kernel makes of the attention's result.
#include "attention_deltas.h"

namespace russet::test {
namespace {

TEST(AttentionDeltas, AreMadeOfTheResult) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    expect_deltas_of_result(type, {3, 70, 16, 64, 64}, false);  // blocks of 32 queries, the last one of six
    expect_deltas_of_result(type, {2, 33, 75, 32, 24}, true);   // more threads than a block has vectors
    expect_deltas_of_result(type, {1, 40, 14, 16, 64}, true);
    expect_deltas_of_result(type, {2, 9, 18, 6, 7}, false);  // pairs that are no vectors
  }
}

}  // namespace
}  // namespace russet::test
