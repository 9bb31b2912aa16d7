// The pickle reader alone: what it lets pass, and what it refuses by name.
#include "io/pickle.h"

#include <gtest/gtest.h>
#include <russet/error.h>

#include "files/damage.h"
#include "files/torch_archive.h"

namespace russet::files {
namespace {

using namespace std::string_literals;

Parser parser() {
  return [](std::span<const std::byte> bytes) {
    io::pickle::Objects objects;
    io::pickle::unpickle(bytes, objects);
  };
}

std::string error_of(const std::string& opcodes) {
  return file_error([&] { parser()(bytes_of(std::string(pickle_start) + opcodes)); });
}

/// The one value that a pickle of these opcodes is.
template <class T>
T read(const std::string& opcodes) {
  const Bytes bytes = bytes_of(std::string(pickle_start) + opcodes);
  io::pickle::Objects objects;
  return std::get<T>(io::pickle::unpickle(bytes, objects));
}

TEST(Pickle, ReadsNumbers) {
  EXPECT_EQ(read<std::int64_t>("K\xff."), 255);
  EXPECT_EQ(read<std::int64_t>("M\x01\x02."), 513);
  EXPECT_EQ(read<std::int64_t>("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(read<std::int64_t>("\x8a\x00."s), 0);
  EXPECT_EQ(read<std::int64_t>("\x8a\x01\xff."), -1);
  EXPECT_EQ(read<std::int64_t>("\x8a\x02\xff\x00."s), 255);
  EXPECT_EQ(read<std::int64_t>("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s), INT64_MIN);
  EXPECT_EQ(read<double>("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s), 1.5);
  EXPECT_EQ(read<bool>("\x88."), true);
  read<io::pickle::Opaque>("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s);  // 2^64
}

TEST(Pickle, SaysWhereItEnds) {
  const Bytes bytes = bytes_of("\x80\x02K\x07.rest");
  io::pickle::Objects objects;
  std::size_t size = 0;
  EXPECT_EQ(std::get<std::int64_t>(io::pickle::unpickle(bytes, objects, &size)), 7);
  EXPECT_EQ(size, 5U);
}

TEST(Pickle, ReadsThoseOfPython2) {
  // OrderedDict([["a", 1], ["b", 2]])
  const Bytes bytes = bytes_of(
      "\x80\x02"
      "ccollections\nOrderedDict\nq\x01](](U\x01"
      "aK\x01"
      "e](U\x01"
      "bK\x02"
      "ee\x85R.");
  io::pickle::Objects objects;
  const auto* dict = std::get<io::pickle::Dict*>(io::pickle::unpickle(bytes, objects));
  ASSERT_EQ(dict->items.size(), 2U);
  ASSERT_NE(dict->find("b"), nullptr);
  EXPECT_EQ(std::get<std::int64_t>(*dict->find("b")), 2);
  EXPECT_EQ(dict->find("c"), nullptr);
}

TEST(Pickle, ReadsContainersThatHoldEachOther) {
  // d = {}; d["d"] = d; [d, (d,)]
  const Bytes bytes = bytes_of(
      "\x80\x04]\x94(}\x94\x8c\x01"
      "dh\x01sh\x01\x85"
      "e.");
  io::pickle::Objects objects;
  const auto* list = std::get<io::pickle::Sequence*>(io::pickle::unpickle(bytes, objects));
  ASSERT_EQ(list->items.size(), 2U);
  auto* const dict = std::get<io::pickle::Dict*>(list->items[0]);
  EXPECT_EQ(std::get<std::string_view>(dict->items.at(0).first), "d");
  EXPECT_EQ(std::get<io::pickle::Dict*>(dict->items.at(0).second), dict);
  EXPECT_EQ(std::get<io::pickle::Dict*>(std::get<io::pickle::Sequence*>(list->items[1])->items.at(0)), dict);
}

struct Damage {
  std::string opcodes;
  const char* message;
};

TEST(Pickle, DamagedOnesAreRefused) {
  const Damage cases[] = {
      {"cos\nsystem\n", "it names os.system, which is neither a tensor nor a container"},
      {"\x8c\x08"
       "builtins\x8c\x04"
       "eval\x93.",
       "it names builtins.eval"},
      {"ctorch.storage\n_load_from_bytes\n.", "it names torch.storage._load_from_bytes"},
      {"c\x1b[2J\nx\n.", "it names ?[2J.x"},
      {"ctorch\nComplexFloatStorage\n.", "torch.ComplexFloatStorage is a data type that russet does not have"},
      {"ctorch\nuint16\n.", "torch.uint16 is a data type"},
      {"i", "the opcode INST is not among those"},
      {")\x81.", "the opcode NEWOBJ is not among those"},
      {"\xff", "0xff is no opcode"},
      {"\x80\x00."s, "its protocol is 0"},
      {"\x80\x06.", "its protocol is 6"},
      {"", "truncated"},
      {"N", "truncated"},
      {"X\xff\xff\xff\xffxyz.", "truncated"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "truncated"},
      {"cnobody\nends", "truncated"},
      {".", "it takes a value where none is"},
      {"(.", "it ends behind a mark"},
      {"N(q\x01.", "it takes a value where none is"},
      {"t.", "where no mark is"},
      {"h\x07.", "it takes value 7 of its memo, which has none there"},
      {"}(Nu.", "a key of a dict has no value"},
      {"]NNs.", "a list or tuple stands where a dict should be"},
      {"}Na.", "a dict stands where a list should be"},
      {"N)R.", "None stands where a function should be"},
      {"ctorch\nFloatStorage\n)R.", "torch.FloatStorage is called, but is no function"},
      {"ccollections\nOrderedDict\nNR.", "None stands where a tuple of arguments should be"},
      {"ctorch._utils\n_rebuild_tensor_v2\n)R.", "_rebuild_tensor_v2 is called with 0 arguments"},
      {"ccollections\nOrderedDict\nN\x85R.", "the content of a dict is None"},
      {"ccollections\nOrderedDict\n](Ne\x85R.", "an item of a dict is None"},
      {"ccollections\nOrderedDict\n](]e\x85R.", "an item of a dict has 0 parts"},
      {"NNb.", "None stands where an OrderedDict"},
      {"NQ.", "the persistent id is None"},
      {")Q.", "a persistent id is not that of a storage"},
      {"(" + pickled(std::string_view("storage")) + "NNNNK\x01tQ.", "a storage is a view of another one"},
      {pickled(PickledTensor{.sizes = {1, 1, 1, 1, 1, 1, 1, 1, 1}}) + ".", "9 dimensions, more than 8"},
      {pickled(PickledTensor{.storage = "torch\nfloat32"}) + ".", "the type of a storage is torch.float32"},
      {pickled(PickledTensor{.storage = "torch.storage\nUntypedStorage"}) + ".", "has no data type"},
  };
  for (const Damage& damage : cases) {
    const std::string message = error_of(damage.opcodes);
    EXPECT_NE(message.find(damage.message), std::string::npos) << damage.message << "\n" << message;
    EXPECT_TRUE(message.starts_with("byte ")) << message;
  }
}

TEST(Pickle, DepthIsNoMatter) {
  constexpr std::size_t depth = 1'000'000;
  const std::string lists(depth, ']');
  parser()(bytes_of(std::string(pickle_start) + lists + std::string(depth - 1, 'a') + "."));
  EXPECT_NE(error_of(std::string(depth, '(').append("N.")).find("it ends behind a mark"), std::string::npos);
}

TEST(Pickle, EveryTruncationIsRefused) {
  expect_truncations_refused(bytes_of(pickled_dict({{"a", {}}, {"b", {}}})), parser());
}

TEST(Pickle, FlippedBitsAreSurvived) {
  EXPECT_GT(expect_flips_survived(bytes_of(pickled_dict({{"a", {}}, {"b", {}}})), parser(), 3000), 1500);
}

}  // namespace
}  // namespace russet::files
