// Schedule: an order of clusters in which inputs come first, otherwise as close to record order as they allow: what was
// written together runs together, and temporaries die soon.
#include <algorithm>
#include <queue>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {

void schedule(Program& program, const Target&) {
  const std::size_t count = program.clusters.size();
  std::vector<std::vector<std::int32_t>> readers(count);
  std::vector<std::int32_t> waits(count, 0);
  std::vector<ValueId> rank(count, 0);
  for (std::size_t id = 0; id < count; ++id) {
    const Cluster& cluster = program.clusters[id];
    if (cluster.dead) continue;
    std::vector<ValueId> members = cluster.members;
    const Attached attached = attached_to(program, cluster);
    for (const Cluster* part : {attached.epilogue, attached.prologues[0], attached.prologues[1]}) {
      if (part != nullptr) members.insert(members.end(), part->members.begin(), part->members.end());
    }
    std::sort(members.begin(), members.end());
    rank[id] = members.back();
    std::vector<std::int32_t> inputs;
    for (const ValueId member : members) {
      for (const ValueId input : value_at(program, member).inputs) {
        if (input < 0) continue;
        const ValueId base = base_of(program, input);
        const bool own = std::binary_search(members.begin(), members.end(), base);
        const std::int32_t owner = program.owner[static_cast<std::size_t>(base)];
        if (!own && owner >= 0 && owner != static_cast<std::int32_t>(id) && owner != cluster.epilogue)
          inputs.push_back(owner);
      }
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const std::int32_t input : inputs) {
      if (program.clusters[static_cast<std::size_t>(input)].dead) continue;
      readers[static_cast<std::size_t>(input)].push_back(static_cast<std::int32_t>(id));
      ++waits[id];
    }
  }
  using Ready = std::pair<ValueId, std::int32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t id = 0; id < count; ++id) {
    if (!program.clusters[id].dead && waits[id] == 0) ready.emplace(rank[id], static_cast<std::int32_t>(id));
  }
  program.order.clear();
  while (!ready.empty()) {
    const std::int32_t next = ready.top().second;
    ready.pop();
    program.order.push_back(next);
    for (const std::int32_t reader : readers[static_cast<std::size_t>(next)]) {
      if (--waits[static_cast<std::size_t>(reader)] == 0) ready.emplace(rank[static_cast<std::size_t>(reader)], reader);
    }
  }
}

}  // namespace russet::compile::passes
