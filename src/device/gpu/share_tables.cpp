// Launches of members have a kernel for each set of pieces. Where sets of a plan overlap, one kernel has the pieces of
// both. Before: kernels of the pieces {a, b}, {b, c}, {a, c, d} and {e, f}; after: of {a, b, c, d} and {e, f}. So
// pieces are compiled fewer times. A member finds its piece by number, so the bits are the same. No launch gets a
// kernel of larger threadgroups, or of more memory in each.
#include <algorithm>
#include <cstring>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {
namespace {

/// Tables that may become one have this in common.
struct Footprint {
  std::uint32_t threads = 0;
  std::vector<std::pair<std::string, std::string>> arrays;  // types and counts, sorted
  bool operator==(const Footprint&) const = default;
};

Footprint footprint_of(const Table& table) {
  Footprint footprint{table.threads(), {}};
  for (const Piece::Array& array : table.arrays()) footprint.arrays.emplace_back(array.type, array.count);
  std::sort(footprint.arrays.begin(), footprint.arrays.end());
  return footprint;
}

/// The table that some calls will have.
struct Shared {
  Footprint footprint;
  Table::Codes codes;
  std::uint32_t bases = 0;
  std::vector<Call*> calls;

  void add(Shared&& other) {
    codes.merge(other.codes);
    bases = std::max(bases, other.bases);
    calls.insert(calls.end(), other.calls.begin(), other.calls.end());
  }
};

std::size_t in_common(const Table::Codes& a, const Table::Codes& b) {
  return static_cast<std::size_t>(
      std::count_if(a.begin(), a.end(), [&](const auto& code) { return b.contains(code.first); }));
}

std::vector<Shared> tables_of(std::span<Call* const> calls) {
  std::vector<Shared> tables;
  std::map<const Function*, std::size_t> known;
  for (Call* const call : calls) {
    const auto [at, added] = known.emplace(call->function.get(), tables.size());
    if (added) tables.push_back({footprint_of(*call->table), call->table->codes(), call->table->bases(), {}});
    tables[at->second].calls.push_back(call);
  }
  return tables;
}

/// The one of `tables` that has most in common with `more` and room for it.
std::vector<Shared>::iterator partner_of(const Shared& more, std::vector<Shared>& tables) {
  auto best = tables.end();
  std::size_t most = 0;
  for (auto table = tables.begin(); table != tables.end(); ++table) {
    if (table->footprint != more.footprint) continue;
    const std::size_t common = in_common(more.codes, table->codes);
    if (common <= most || table->codes.size() + more.codes.size() - common > most_pieces) continue;
    most = common;
    best = table;
  }
  return best;
}

/// Those with most pieces first, each joins one before it.
std::vector<Shared> joined(std::vector<Shared> tables) {
  std::stable_sort(tables.begin(), tables.end(),
                   [](const Shared& a, const Shared& b) { return a.codes.size() > b.codes.size(); });
  std::vector<Shared> fewer;
  for (Shared& table : tables) {
    const auto partner = partner_of(table, fewer);
    if (partner == fewer.end()) {
      fewer.push_back(std::move(table));
    } else {
      partner->add(std::move(table));
    }
  }
  return fewer;
}

/// The entry of a table, as another one has it.
Values laid_out(const Values& entry, const Table& before, const Table& after) {
  Values result;
  result.bytes.resize(after.bytes());
  std::byte* const to = result.bytes.data();
  std::copy_n(entry.bytes.data() + before.value_at(), before.directory() - before.value_at(), to + after.value_at());
  for (Patch patch : entry.patches) {
    patch.at += static_cast<std::uint32_t>(after.value_at() - before.value_at());
    result.patches.push_back(patch);
  }
  std::copy_n(entry.bytes.data() + before.directory(), Table::directory_bytes, to + after.directory());
  std::uint32_t number = 0;
  std::memcpy(&number, to + after.directory() + Table::number_at, sizeof(number));
  number = after.number_of(before.name_of(number));
  std::memcpy(to + after.directory() + Table::number_at, &number, sizeof(number));
  return result;
}

}  // namespace

void share_tables(std::span<Call* const> calls, const GpuContext& context) {
  std::vector<Shared> tables = tables_of(calls);
  for (std::size_t before = 0; before != tables.size();) {
    before = tables.size();
    tables = joined(std::move(tables));
  }
  for (Shared& shared : tables) {
    const auto table = std::make_shared<const Table>(std::move(shared.codes), shared.bases);
    const FunctionPtr function = context.library.add(table->source());
    for (Call* const call : shared.calls) {
      if (call->function == function) continue;
      for (Member& member : call->members) member.entry = laid_out(member.entry, *call->table, *table);
      call->table = table;
      call->function = function;
    }
  }
}

}  // namespace russet::gpu
