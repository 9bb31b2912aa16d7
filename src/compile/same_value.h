#pragma once
// Which values are computed alike, so that one of them serves for all.
#include <cstdint>

#include "compile/program.h"

namespace russet::compile {

/// Equal for values that compute the same.
std::uint64_t hash_of(const Value& value);
/// Whether two values are computed alike from the same inputs.
bool compute_the_same(const Value& a, const Value& b);
/// Whether a value may serve in place of those computed alike.
bool is_shared(const Value& value);

}  // namespace russet::compile
