#include "graph/hoisting.h"

#include <algorithm>

namespace russet::graph {
namespace {

/// Call with graph_mutex() held.
NodeRef find(Node& value, DType dtype) {
  for (const NodeRef& kept : value.kept_casts()) {
    if (kept->dtype == dtype) return kept;
  }
  return nullptr;
}

}  // namespace

bool keeps_casts(const Node& value) { return value.persistent() && value.materialised() && !value.buffer()->pinned(); }

NodeRef kept_cast(Node& value, DType dtype) {
  const std::lock_guard lock(graph_mutex());
  return find(value, dtype);
}

void drop_kept_casts(Node& value) {
  Leftovers casts;  // destroyed once the lock is free
  const std::lock_guard lock(graph_mutex());
  casts.swap(value.kept_casts());
}

const Node* HoistedCasts::add(Node& node) {
  if (!node.hoisted || !node.inputs()[0]->materialised()) return nullptr;
  casts_.push_back({node.inputs()[0], NodeRef(&node)});
  return node.inputs()[0].get();
}

void HoistedCasts::keep() {
  for (const Hoisted& hoisted : casts_) {
    if (!hoisted.cast->materialised() || !keeps_casts(*hoisted.source)) continue;
    if (!find(*hoisted.source, hoisted.cast->dtype)) hoisted.source->kept_casts().push_back(hoisted.cast);
  }
}

}  // namespace russet::graph
