#pragma once
// The reference target: every primitive is a step, interpreted loop by loop in double or int64.
#include "compile/step.h"

namespace russet::reference {

const compile::Target& target();

}  // namespace russet::reference
