#pragma once
#include <cstddef>

namespace russet::gpu {

/// How many units are compiled side by side: RUSSET_COMPILATIONS, from 1 on (ValueError if it is no such number); else
/// as many as the processor has threads, but at least 8, since a compiler may work elsewhere, and at most 16.
std::size_t compilations_at_once();

}  // namespace russet::gpu
