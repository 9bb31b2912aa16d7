// The machine that reads a pickle: a stack, marks on it, and a memo, as in Python's pickle module.
#include "pickle.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <unordered_map>

namespace russet::io::pickle {
namespace {

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, Objects& objects) : bytes_(bytes), objects_(objects) {}

  Value run();
  std::size_t position() const { return position_; }

 private:
  struct Opcode {
    std::uint8_t code;
    std::string_view name;
    void (Machine::*run)();  // null: torch.save does not write it
  };
  static const Opcode opcodes[];
  static const Opcode& find_opcode(std::uint8_t code);

  // Bytes.
  std::span<const std::byte> take(std::uint64_t count);
  template <int width>
  std::uint64_t unsigned_number();
  template <int width>
  std::string_view text();
  std::string_view line();

  // The stack.
  void push(Value value) { stack_.push_back(value); }
  Value pop();
  template <class T>
  T pop_as(std::string_view wanted);
  template <class T>
  T top_as(std::string_view wanted);
  /// What was pushed since the last mark, which goes, too.
  std::vector<Value> pop_to_mark();

  // Opcodes.
  void protocol();
  void skip_frame() { take(8); }
  void stop() { stopped_ = true; }
  void mark() { marks_.push_back(stack_.size()); }
  void none() { push(std::monostate()); }
  void push_true() { push(true); }
  void push_false() { push(false); }
  template <int width>
  void push_unsigned() {
    push(static_cast<std::int64_t>(unsigned_number<width>()));
  }
  void push_int32() { push(std::int64_t{static_cast<std::int32_t>(unsigned_number<4>())}); }
  void push_long();
  void push_float();
  template <int width>
  void push_text() {
    push(text<width>());
  }
  template <int width>
  void push_bytes() {
    text<width>();
    push(Opaque());
  }
  void empty_sequence() { push(objects_.add(Sequence())); }
  void empty_dict() { push(objects_.add(Dict())); }
  template <int count>
  void make_tuple();
  void sequence_from_mark();
  void append();
  void append_from_mark();
  void set_item();
  void set_items_from_mark();
  template <int width>
  void put() {
    memo_[unsigned_number<width>()] = top();
  }
  void memoize() { memo_[memo_.size()] = top(); }
  template <int width>
  void get();
  void global();
  void global_from_stack();
  void reduce();
  void build();
  void persistent_id() { push(find_storage(objects_, pop())); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  const Value& top() const;

  std::span<const std::byte> bytes_;
  Objects& objects_;
  std::size_t position_ = 0;
  bool stopped_ = false;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Value> memo_;
};

/// All opcodes of Python's protocols 0 to 5.
constexpr Machine::Opcode Machine::opcodes[] = {
    {0x80, "PROTO", &Machine::protocol},
    {0x95, "FRAME", &Machine::skip_frame},
    {'.', "STOP", &Machine::stop},
    {'(', "MARK", &Machine::mark},
    {'N', "NONE", &Machine::none},
    {0x88, "NEWTRUE", &Machine::push_true},
    {0x89, "NEWFALSE", &Machine::push_false},
    {'J', "BININT", &Machine::push_int32},
    {'K', "BININT1", &Machine::push_unsigned<1>},
    {'M', "BININT2", &Machine::push_unsigned<2>},
    {0x8a, "LONG1", &Machine::push_long},
    {'G', "BINFLOAT", &Machine::push_float},
    {'X', "BINUNICODE", &Machine::push_text<4>},
    {0x8c, "SHORT_BINUNICODE", &Machine::push_text<1>},
    {0x8d, "BINUNICODE8", &Machine::push_text<8>},
    {'U', "SHORT_BINSTRING", &Machine::push_text<1>},  // Python 2's texts
    {'B', "BINBYTES", &Machine::push_bytes<4>},
    {'C', "SHORT_BINBYTES", &Machine::push_bytes<1>},
    {0x8e, "BINBYTES8", &Machine::push_bytes<8>},
    {0x96, "BYTEARRAY8", &Machine::push_bytes<8>},
    {']', "EMPTY_LIST", &Machine::empty_sequence},
    {')', "EMPTY_TUPLE", &Machine::empty_sequence},
    {0x8f, "EMPTY_SET", &Machine::empty_sequence},
    {'}', "EMPTY_DICT", &Machine::empty_dict},
    {0x85, "TUPLE1", &Machine::make_tuple<1>},
    {0x86, "TUPLE2", &Machine::make_tuple<2>},
    {0x87, "TUPLE3", &Machine::make_tuple<3>},
    {'t', "TUPLE", &Machine::sequence_from_mark},
    {0x91, "FROZENSET", &Machine::sequence_from_mark},
    {'a', "APPEND", &Machine::append},
    {'e', "APPENDS", &Machine::append_from_mark},
    {0x90, "ADDITEMS", &Machine::append_from_mark},
    {'s', "SETITEM", &Machine::set_item},
    {'u', "SETITEMS", &Machine::set_items_from_mark},
    {'q', "BINPUT", &Machine::put<1>},
    {'r', "LONG_BINPUT", &Machine::put<4>},
    {0x94, "MEMOIZE", &Machine::memoize},
    {'h', "BINGET", &Machine::get<1>},
    {'j', "LONG_BINGET", &Machine::get<4>},
    {'c', "GLOBAL", &Machine::global},
    {0x93, "STACK_GLOBAL", &Machine::global_from_stack},
    {'R', "REDUCE", &Machine::reduce},
    {'b', "BUILD", &Machine::build},
    {'Q', "BINPERSID", &Machine::persistent_id},
    // Objects of classes, the text forms of protocol 0, and what torch.save has no need of.
    {'i', "INST", nullptr},
    {'o', "OBJ", nullptr},
    {0x81, "NEWOBJ", nullptr},
    {0x92, "NEWOBJ_EX", nullptr},
    {0x82, "EXT1", nullptr},
    {0x83, "EXT2", nullptr},
    {0x84, "EXT4", nullptr},
    {'P', "PERSID", nullptr},
    {'I', "INT", nullptr},
    {'L', "LONG", nullptr},
    {0x8b, "LONG4", nullptr},
    {'F', "FLOAT", nullptr},
    {'S', "STRING", nullptr},
    {'T', "BINSTRING", nullptr},
    {'V', "UNICODE", nullptr},
    {'d', "DICT", nullptr},
    {'l', "LIST", nullptr},
    {'g', "GET", nullptr},
    {'p', "PUT", nullptr},
    {'0', "POP", nullptr},
    {'1', "POP_MARK", nullptr},
    {'2', "DUP", nullptr},
    {0x97, "NEXT_BUFFER", nullptr},
    {0x98, "READONLY_BUFFER", nullptr},
};

const Machine::Opcode& Machine::find_opcode(std::uint8_t code) {
  constexpr auto rows = [] {
    std::array<std::uint8_t, 256> places{};
    places.fill(std::size(opcodes));
    for (std::size_t row = 0; row < std::size(opcodes); ++row) {
      places[opcodes[row].code] = static_cast<std::uint8_t>(row);
    }
    return places;
  }();
  if (rows[code] == std::size(opcodes)) throw FileError(fmt::format("0x{:02x} is no opcode of a pickle", code));
  const Opcode& opcode = opcodes[rows[code]];
  if (opcode.run == nullptr) {
    throw FileError(
        fmt::format("the opcode {} is not among those that torch.save writes for tensors and containers", opcode.name));
  }
  return opcode;
}

std::span<const std::byte> Machine::take(std::uint64_t count) {
  if (count > bytes_.size() - position_) throw FileError("it is truncated");
  const auto taken = bytes_.subspan(position_, count);
  position_ += count;
  return taken;
}

/// Little-endian.
template <int width>
std::uint64_t Machine::unsigned_number() {
  std::uint64_t number = 0;
  int shift = 0;
  for (const std::byte byte : take(width)) {
    number |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return number;
}

/// Its length, in `width` bytes, comes first.
template <int width>
std::string_view Machine::text() {
  const auto taken = take(unsigned_number<width>());
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

std::string_view Machine::line() {
  const auto rest = bytes_.subspan(position_);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
  if (end == rest.end()) throw FileError("it is truncated");
  const auto taken = take(static_cast<std::uint64_t>(end - rest.begin()));
  ++position_;
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

const Value& Machine::top() const {
  if (stack_.size() <= floor()) throw FileError("it takes a value where none is");
  return stack_.back();
}

Value Machine::pop() {
  const Value value = top();
  stack_.pop_back();
  return value;
}

template <class T>
T Machine::top_as(std::string_view wanted) {
  if (const T* held = std::get_if<T>(&top())) return *held;
  throw FileError(fmt::format("{} stands where {} should be", kind_of(top()), wanted));
}

template <class T>
T Machine::pop_as(std::string_view wanted) {
  const T held = top_as<T>(wanted);
  stack_.pop_back();
  return held;
}

std::vector<Value> Machine::pop_to_mark() {
  if (marks_.empty()) throw FileError("it takes the values behind a mark where no mark is");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Value> values(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return values;
}

void Machine::protocol() {
  const std::uint64_t version = unsigned_number<1>();
  if (version < 2 || version > 5) throw FileError(fmt::format("its protocol is {}, not one of 2 to 5", version));
}

/// Two's complement, little-endian; its length comes first.
void Machine::push_long() {
  const std::string_view digits = text<1>();
  if (digits.size() > 8) return push(Opaque());
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    number |= std::uint64_t{static_cast<std::uint8_t>(digits[i])} << (8 * i);
  }
  const bool negative = !digits.empty() && (static_cast<std::uint8_t>(digits.back()) & 0x80U) != 0;
  if (negative && digits.size() < 8) number |= ~std::uint64_t{0} << (8 * digits.size());
  push(static_cast<std::int64_t>(number));
}

/// Big-endian.
void Machine::push_float() { push(std::bit_cast<double>(__builtin_bswap64(unsigned_number<8>()))); }

template <int count>
void Machine::make_tuple() {
  Sequence tuple;
  tuple.items.resize(count);
  for (int place = count; place-- > 0;) tuple.items[static_cast<std::size_t>(place)] = pop();
  push(objects_.add(std::move(tuple)));
}

void Machine::sequence_from_mark() { push(objects_.add(Sequence{pop_to_mark()})); }

void Machine::append() {
  const Value value = pop();
  top_as<Sequence*>("a list")->items.push_back(value);
}

void Machine::append_from_mark() {
  const std::vector<Value> values = pop_to_mark();
  std::vector<Value>& items = top_as<Sequence*>("a list or a set")->items;
  items.insert(items.end(), values.begin(), values.end());
}

void Machine::set_item() {
  const Value value = pop();
  const Value key = pop();
  top_as<Dict*>("a dict")->items.emplace_back(key, value);
}

void Machine::set_items_from_mark() {
  const std::vector<Value> values = pop_to_mark();
  if (values.size() % 2 != 0) throw FileError("a key of a dict has no value");
  std::vector<std::pair<Value, Value>>& items = top_as<Dict*>("a dict")->items;
  for (std::size_t i = 0; i < values.size(); i += 2) items.emplace_back(values[i], values[i + 1]);
}

template <int width>
void Machine::get() {
  const std::uint64_t place = unsigned_number<width>();
  const auto found = memo_.find(place);
  if (found == memo_.end()) throw FileError(fmt::format("it takes value {} of its memo, which has none there", place));
  push(found->second);
}

void Machine::global() {
  const std::string_view module = line();
  push(find_global(module, line()));
}

void Machine::global_from_stack() {
  const auto name = pop_as<std::string_view>("the name of a global");
  push(find_global(pop_as<std::string_view>("the module of a global"), name));
}

void Machine::reduce() {
  const Sequence* const arguments = pop_as<Sequence*>("a tuple of arguments");
  const Global* const global = pop_as<const Global*>("a function");
  if (global->call == nullptr) throw FileError(fmt::format("{} is called, but is no function", global->name));
  push(global->call(objects_, arguments->items));
}

/// Attributes of an object: an OrderedDict's alone are let pass, as state_dict() gives it the versions of its modules.
void Machine::build() {
  pop();
  top_as<Dict*>("an OrderedDict, the one object that has attributes here");
}

Value Machine::run() {
  while (!stopped_) (this->*find_opcode(static_cast<std::uint8_t>(take(1)[0])).run)();
  if (!marks_.empty()) throw FileError("it ends behind a mark");
  return pop();
}

}  // namespace

Value unpickle(std::span<const std::byte> bytes, Objects& objects, std::size_t* size) {
  Machine machine(bytes, objects);
  try {
    const Value value = machine.run();
    if (size != nullptr) *size = machine.position();
    return value;
  } catch (const FileError& error) {
    throw FileError(fmt::format("byte {} of the pickle: {}", machine.position(), error.what()));
  }
}

std::string_view kind_of(const Value& value) {
  constexpr std::string_view kinds[] = {"None",     "a bool",    "an integer",      "a float",
                                        "a text",   "a value",   "a list or tuple", "a dict",
                                        "a global", "a storage", "a tensor"};
  static_assert(std::size(kinds) == std::variant_size_v<Value>);
  return kinds[value.index()];
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  std::string shown(text.substr(0, most));
  for (char& letter : shown) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  }
  return text.size() > most ? shown + "..." : shown;
}

}  // namespace russet::io::pickle
