// Recomputation among groups.
//   group 1: h -> e = erf(h); y = h * e; store y, e        group 1: h -> e = erf(h); y = h * e; store y
//   group 2: load g, h, e -> ...                       =>  group 2: load g, h; e = erf(h) -> ...
#include "compile/passes/passes.h"
#include "compile/passes/recomputation.h"

namespace russet::compile::passes {

void recompute(Program& program, const Target& target) {
  Recomputation(program, target, Recomputation::Scope::groups).run();
}

}  // namespace russet::compile::passes
