#pragma once
// Hoisting: casts of a module's parameters and buffers that evaluations compute once and keep with the value that they
// were made of. Recording asks for the cast that is kept; a flush in which one is marked computes it for keeps; it is
// freed with the value: when a parameter gets another one, or its memory becomes visible outside.
#include <vector>

#include "graph/node.h"

namespace russet::graph {

/// Whether casts of the value are kept: it is a parameter's or buffer's, in memory, and not visible outside.
bool keeps_casts(const Node& value);
/// The cast to `dtype` that is kept with the value; nullptr if there is none.
NodeRef kept_cast(Node& value, DType dtype);
/// Frees the casts that are kept with the value.
void drop_kept_casts(Node& value);

/// The casts that one flush computes to be kept. Call with graph_mutex() held.
class HoistedCasts {
 public:
  /// What a pending node is a cast of, if that is in memory and the cast is to be kept: it then is among those of this
  /// flush. Else nullptr.
  const Node* add(Node& node);
  /// Keeps those that were computed, but for what another thread's evaluation kept first, and casts of memory that has
  /// become visible outside.
  void keep();
  void clear() { casts_.clear(); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Hoisted& hoisted : casts_) visit(*hoisted.cast);
  }

 private:
  struct Hoisted {
    NodeRef source;
    NodeRef cast;
  };
  std::vector<Hoisted> casts_;
};

}  // namespace russet::graph
