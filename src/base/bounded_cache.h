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
    const auto found = index_.find(&key);
    if (found == index_.end()) {
      ++statistics_.misses;
      return nullptr;
    }
    ++statistics_.hits;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Adds an entry, or replaces the one of an equal key, and evicts what no longer fits.
  Value& insert(Key key, Value value, std::size_t bytes) {
    erase(key);
    entries_.push_front({std::move(key), std::move(value), bytes});
    index_.emplace(&entries_.front().key, entries_.begin());
    bytes_ += bytes;
    evict();
    return entries_.front().value;
  }

  bool erase(const Key& key) {
    const auto found = index_.find(&key);
    if (found == index_.end()) return false;
    remove(found->second);
    return true;
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
  struct HashOfPointed {
    std::size_t operator()(const Key* key) const { return Hash{}(*key); }
  };
  struct EqualPointed {
    bool operator()(const Key* a, const Key* b) const { return *a == *b; }
  };

  void remove(Position entry) {
    bytes_ -= entry->bytes;
    index_.erase(&entry->key);
    entries_.erase(entry);
  }

  void evict() {
    while (bytes_ > byte_limit_ && entries_.size() > keep_ && entries_.size() > 1) {
      remove(std::prev(entries_.end()));
      ++statistics_.evictions;
    }
  }

  std::list<Entry> entries_;
  std::unordered_map<const Key*, Position, HashOfPointed, EqualPointed> index_;
  std::size_t bytes_ = 0;
  std::size_t byte_limit_;
  std::size_t keep_;
  Statistics statistics_;
};

}  // namespace russet::base
