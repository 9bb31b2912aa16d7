#include "graph/keeping.h"

namespace russet::graph {

bool is_steady(const Node& value) { return value.persistent() && value.materialised() && !value.buffer()->pinned(); }

void keep_with(const Node& value, Ref<Keepsake> kept) {
  std::vector<Ref<Keepsake>> over;  // destroyed once the lock is free
  const std::lock_guard lock(graph_mutex());
  for (Ref<Keepsake>& one : value.kept()) {
    if (one->is_over()) over.push_back(std::move(one));
  }
  std::erase(value.kept(), nullptr);
  value.kept().push_back(std::move(kept));
}

void drop_kept(const Node& value) {
  std::vector<Ref<Keepsake>> kept;  // destroyed once the lock is free
  const std::lock_guard lock(graph_mutex());
  kept.swap(value.kept());
}

}  // namespace russet::graph
