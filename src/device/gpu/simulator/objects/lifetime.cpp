// Retain counts, autorelease pools, and what NSObject answers.
#include <fmt/format.h>
#include <russet/error.h>

#include <deque>
#include <mutex>

#include "device/gpu/simulator/objects/object.h"
#include "device/gpu/simulator/objects/zombie.h"

namespace russet::objects {
namespace {

/// Zombies beyond these are given back to the heap.
constexpr std::size_t kept_zombies = 4096;

/// Lies where the object was: a smaller or equal block of memory.
struct Zombie final : Object {
  Zombie(Class& isa, Class& was) : Object(isa), was(&was) {}
  Class* was;
};

Class& zombie_isa() {
  static auto* const isa = [] {
    auto* const memory = static_cast<Class*>(::operator new(sizeof(Class)));
    return new (memory) Class("deallocated object", nullptr, memory, Version{10, 0});
  }();
  return *isa;
}

struct Graveyard {
  std::mutex mutex;
  std::deque<void*> zombies;
};

void bury(Object* object) {
  static auto* const graveyard = new Graveyard;
  Class& was = *object->isa;
  was.live.fetch_sub(1);
  object->~Object();
  new (object) Zombie(zombie_isa(), was);
  const std::lock_guard lock(graveyard->mutex);
  graveyard->zombies.push_back(object);
  if (graveyard->zombies.size() <= kept_zombies) return;
  ::operator delete(graveyard->zombies.front());
  graveyard->zombies.pop_front();
}

struct Pool final : Object {
  explicit Pool(Class& isa) : Object(isa) {}
  std::vector<Object*> objects;
};

/// The pools of this thread, innermost last.
std::vector<Pool*>& pools() {
  thread_local std::vector<Pool*> stack;
  return stack;
}

// [NSAutoreleasePool drain] and release end a pool and all that were opened in it and left open.
void end_pool(Pool* pool, Selector /*drain*/) {
  std::vector<Pool*>& stack = pools();
  if (std::find(stack.begin(), stack.end(), pool) == stack.end()) {
    report("lifetime", "an autorelease pool was ended on a thread that did not open it, or twice");
    return;
  }
  while (true) {
    Pool* const last = stack.back();
    stack.pop_back();
    if (last != pool) report("lifetime", "an autorelease pool was ended before one that was opened inside of it");
    for (std::size_t i = 0; i < last->objects.size(); ++i) release(last->objects[i]);
    bury(last);
    if (last == pool) return;
  }
}

Object* alloc_pool(Class* type, Selector /*alloc*/) {
  type->live.fetch_add(1);
  return new Pool(*type);
}

Object* init_pool(Pool* pool, Selector /*init*/) {
  pools().push_back(pool);
  return pool;
}

bool responds(Object* object, Selector /*respondsToSelector:*/, Selector selector) {
  const Method* const method = object->isa->find(selector);
  return method != nullptr && method->since <= macos();
}

}  // namespace

const std::string* zombie_class(const Object& object) {
  return object.isa == &zombie_isa() ? &static_cast<const Zombie&>(object).was->name : nullptr;
}

void retain(Object* object) {
  if (object != nullptr) object->count.fetch_add(1);
}

void release(Object* object) {
  if (object == nullptr) return;
  if (const std::string* const was = zombie_class(*object)) {
    report("lifetime", fmt::format("a {} was released once too often", *was));
    return;
  }
  if (object->count.fetch_sub(1) == 1) bury(object);
}

Object* autorelease(Object* object) {
  if (object == nullptr) return nullptr;
  if (pools().empty()) {
    report("lifetime", fmt::format("a {} was autoreleased on a thread without a pool: it leaks", object->isa->name));
  } else {
    pools().back()->objects.push_back(object);
  }
  return object;
}

std::vector<Row> object_rows() {
  constexpr Version always{10, 0};
  return {
      {"NSObject", "retain", always,
       +[](Object* object, Selector) {
         retain(object);
         return object;
       }},
      {"NSObject", "release", always, +[](Object* object, Selector) { release(object); }},
      {"NSObject", "respondsToSelector:", always, &responds},
      {"NSObject", "methodSignatureForSelector:", always,  // asked where a method may be missing: none is forwarded
       +[](Object*, Selector, Selector) -> Object* { return nullptr; }},
      {"NSAutoreleasePool", "alloc", always, &alloc_pool},
      {"NSAutoreleasePool", "init", always, &init_pool},
      {"NSAutoreleasePool", "drain", always, &end_pool},
      {"NSAutoreleasePool", "release", always, &end_pool},
  };
}

}  // namespace russet::objects
