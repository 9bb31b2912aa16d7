#pragma once
// Keeping: what evaluations compute of parameters alone is kept with the parameters' values, and goes with them.
#include <russet/ref.h>

#include "graph/node.h"

namespace russet::graph {

/// Something that is kept with a value.
class Keepsake : public RefCounted {
 public:
  /// Nobody needs it any more.
  virtual bool is_over() const = 0;
};

/// Whether what is computed of the value may be kept: it is a parameter's or buffer's, in memory, and not visible
/// outside, where it may change unnoticed.
bool is_steady(const Node& value);
/// Lets something live as long as the value, unless the value's memory becomes visible outside, or it is over, before.
void keep_with(const Node& value, Ref<Keepsake> kept);
/// Lets go of what was kept with the value.
void drop_kept(const Node& value);

}  // namespace russet::graph
