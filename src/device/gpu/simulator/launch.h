#pragma once
// What is checked before a dispatch runs.
#include "machine.h"

namespace russet::simulator {

/// Whether the dispatch may run; if not, reports why ("launch").
bool judge_launch(const Dispatch& dispatch);

}  // namespace russet::simulator
