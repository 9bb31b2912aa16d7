#pragma once
// A cache bounded by bytes: the entry that was used least recently goes first. Not locked; its owner is.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace russet::base {

/// Keys are compared with ==, never by their hash alone. Addresses of values hold until the entry is evicted.
template <class Key, class Value, class Hash = std::hash<Key>>
class BoundedCache {
 public:
  struct Entry {
    Key key;
    Value value;
    std::size_t bytes;
    std::size_t hash;
  };
  struct Statistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;
  };

  /// Holds entries of at most `byte_limit` bytes together, but never drops one of the last `keep` entries used
  /// (at least the newest).
  explicit BoundedCache(std::size_t byte_limit, std::size_t keep = 1) : byte_limit_(byte_limit), keep_(keep) {}
  BoundedCache(const BoundedCache&) = delete;
  BoundedCache& operator=(const BoundedCache&) = delete;

  /// The value, which becomes the most recently used, or nullptr.
  Value* find(const Key& key) {
    return find_where(Hash{}(key), [&](const Key& other) { return other == key; });
  }

  /// The value of an entry whose key has this hash and for which `matches(key)` holds: for questions that are no keys.
  template <class Matches>
  Value* find_where(std::size_t hash, const Matches& matches) {
    const auto [first, last] = index_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (!matches(it->second->key)) continue;
      ++statistics_.hits;
      entries_.splice(entries_.begin(), entries_, it->second);
      return &it->second->value;
    }
    ++statistics_.misses;
    return nullptr;
  }

  /// Adds an entry, or replaces the one of an equal key, and evicts what no longer fits.
  Value& insert(Key key, Value value, std::size_t bytes) {
    erase(key);
    const std::size_t hash = Hash{}(key);
    entries_.push_front({std::move(key), std::move(value), bytes, hash});
    index_.emplace(hash, entries_.begin());
    bytes_ += bytes;
    evict();
    return entries_.front().value;
  }

  bool erase(const Key& key) {
    const auto [first, last] = index_.equal_range(Hash{}(key));
    for (auto it = first; it != last; ++it) {
      if (!(it->second->key == key)) continue;
      remove(it->second);
      return true;
    }
    return false;
  }

  /// Removes the entries for which `predicate(entry)` holds.
  template <class Predicate>
  void erase_if(Predicate predicate) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (predicate(*entry)) remove(entry);
      entry = next;
    }
  }

  void clear() {
    index_.clear();
    entries_.clear();
    bytes_ = 0;
  }

  void set_byte_limit(std::size_t byte_limit) {
    byte_limit_ = byte_limit;
    evict();
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }
  std::size_t byte_limit() const { return byte_limit_; }
  const Statistics& statistics() const { return statistics_; }

  /// From the most recently used entry to the least.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Position = typename std::list<Entry>::iterator;

  void remove(Position entry) {
    bytes_ -= entry->bytes;
    auto [it, last] = index_.equal_range(entry->hash);
    while (it != last && it->second != entry) ++it;
    index_.erase(it);
    entries_.erase(entry);
  }

  void evict() {
    while (bytes_ > byte_limit_ && entries_.size() > keep_ && entries_.size() > 1) {
      remove(std::prev(entries_.end()));
      ++statistics_.evictions;
    }
  }

  std::list<Entry> entries_;
  std::unordered_multimap<std::size_t, Position> index_;  // by hash
  std::size_t bytes_ = 0;
  std::size_t byte_limit_;
  std::size_t keep_;
  Statistics statistics_;
};

}  // namespace russet::base
