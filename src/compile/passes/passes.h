#pragma once
// The passes, one file each. The list in pipeline.cpp gives their order.
#include "compile/program.h"

namespace russet::compile::passes {

void decompose(Program& program, const Target& target);
void patches(Program& program, const Target& target);
void space_to_depth(Program& program, const Target& target);
void subsample(Program& program, const Target& target);
void pieces(Program& program, const Target& target);
void simplify(Program& program, const Target& target);
void maxima(Program& program, const Target& target);
void share(Program& program, const Target& target);
void prune(Program& program, const Target& target);
void join(Program& program, const Target& target);
void fold(Program& program, const Target& target);
void layout(Program& program, const Target& target);
void reorder(Program& program, const Target& target);
void fuse(Program& program, const Target& target);
void recompute(Program& program, const Target& target);
void pair(Program& program, const Target& target);
void epilogues(Program& program, const Target& target);
void prologues(Program& program, const Target& target);
void place(Program& program, const Target& target);
void schedule(Program& program, const Target& target);
void lower(Program& program, const Target& target);
void rematerialise(Program& program, const Target& target);
void updates(Program& program, const Target& target);
void positions(Program& program, const Target& target);
void dropout_bits(Program& program, const Target& target);
void gradient_sums(Program& program, const Target& target);
void masks(Program& program, const Target& target);
void column_sums(Program& program, const Target& target);
void stages(Program& program, const Target& target);
void hoist(Program& program, const Target& target);
void indices(Program& program, const Target& target);
void samples(Program& program, const Target& target);
void bundle(Program& program, const Target& target);
/// `bytes_apart`: see Target.
void arena(Program& program, const Target& target, std::size_t bytes_apart);

}  // namespace russet::compile::passes
