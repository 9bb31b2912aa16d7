#pragma once
// The Objective-C objects that Metal is made of, as far as russet's driver meets them: classes, methods by name,
// retain counts and autorelease pools. What Apple's runtime answers with a crash or with silence is an error or a
// report here.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/gpu/simulator/objects/send.h"

namespace russet::objects {

/// A version of macOS.
struct Version {
  int major = 10;
  int minor = 11;
  auto operator<=>(const Version&) const = default;  // NOLINT: clang-tidy 14 takes the 0 inside for a pointer
};

/// The macOS that is simulated: RUSSET_SIMULATOR_MACOS ("14", "15", "26"), else 15.
Version macos();

struct Class;

/// What every object starts with. A new one belongs to its maker: count 1.
struct Object {
  explicit Object(Class& isa) : isa(&isa) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  /// Large enough for what is left of an object when it was deallocated.
  static void* operator new(std::size_t bytes) { return ::operator new(std::max<std::size_t>(bytes, 64)); }
  static void* operator new(std::size_t, void* place) { return place; }
  static void operator delete(void* memory) { ::operator delete(memory); }

  Class* isa;
  std::atomic<int> count{1};
};

/// A method. Its function takes (self, selector, arguments...).
struct Method {
  Function function = nullptr;
  std::string types;
  Version since;
};

struct Class : Object {
  Class(std::string name, Class* parent, Class* metaclass, Version since)
      : Object(*metaclass), name(std::move(name)), parent(parent), since(since) {}

  /// The method of this class or of one above it, or nullptr.
  const Method* find(Selector selector) const;

  std::string name;
  Class* parent;
  Version since;
  std::map<Selector, Method> methods;
  std::atomic<long> live{0};  // instances
};

/// The class of this name. Throws InternalError if the table has none.
Class& class_named(std::string_view name);
Selector selector_named(std::string_view name);

/// A new object of a class of the table.
template <class T, class... A>
T* make(std::string_view class_name, A&&... arguments) {
  Class& type = class_named(class_name);
  type.live.fetch_add(1);
  return new T(type, std::forward<A>(arguments)...);
}

/// What alloc and init are for classes that are made so.
template <class T>
Object* alloc(Class* type, Selector /*alloc*/) {
  type->live.fetch_add(1);
  return new T(*type);
}
inline Object* init(Object* object, Selector /*init*/) { return object; }

/// A row of the table of messages: class, message, since when macOS has it, and the function that answers.
struct Row {
  enum class Kind : std::uint8_t { instance, class_method };

  template <class R, class S, class... A>
  Row(const char* type, const char* message, Version since, R (*function)(S*, Selector, A...))
      : type(type),
        message(message),
        since(since),
        function(reinterpret_cast<Function>(function)),
        types(signature<R, A...>()),
        kind(std::is_same_v<S, Class> ? Kind::class_method : Kind::instance) {}

  const char* type;
  const char* message;
  Version since;
  Function function;
  std::string_view types;
  Kind kind;
};

/// A class of the table, made as macOS makes it known.
struct ClassRow {
  const char* name;
  const char* parent;
  Version since;
};

// The parts of the table, each beside the functions that it names.
std::vector<Row> object_rows();
std::vector<Row> foundation_rows();
std::vector<Row> device_rows();
std::vector<Row> library_rows();
std::vector<Row> buffer_rows();
std::vector<Row> queue_rows();
std::vector<Row> encoder_rows();
/// All of them.
const std::vector<Row>& table();

// Lifetime. nil is allowed everywhere.
void retain(Object* object);
void release(Object* object);
/// Puts the object into the calling thread's innermost pool, whose end releases it; reported if there is no pool.
Object* autorelease(Object* object);
template <class T>
T* autoreleased(T* object) {
  autorelease(object);
  return object;
}
/// Objects of a class that exist: a test compares before and after.
long live_objects(std::string_view class_name);
/// All classes with live objects, as "MTLBuffer: 2".
std::vector<std::string> live_objects();

/// A reference that is counted.
template <class T>
class Held {
 public:
  Held() = default;
  explicit Held(T* object) : object_(object) { retain(object_); }
  Held(const Held& other) : Held(other.object_) {}
  Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Held& operator=(Held other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Held() { release(object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

/// A finding: use of Metal that its documentation forbids. The program goes on.
void report(std::string_view check, std::string message);

}  // namespace russet::objects
