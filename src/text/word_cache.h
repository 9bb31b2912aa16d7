#pragma once
// WordCache: the ids of words seen lately, bounded. WordCachePool: one for each thread that encodes at the moment.
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_table.h"

namespace russet::text {

class WordCache {
 public:
  static constexpr std::size_t max_word_bytes = 64;

  /// Appends the word's ids: those that are known, or those that `tokenize(word, ids)` appends.
  template <class Tokenize>
  void append(std::string_view word, std::vector<TokenId>& ids, const Tokenize& tokenize) {
    if (word.size() > max_word_bytes) return tokenize(word, ids);
    const std::uint64_t hash = hash_of(word);
    const Slot& slot = slots_[place_of(hash, word)];
    if (slot.bytes > 0) {
      ids.insert(ids.end(), ids_.begin() + slot.ids_begin, ids_.begin() + slot.ids_begin + slot.ids_count);
      return;
    }
    const std::size_t first = ids.size();
    tokenize(word, ids);
    keep(hash, word, std::span(ids).subspan(first));
  }

 private:
  struct Slot {
    std::uint64_t hash;
    std::uint32_t begin;  // of the word in words_
    std::uint32_t bytes;  // 0 where the slot is free
    std::uint32_t ids_begin;
    std::uint32_t ids_count;
  };
  static constexpr std::size_t max_words = 1 << 15;

  static std::uint64_t hash_of(std::string_view word) {
    std::uint64_t hash = word.size();
    const auto mix = [&hash](std::uint64_t bytes) {
      hash = (hash ^ bytes) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 29;
    };
    std::uint64_t bytes = 0;
    for (; word.size() > sizeof(bytes); word.remove_prefix(sizeof(bytes))) {
      std::memcpy(&bytes, word.data(), sizeof(bytes));
      mix(bytes);
    }
    bytes = 0;
    std::memcpy(&bytes, word.data(), word.size());
    mix(bytes);
    return hash;
  }
  std::size_t place_of(std::uint64_t hash, std::string_view word) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = hash & mask;
    while (slots_[place].bytes > 0 && (slots_[place].hash != hash || word_of(slots_[place]) != word)) {
      place = (place + 1) & mask;
    }
    return place;
  }
  std::string_view word_of(const Slot& slot) const { return std::string_view(words_).substr(slot.begin, slot.bytes); }

  void keep(std::uint64_t hash, std::string_view word, std::span<const TokenId> ids) {
    if (count_ == max_words) clear();
    if ((count_ + 1) * 2 > slots_.size()) grow();
    slots_[place_of(hash, word)] = {hash, static_cast<std::uint32_t>(words_.size()),
                                    static_cast<std::uint32_t>(word.size()), static_cast<std::uint32_t>(ids_.size()),
                                    static_cast<std::uint32_t>(ids.size())};
    words_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++count_;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.bytes > 0) slots_[place_of(slot.hash, word_of(slot))] = slot;
    }
  }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    words_.clear();
    ids_.clear();
    count_ = 0;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::string words_;
  std::vector<TokenId> ids_;
  std::size_t count_ = 0;
};

class WordCachePool {
 public:
  /// A cache of the holder's own, given back at the end.
  class Lease {
   public:
    explicit Lease(WordCachePool& pool) : pool_(pool), cache_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(cache_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() const { return *cache_; }

   private:
    WordCachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(free_.capacity() + 1);  // so that giving back takes no memory
      return std::make_unique<WordCache>();
    }
    std::unique_ptr<WordCache> cache = std::move(free_.back());
    free_.pop_back();
    return cache;
  }
  void give_back(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(cache));
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace russet::text
