#pragma once
// ObjectPool: fixed-size pieces of memory from free lists, so that recording calls malloc rarely and waits for nobody.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>

#include "base/spin_lock.h"

namespace russet::base {

/// Pieces for objects of type T. Each thread has a list of its own; threads that release what others allocate hand
/// pieces on through a shared list. Memory is kept for the life of the process.
template <class T>
class ObjectPool {
 public:
  static void* allocate() {
    List& list = local();
    if (list.first == nullptr) refill(list);
    Piece* const piece = list.first;
    list.first = piece->next;
    --list.count;
    return piece;
  }

  static void release(void* memory) {
    List& list = local();
    if (!list.watched) watch(list);
    list.first = new (memory) Piece{list.first};
    if (++list.count >= 2 * batch) give_back(list, batch);
  }

 private:
  struct Piece {
    Piece* next;
  };
  /// Without a destructor: objects are released even while a thread ends.
  struct List {
    Piece* first = nullptr;
    std::size_t count = 0;
    bool watched = false;  // emptied when the thread ends
  };
  /// Gives a thread's pieces to the others when it ends.
  struct Watcher {
    ~Watcher() { give_back(local(), local().count); }
  };
  struct Shared {
    SpinLock lock;
    List list;
  };

  static constexpr std::size_t piece_bytes = (sizeof(T) + 63) / 64 * 64;
  static constexpr std::size_t batch = std::max<std::size_t>(1, 4096 / piece_bytes);

  // Not inline: each mention of a shared library's variable of a thread asks where it lies, which takes longer than all
  // the rest.
  [[gnu::noinline]] static List& local() {
    static thread_local List list;
    return list;
  }
  static Shared& shared() {
    static auto* const shared = new Shared;
    return *shared;
  }

  static void watch(List& list) {
    static thread_local const Watcher watcher;
    list.watched = true;
  }

  static void refill(List& list) {
    if (!list.watched) watch(list);
    Shared& others = shared();
    const std::lock_guard lock(others.lock);
    if (others.list.first == nullptr) grow(others.list);
    for (std::size_t i = 0; i < batch && others.list.first != nullptr; ++i) move_one(others.list, list);
  }

  static void give_back(List& list, std::size_t count) {
    Shared& others = shared();
    const std::lock_guard lock(others.lock);
    for (std::size_t i = 0; i < count; ++i) move_one(list, others.list);
  }

  static void move_one(List& from, List& to) {
    Piece* const piece = from.first;
    from.first = piece->next;
    --from.count;
    piece->next = to.first;
    to.first = piece;
    ++to.count;
  }

  static void grow(List& list) {
    auto* block = static_cast<std::byte*>(::operator new (batch* piece_bytes, std::align_val_t{64}));
    for (std::size_t i = 0; i < batch; ++i) list.first = new (block + i * piece_bytes) Piece{list.first};
    list.count += batch;
  }
};

}  // namespace russet::base
