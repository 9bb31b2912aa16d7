// Launches that several members share: their table, as it is made with the plan, and as it is filled in for a run.
#include <algorithm>
#include <cstring>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {
namespace {

/// What the simulator keeps windows for.
constexpr std::size_t most_regions = 1500;

/// Few kernels differ in it.
std::uint32_t bases_for(std::size_t slots, const Properties& properties) {
  constexpr std::uint32_t few = 8;
  if (properties.tables_hold_addresses) return 0;
  return slots <= few ? few : most_bases;
}

Member member_of(const Call& call, const Table& table) {
  Member member;
  member.regions = call.regions;
  const std::uint32_t simdgroups = table.threads() / call.piece->threads;
  member.groups = (call.groups[0] * call.groups[1] + simdgroups - 1) / simdgroups;
  member.seconds = call.seconds;
  member.entry.bytes.resize(table.bytes());
  std::copy(call.values.bytes.begin(), call.values.bytes.end(),
            member.entry.bytes.begin() + static_cast<std::ptrdiff_t>(table.value_at()));
  for (Patch patch : call.values.patches) {
    patch.at += static_cast<std::uint32_t>(table.value_at());
    member.entry.patches.push_back(patch);
  }
  const std::uint32_t rest[] = {table.number_of(call.function->name()), call.groups[0], call.groups[1]};
  std::memcpy(member.entry.bytes.data() + table.directory() + Table::number_at, rest, sizeof(rest));
  return member;
}

}  // namespace

