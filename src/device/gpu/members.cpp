// Launches that several members share: their table, as it is made with the plan, and as it is filled in for a run.
#include <algorithm>
#include <cstring>
#include <map>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {
namespace {

/// What the simulator keeps windows for.
constexpr std::size_t most_regions = 1500;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The pieces of some calls, each once, and how an entry of their table is laid out.
class Table {
 public:
  explicit Table(const std::vector<Call>& calls) {
    // In an order that does not depend on that of the calls, so that fewer kernels differ.
    std::map<std::string, std::size_t> numbers;
    for (const Call& call : calls) numbers.emplace(text_of(call), 0);
    for (auto& [text, number] : numbers) {
      number = pieces_.size();
      for (const Call& call : calls) {
        if (text_of(call) != text) continue;
        pieces_.push_back(*call.piece);
        value_bytes_ = std::max(value_bytes_, call.values.bytes.size());
        break;
      }
    }
    for (const Piece& piece : pieces_) threads_ = std::max(threads_, piece.threads);
    for (const Call& call : calls) piece_of_.push_back(numbers.at(text_of(call)));
    lay_out();
  }

  Member member(const Call& call, std::size_t index) const {
    const std::size_t piece = piece_of_[index];
    Member member;
    member.regions = call.regions;
    member.check = call.check;
    const std::uint32_t simdgroups = threads_ / call.piece->threads;
    member.groups = (call.groups[0] * call.groups[1] + simdgroups - 1) / simdgroups;
    member.seconds = call.seconds;
    member.entry.bytes.resize(bytes_);
    std::copy(call.values.bytes.begin(), call.values.bytes.end(),
              member.entry.bytes.begin() + static_cast<std::ptrdiff_t>(value_at_));
    for (Patch patch : call.values.patches) {
      patch.at += static_cast<std::uint32_t>(value_at_);
      member.entry.patches.push_back(patch);
    }
    const std::uint32_t rest[] = {static_cast<std::uint32_t>(piece), call.groups[0], call.groups[1]};
    std::memcpy(member.entry.bytes.data() + directory_ + 8, rest, sizeof(rest));
    return member;
  }

  Source source(std::uint32_t bases) const { return source_of(pieces_, (directory_ - value_at_) / 8, bytes_, bases); }
  std::size_t directory() const { return directory_; }

 private:
  /// The name holds a digest of the text.
  static const std::string& text_of(const Call& call) { return call.function->name(); }

  void lay_out() {
    std::size_t places = 1;
    for (const Piece& piece : pieces_) places = std::max(places, piece.arguments.size());
    value_at_ = places * 8;
    directory_ = value_at_ + std::max<std::size_t>(rounded(value_bytes_, 8), 8);
    bytes_ = rounded(directory_ + 5 * sizeof(std::uint32_t), 8);
  }

  std::vector<Piece> pieces_;
  std::size_t value_bytes_ = 0;  // the most that a piece has
  std::size_t value_at_ = 0;
  std::vector<std::size_t> piece_of_;  // of each call
  std::uint32_t threads_ = 0;
  std::size_t directory_ = 0;
  std::size_t bytes_ = 0;
};

/// Few kernels differ in it.
std::uint32_t bases_for(std::size_t slots) {
  constexpr std::uint32_t few = 8;
  return slots <= few ? few : most_bases;
}

}  // namespace

Call shared_call(const std::vector<Call>& calls, const Context& context) {
  const Table table(calls);
  Call shared;
  std::vector<std::int32_t> slots;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    shared.members.push_back(table.member(calls[i], i));
    shared.seconds += calls[i].seconds;
    for (const Region& region : calls[i].regions) slots.push_back(region.slot);
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  shared.bases = bases_for(slots.size());
  shared.directory = static_cast<std::uint32_t>(table.directory());
  shared.function = context.library.add(table.source(shared.bases));
  return shared;
}

Call make_call(Piece piece, std::array<std::uint32_t, 3> groups, std::vector<Region> regions, Values values,
               const Context& context) {
  Call call;
  call.function = context.library.add(source_of(piece));
  call.groups = groups;
  call.regions = std::move(regions);
  call.values = std::move(values);
  if (piece.values_are_wide) call.values.align();
  call.piece = std::make_shared<const Piece>(std::move(piece));
  return call;
}

bool can_share(const Call& call) { return call.piece != nullptr && call.piece->shares && call.groups[2] == 1; }

std::vector<Call> share_launch(std::vector<Call> calls, const Context& context) {
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

/// What a launch hands to the stream; kept between runs for its memory.
struct Filling {
  std::vector<Binding> buffers;
  std::vector<std::uint32_t> places;
  std::vector<std::byte> table;
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
    std::vector<Binding> buffers = bind(member);
    const std::size_t known = filling_.blocks.size();
    note_blocks(buffers);
    if (filling_.blocks.size() > call_.bases && filling_.members > 0) {
      filling_.blocks.resize(known);
      launch();
      buffers = bind(member);  // a check's word is the next launch's
      note_blocks(buffers);
    }
    const std::size_t at = filling_.table.size();
    filling_.table.insert(filling_.table.end(), member.entry.bytes.begin(), member.entry.bytes.end());
    for (const Patch& patch : member.entry.patches) {
      apply(patch, bindings_.arguments[patch.argument], filling_.table.data() + at);
    }
    put(at + call_.directory, filling_.groups - member.first);  // wraps below 0
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      filling_.buffers.push_back(buffers[i]);
      filling_.places.push_back(static_cast<std::uint32_t>(at + i * 8));
    }
    filling_.groups += member.groups;
    filling_.seconds += member.seconds;
    ++filling_.members;
  }

  void launch() {
    if (filling_.members == 0) return;
    const std::size_t entry = filling_.table.size() / filling_.members;
    for (std::uint32_t i = 0; i < filling_.members; ++i) put(i * entry + call_.directory + 4, filling_.members);
    Launch launch;
    launch.pipeline = call_.function->pipeline();
    launch.groups = {filling_.groups, 1, 1};
    launch.threads = call_.function->source().threads;
    launch.buffers = filling_.buffers;
    launch.parameters = filling_.table;
    launch.bases = call_.bases;
    launch.places = filling_.places;
    launch.seconds = filling_.seconds;
    stream_.launch(launch);
    clear();
  }

 private:
  std::vector<Binding> bind(const Member& member) {
    std::vector<Binding> buffers;
    for (const Region& region : member.regions) {
      buffers.push_back(bound(member, region, bindings_, stream_));
      buffers.back().continues = member.first > 0 && region.writes && region.slot != Region::check;
    }
    return buffers;
  }

  void clear() {
    filling_.buffers.clear();
    filling_.places.clear();
    filling_.table.clear();
    filling_.blocks.clear();
    filling_.groups = filling_.members = 0;
    filling_.seconds = 0;
  }

  void put(std::size_t at, std::uint32_t number) { std::memcpy(filling_.table.data() + at, &number, sizeof(number)); }

  void note_blocks(const std::vector<Binding>& buffers) {
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
