// The three gradients of an attention by one kernel: deltas that it makes of the attention's result, and sums.
#include "attention_at_once.h"

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

TEST(AttentionAtOnce, KeysThatAreNotThereCountForNothing) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    expect_keys_that_are_there(type, {2, 40, 14, 16, 16});
    expect_keys_that_are_there(type, {2, 40, 37, 32, 32});
  }
}

TEST(AttentionSums, AreOfTheGradients) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    expect_sums(type, {3, 70, 16, 64, 64}, true);   // one simdgroup for all squares
    expect_sums(type, {2, 33, 75, 32, 24}, false);  // keys and queries that are no whole sixteen
    expect_sums(type, {1, 40, 14, 16, 64}, true);
    expect_sums(type, {2, 9, 18, 6, 7}, false);
  }
}

TEST(AttentionDropout, IsKeptInBits) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    expect_bits_of_dropout(type, {3, 70, 16, 64, 64});
    expect_bits_of_dropout(type, {2, 33, 75, 32, 24});  // columns beyond a block of 64, and no blocks of numbers
    expect_bits_of_dropout(type, {1, 40, 14, 16, 64});
    expect_bits_of_dropout(type, {2, 9, 18, 6, 7});
  }
}

}  // namespace
}  // namespace russet::test