Call shared_call(const std::vector<Call>& calls, const GpuContext& context) {
  Call shared;
  Table::Codes codes;
  std::vector<std::int32_t> slots;
  for (const Call& call : calls) {
    codes.try_emplace(call.function->name(), Table::Code{call.piece, call.values.bytes.size()});
    shared.seconds += call.seconds;
    for (const Region& region : call.regions) slots.push_back(region.slot);
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  shared.table = std::make_shared<const Table>(std::move(codes), bases_for(slots.size(), context.properties));
  shared.function = context.library.add(shared.table->source());
  for (const Call& call : calls) shared.members.push_back(member_of(call, *shared.table));
  return shared;
}

Call make_call(Piece piece, std::array<std::uint32_t, 3> groups, std::vector<Region> regions, Values values,
               const GpuContext& context) {
  Call call;
  piece.values_change = !values.patches.empty();
  call.function = context.library.add(source_of(piece));
  call.groups = groups;
  call.regions = std::move(regions);
  call.values = std::move(values);
  if (piece.values_are_wide) call.values.align();
  call.piece = std::make_shared<const Piece>(std::move(piece));
  return call;
}

bool can_share(const Call& call) { return call.piece != nullptr && call.piece->shares && call.groups[2] == 1; }

std::vector<Call> share_launch(std::vector<Call> calls, const GpuContext& context) {
  std::erase_if(calls, [](const Call& call) { return call.groups[0] == 0 || call.groups[1] == 0; });
  std::vector<Call> launches;
  std::vector<Call> together;
  std::uint64_t groups = 0;
  std::size_t regions = 0;
  const auto close = [&] {
    if (together.size() == 1) {
      launches.push_back(std::move(together.front()));
    } else if (!together.empty()) {
      launches.push_back(shared_call(together, context));
    }
    together.clear();
    groups = regions = 0;
  };
  for (Call& call : calls) {
    const std::uint64_t own = std::uint64_t{call.groups[0]} * call.groups[1];
    if (groups + own > 0xffffffffU || regions + call.regions.size() > most_regions) close();
    groups += own;
    regions += call.regions.size();
    together.push_back(std::move(call));
  }
  close();
  return launches;
}

namespace {

/// The buffers of a launch, kept between runs so that a run allocates nothing.
struct Filling {
  std::vector<Binding> buffers;
  std::vector<std::uint32_t> places;
  std::vector<std::byte> table;
  std::vector<Patch> patches;
  bool buffers_move = false;
  std::vector<const void*> blocks;
  std::uint32_t groups = 0;
  std::uint32_t members = 0;
  double seconds = 0;
};

/// Fills in launches of a call, member by member; a member that lies in too many other blocks begins the next one.
class Filler {
 public:
  Filler(const Call& call, Stream& stream, const compile::Bindings& bindings)
      : call_(call), stream_(stream), bindings_(bindings) {
    clear();
  }

  void add(const Member& member) {
    const std::vector<Binding> buffers = bind(member);
    const std::size_t known = filling_.blocks.size();
    note_blocks(buffers);
    if (filling_.blocks.size() > call_.table->bases() && filling_.members > 0) {
      filling_.blocks.resize(known);
      launch();
      note_blocks(buffers);
    }
    const std::size_t at = filling_.table.size();
    filling_.table.insert(filling_.table.end(), member.entry.bytes.begin(), member.entry.bytes.end());
    for (const Patch& patch : member.entry.patches) {
      apply(patch, bindings_.arguments[patch.argument], filling_.table.data() + at);
      filling_.patches.push_back(patch);
      filling_.patches.back().at += static_cast<std::uint32_t>(at);
    }
    put(at + call_.table->directory(), filling_.groups - member.first);  // wraps below 0
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      filling_.buffers.push_back(buffers[i]);
      filling_.buffers_move |= member.regions[i].argument >= 0;
      filling_.places.push_back(static_cast<std::uint32_t>(at + i * 8));
    }
    filling_.groups += member.groups;
    filling_.seconds += member.seconds;
    ++filling_.members;
  }

  void launch() {
    if (filling_.members == 0) return;
    const std::size_t entry = filling_.table.size() / filling_.members;
    const std::size_t count_at = call_.table->directory() + 4;
    for (std::uint32_t i = 0; i < filling_.members; ++i) put(i * entry + count_at, filling_.members);
    Launch launch;
    launch.pipeline = call_.function->pipeline();
    launch.groups = {filling_.groups, 1, 1};
    launch.threads = call_.function->source().threads;
    launch.buffers = filling_.buffers;
    launch.parameters = filling_.table;
    launch.parameters_change = true;
    launch.bases = call_.table->bases();
    launch.places = filling_.places;
    launch.patches = filling_.patches;
    launch.buffers_move = filling_.buffers_move;
    launch.seconds = filling_.seconds;
    stream_.launch(launch);
    clear();
  }

 private:
  std::vector<Binding> bind(const Member& member) {
    std::vector<Binding> buffers;
    for (const Region& region : member.regions) {
      buffers.push_back(bound(region, bindings_));
      buffers.back().continues = member.first > 0 && region.writes;
    }
    return buffers;
  }

  void clear() {
    filling_.buffers.clear();
    filling_.places.clear();
    filling_.table.clear();
    filling_.patches.clear();
    filling_.buffers_move = false;
    filling_.blocks.clear();
    filling_.groups = filling_.members = 0;
    filling_.seconds = 0;
  }

  void put(std::size_t at, std::uint32_t number) { std::memcpy(filling_.table.data() + at, &number, sizeof(number)); }

  void note_blocks(const std::vector<Binding>& buffers) {
    if (call_.table->bases() == 0) return;
    for (const Binding& buffer : buffers) {
      if (buffer.bytes == 0) continue;
      const void* const block = stream_.block_of(buffer);
      if (std::find(filling_.blocks.begin(), filling_.blocks.end(), block) == filling_.blocks.end()) {
        filling_.blocks.push_back(block);
      }
    }
  }

  static thread_local Filling filling_;
  const Call& call_;
  Stream& stream_;
  const compile::Bindings& bindings_;
};

thread_local Filling Filler::filling_;

}  // namespace

void GpuKernel::run_members(const Call& call, const compile::Bindings& bindings) const {
  Filler filler(call, stream_, bindings);
  for (const Member& member : call.members) filler.add(member);
  filler.launch();
}

}  // namespace russet::gpu
