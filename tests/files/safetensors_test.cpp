#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/io.h>

#include <cstring>

#include "files/damage.h"

namespace russet::files {
namespace {

Bytes file_of(const std::string& header, std::size_t data_bytes) {
  Bytes file;
  for (std::size_t i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  const Bytes text = bytes_of(header);
  file.insert(file.end(), text.begin(), text.end());
  file.resize(file.size() + data_bytes);
  return file;
}

Parser parser() {
  return [](std::span<const std::byte> file) { io::parse_safetensors(file, "a.safetensors"); };
}

/// Made by the Python package safetensors 0.6: save({"weight": float32 [[-2.5, ..., 2.5]], "count": int64 [7],
/// "mask": bool [1, 0, 1], "scalar": float16 1.5}, metadata={"format": "np", "by": "test"}).
Bytes reference_file() {
  const std::string text =
      "18010000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226e70222c226279223a2274657374227d2c22636f75"
      "6e74223a7b226474797065223a22493634222c227368617065223a5b315d2c22646174615f6f666673657473223a5b302c385d7d2c227765"
      "69676874223a7b226474797065223a22463332222c227368617065223a5b322c335d2c22646174615f6f666673657473223a5b382c33325d"
      "7d2c227363616c6172223a7b226474797065223a22463136222c227368617065223a5b5d2c22646174615f6f666673657473223a5b33322c"
      "33345d7d2c226d61736b223a7b226474797065223a22424f4f4c222c227368617065223a5b335d2c22646174615f6f666673657473223a5b"
      "33342c33375d7d7d0700000000000000000020c00000c0bf000000bf0000003f0000c03f00002040003e010001";
  Bytes file;
  for (std::size_t i = 0; i < text.size(); i += 2)
    file.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return file;
}

TEST(Safetensors, ReadsTheReferencesFile) {
  const TemporaryFolder folder;
  write(folder / "a.safetensors", reference_file());
  const io::SafetensorsFile file(folder / "a.safetensors");
  EXPECT_EQ(file.metadata(), (io::Metadata{{"by", "test"}, {"format", "np"}}));
  ASSERT_EQ(file.entries().size(), 4U);
  EXPECT_EQ(file.entries()[0].name, "count");
  const StateDict all = file.tensors();
  EXPECT_EQ(all.at("weight").sizes(), (Shape{2, 3}));
  EXPECT_EQ(all.at("weight").dtype(), DType::float32);
  EXPECT_EQ(all.at("weight").to_vector<float>(), (std::vector<float>{-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F}));
  EXPECT_EQ(all.at("count").to_vector<std::int64_t>(), std::vector<std::int64_t>{7});
  EXPECT_EQ(all.at("mask").to_vector<int>(), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(all.at("scalar").sizes(), Shape{});
  EXPECT_EQ(all.at("scalar").to_vector<float>(), std::vector<float>{1.5F});
}

TEST(Safetensors, ComesBackInOrder) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  StateDict state;
  state.insert("z", Tensor::from<std::int8_t>({1, -2, 3}, {3}));
  state.insert("a.weight", Tensor::from<double>({1.25, -7}, {2, 1}));
  state.insert("empty", Tensor::from<float>({}, {0, 4}));
  state.insert("scalar", Tensor::from<std::int64_t>({-5}, {}));
  state.insert("naïve \"name\"\n", Tensor::from<bfloat16>({bfloat16(0.5F)}, {1}));
  io::save_safetensors(path, state, {{"key", "a \"value\""}});

  const io::SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("key"), "a \"value\"");
  ASSERT_EQ(file.entries().size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    EXPECT_EQ(file.entries()[i].name, name);
    const Tensor read = file.tensor(file.entries()[i]);
    EXPECT_EQ(read.dtype(), tensor.dtype());
    EXPECT_EQ(read.sizes(), tensor.sizes());
    EXPECT_EQ(read.to_bytes(), tensor.to_bytes());
    // Every tensor lies aligned to its element.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.bytes(file.entries()[i]).data()) % size_of(tensor.dtype()), 0U)
        << name;
  }
  io::save_safetensors(path, {});
  EXPECT_TRUE(io::load_safetensors(path).empty());
}

// Tensors are written in pieces of 4 MiB: of one that has several, one of which lies otherwise, nothing is lost.
TEST(Safetensors, LargeTensorsComeBack) {
  const TemporaryFolder folder;
  StateDict state;
  const std::int64_t rows = 1900;
  state.insert("whole", arange(rows * 1000).reshape({rows, 1000}));
  state.insert("turned", arange(rows * 1000).reshape({rows, 1000}).t());
  state.insert("part", arange(rows * 1000).reshape({rows, 1000}).slice(0, {1, rows}));
  const auto expect_same = [&](const StateDict& read) {
    for (const auto& [name, tensor] : state) EXPECT_EQ(read.at(name).to_bytes(), tensor.to_bytes()) << name;
  };
  io::save_safetensors(folder / "a.safetensors", state);
  expect_same(io::load_safetensors(folder / "a.safetensors"));
  io::save_checkpoint(folder / "a.checkpoint", {state, "{}"});
  expect_same(io::load_checkpoint(folder / "a.checkpoint").tensors);
}

TEST(Safetensors, MissingNamesAreListed) {
  const TemporaryFolder folder;
  write(folder / "a.safetensors", reference_file());
  const io::SafetensorsFile file(folder / "a.safetensors");
  const std::string message = file_error([&] { file.at("x"); });
  EXPECT_NE(message.find("there is no tensor \"x\"; it holds \"count\", \"weight\""), std::string::npos) << message;
}

TEST(Safetensors, EveryTruncationIsRefused) { expect_truncations_refused(reference_file(), parser()); }

TEST(Safetensors, FlippedBitsAreSurvived) {
  const int refused = expect_flips_survived(reference_file(), parser(), 3000);
  EXPECT_GT(refused, 1500);  // most of the file is its header
}

struct Damage {
  const char* header;
  std::size_t data_bytes;
  const char* message;
};

TEST(Safetensors, DamagedHeadersAreRefused) {
  const std::string nested(200'000, '[');
  const Damage cases[] = {
      {"", 0, "no JSON object"},
      {"[]", 0, "no JSON object"},
      {"{", 0, "no JSON from byte"},
      {"{} x", 0, "no JSON from byte"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "does not fit its bytes"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "does not fit its bytes"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "truncated"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9, "1 bytes follow the last tensor"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12, "gap"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "overlap"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "there twice"},
      {R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1, "the type \"F8_E4M3\""},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "a negative number"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "not whole"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, "lacks one of"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "a number where none may be"},
      {R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "lacks one of"},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1, "more than 8 dimensions"},
      {R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "does not fit"},
      {R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, "does not fit"},
      {R"({"a":{"dtype":"F64","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]}})", 0,
       "does not fit"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0]}})", 0, "a size of"},
      {R"({"a":5})", 0, "a number where none may be"},
      {R"({"a":{"b":{}}})", 0, "an object where none may be"},
      {R"({"__metadata__":{"a":5}})", 0, "a number where none may be"},
      {R"({"__metadata__":{"a":"b","a":"c"}})", 0, "there twice in the metadata"},
      {"{\"a\xff\":{}}", 0, "no JSON from byte"},
  };
  for (const Damage& damage : cases) {
    const std::string message = file_error([&] { parser()(file_of(damage.header, damage.data_bytes)); });
    EXPECT_NE(message.find(damage.message), std::string::npos) << damage.header << "\n" << message;
    EXPECT_TRUE(message.starts_with("a.safetensors: ")) << message;
  }
  EXPECT_THROW(parser()(file_of("{\"a\":" + nested, 0)), FileError);
}

TEST(Safetensors, HeaderLengthsBeyondTheFileAreRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    Bytes file = file_of("{}", 0);
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_THROW(parser()(file), FileError) << length;
  }
}

TEST(Safetensors, WhatIsNoFileIsRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(file_error([&] { io::load_safetensors(folder / "nowhere"); }).find("nowhere: cannot open it"),
            std::string::npos);
  EXPECT_NE(file_error([&] { io::load_safetensors(folder.path()); }).find("not a regular file"), std::string::npos);
  write(folder / "empty", {});
  EXPECT_NE(file_error([&] { io::load_safetensors(folder / "empty"); }).find("0 bytes are no safetensors file"),
            std::string::npos);
}

}  // namespace
}  // namespace russet::files
