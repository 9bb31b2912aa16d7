#include "device/gpu/driver/host_copies.h"

#include <algorithm>

namespace russet::gpu {
namespace {

constexpr std::size_t most_of_all = std::size_t{16} << 20;

}  // namespace

void HostCopies::keep(const std::byte* address, std::span<const std::byte> content) {
  const base::ByteRange range = base::range_of(address, content.size());
  forget(range);
  if (content.empty() || content.size() > most_of_one) return;
  while (bytes_ + content.size() > most_of_all) drop(copies_.find(ages_.front()));
  const auto memory = std::make_shared<std::byte[]>(content.size());
  std::ranges::copy(content, memory.get());
  ages_.push_back(range.begin);
  copies_[range.begin] = {range, {memory, memory.get()}, std::prev(ages_.end())};
  bytes_ += content.size();
}

void HostCopies::forget(base::ByteRange range) {
  if (copies_.empty() || range.bytes() == 0) return;
  auto copy = copies_.lower_bound(range.begin);
  if (copy != copies_.begin() && std::prev(copy)->second.range.end > range.begin) --copy;
  while (copy != copies_.end() && copy->first < range.end) drop(copy++);
}

std::shared_ptr<const std::byte> HostCopies::find(base::ByteRange range) const {
  const auto copy = copies_.find(range.begin);
  return copy != copies_.end() && range.end <= copy->second.range.end ? copy->second.content : nullptr;
}

void HostCopies::drop(Copies::iterator copy) {
  bytes_ -= copy->second.range.bytes();
  ages_.erase(copy->second.age);
  copies_.erase(copy);
}

}  // namespace russet::gpu
