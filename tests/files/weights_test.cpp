// Files of weights: the format is told by content; PyTorch's archives and indices, good and damaged. What PyTorch
// itself wrote is read by golden/weights_test.cpp.
#include <gtest/gtest.h>
#include <russet/io.h>

#include <cstring>

#include "files/damage.h"
#include "files/torch_archive.h"

namespace russet::files {
namespace {

using namespace std::string_literals;

Bytes floats(std::initializer_list<float> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

const std::map<std::string, Bytes> six{{"0", floats({0, 1, 2, 3, 4, 5})}};

const std::string good_pickle = pickled_dict({{"whole", {}},
                                              {"transposed", {.sizes = {3, 2}, .strides = {1, 3}}},
                                              {"row", {.offset = 3, .sizes = {3}, .strides = {1}}},
                                              {"scalar", {.offset = 5, .sizes = {}, .strides = {}}},
                                              {"empty", {.sizes = {0, 2}, .strides = {2, 1}}}});

Bytes good_archive() { return torch_archive(good_pickle, six); }
Bytes good_stream() { return torch_stream(good_pickle, six); }

class Weights : public ::testing::Test {
 protected:
  io::WeightsFile open(const Bytes& content) { return open("weights", content); }
  io::WeightsFile open(const std::string& name, const Bytes& content) {
    std::filesystem::remove(folder / name);  // ext4 would wait for the disk where a file's content is replaced
    write(folder / name, content);
    return io::WeightsFile(folder / name);
  }
  /// The error of a file that is opened and read, without the folder in front.
  std::string error_of(const Bytes& content) {
    const std::string message = file_error([&] { open(content).tensors(); });
    const std::string start = (folder / "weights").string() + ": ";
    EXPECT_TRUE(message.starts_with(start)) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  void expect_error(const Bytes& content, const std::string& part) {
    const std::string message = error_of(content);
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }

  const TemporaryFolder folder;
};

TEST_F(Weights, OfPyTorchAreViewsOfTheirStorages) {
  for (const Bytes& content : {good_archive(), good_stream()}) {
    const io::WeightsFile file = open(content);
    ASSERT_EQ(file.entries().size(), 5U);
    EXPECT_EQ(file.entries()[1].name, "transposed");
    EXPECT_EQ(file.find("transposed")->shape, (Shape{3, 2}));
    EXPECT_EQ(file.find("x"), nullptr);
    const StateDict state = file.tensors();
    EXPECT_EQ(state.at("whole").to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(state.at("transposed").to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(state.at("row").to_vector<float>(), (std::vector<float>{3, 4, 5}));
    EXPECT_EQ(state.at("scalar").sizes(), Shape{});
    EXPECT_EQ(state.at("empty").sizes(), (Shape{0, 2}));
    state.at("whole").fill_(7);
    EXPECT_EQ(state.at("scalar").to_vector<float>(), std::vector<float>{7});
  }
}

TEST_F(Weights, SafetensorsAreToldByContent) {
  io::save_safetensors(folder / "model.pth", {{"a", Tensor::from<float>({1, 2}, {2})}}, {{"key", "value"}});
  const io::WeightsFile file(folder / "model.pth");
  EXPECT_EQ(file.metadata().at("key"), "value");
  EXPECT_EQ(file.entries()[0].shape, Shape{2});
  EXPECT_EQ(file.tensors().at("a").to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(Weights, SafetensorsMayBeginLikeAPickle) {
  const std::string header = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";
  constexpr std::size_t length = 0x280;
  std::string content = "\x80\x02\0\0\0\0\0\0"s + header + std::string(length - header.size(), ' ');
  content.append(4, '\0');
  EXPECT_EQ(open(bytes_of(content)).entries()[0].name, "a");
}

TEST_F(Weights, TheStateDictIsFoundUnderTheUsualKeys) {
  const std::string inner = "}" + pickled(std::string_view("a")) + pickled(PickledTensor{}) + "s";
  const auto with = [&](std::string_view key, const std::string& value) {
    return torch_archive(
        std::string(pickle_start) + "}" + pickled(std::string_view("epoch")) + "K\x05s" + pickled(key) + value + "s.",
        six);
  };
  for (const std::string_view key :
       {"state_dict", "model_state_dict", "model", "module", "net", "network", "weights"}) {
    EXPECT_NE(open(with(key, inner)).find("a"), nullptr) << key;
  }
  const std::string nested = "}" + pickled(std::string_view("state_dict")) + inner + "s";
  EXPECT_NE(open(with("model", nested)).find("a"), nullptr);
  expect_error(with("generator", inner), "it has no state dict; its keys are: epoch (an integer), generator (a dict)");
  expect_error(with("model", "}"), "it has no state dict; its keys are: none");
  expect_error(torch_archive(std::string(pickle_start) + pickled(PickledTensor{}) + ".", six),
               "it holds a tensor, not a state dict");
}

TEST_F(Weights, DictsThatHoldThemselvesEnd) {
  const std::string self = std::string(pickle_start) + "}q\x01" + pickled(std::string_view("model")) + "h\x01s.";
  expect_error(torch_archive(self, {}), "it has no state dict; its keys are: model.model.model.model.model (a dict)");
}

constexpr std::int64_t huge = std::int64_t{1} << 62;

TEST_F(Weights, TensorsOutsideTheirStorageAreRefused) {
  struct Damage {
    PickledTensor tensor;
    const char* message;
  };
  const Damage cases[] = {
      {{.offset = 1}, "tensor \"a\": its sizes [2, 3], strides [3, 1] and offset 1 reach beyond its storage of 6"},
      {{.offset = INT64_MAX}, "reach beyond its storage"},
      {{.offset = -1}, "are those of no tensor"},
      {{.sizes = {-2, 3}}, "are those of no tensor"},
      {{.strides = {-3, 1}}, "are those of no tensor"},
      {{.strides = {1}}, "are those of no tensor"},
      {{.strides = {huge, huge}}, "reach beyond its storage"},
      {{.sizes = {huge, huge}, .strides = {0, 0}}, "has more bytes than the file"},
      {{.sizes = {1 << 20}, .strides = {0}}, "has more bytes than the file"},
      {{.sizes = {0, huge, huge}, .strides = {1, 1, 1}}, "has more bytes than the file"},
      {{.storage = "torch\nDoubleStorage"}, "reach beyond its storage of 3"},
      {{.key = "1"}, "archive/data/1: the archive has no such entry"},
      {{.key = "../data.pkl"}, "archive/data/../data.pkl: the archive has no such entry"},
  };
  for (const Damage& damage : cases) {
    expect_error(torch_archive(pickled_dict({{"a", damage.tensor}}), six), damage.message);
  }
  expect_error(torch_archive(pickled_dict({{"a", {}}, {"b", {.storage = "torch\nIntStorage"}}}), six),
               "tensor \"b\": its storage holds tensors of two types");
}

TEST_F(Weights, ArchivesOfOthersAreRefused) {
  expect_error(zip_archive({{"a.txt", bytes_of("a")}}), "none of torch.save's: it has no data.pkl");
  expect_error(zip_archive({{"a/data.pkl", bytes_of("a")}, {"a/constants.pkl", bytes_of("a")}}),
               "a TorchScript archive");
  expect_error(zip_archive({{"a/data.pkl", bytes_of("a")}, {"a/byteorder", bytes_of("big")}}), "byte order is \"big\"");
  expect_error(torch_archive(std::string(pickle_start) + "cos\nsystem\n.", {}), "it names os.system");
}

/// Where the bytes `text` begin in the file, for the last time.
std::size_t last(const Bytes& file, const std::string& text) {
  const Bytes wanted = bytes_of(text);
  return static_cast<std::size_t>(std::find_end(file.begin(), file.end(), wanted.begin(), wanted.end()) - file.begin());
}

TEST_F(Weights, EntriesThatOverlapAreRefused) {
  Bytes file = torch_archive(pickled_dict({{"a", {}}, {"b", {.key = "1"}}, {"c", {.key = "2"}}}),
                             {{"0", Bytes(24)}, {"1", Bytes(24)}, {"2", Bytes(24)}});
  const auto most = static_cast<std::uint32_t>(file.size() / 2);
  for (const char* key : {"0", "1", "2"}) {
    // Both sizes of an entry stand 26 bytes before its name in the archive's directory.
    const std::size_t name = last(file, std::string("archive/data/") + key);
    for (const std::size_t back : {26U, 22U}) std::memcpy(file.data() + name - back, &most, sizeof(most));
  }
  expect_error(file, "they overlap");
}

TEST_F(Weights, ADamagedStorageIsRefused) {
  Bytes file = good_archive();
  const float five = 5;
  Bytes pattern(sizeof(five));
  std::memcpy(pattern.data(), &five, sizeof(five));
  *std::search(file.begin(), file.end(), pattern.begin(), pattern.end()) ^= std::byte{1};
  expect_error(file, "archive/data/0: it is damaged: CRC error");
}

TEST_F(Weights, DamagedStreamsAreRefused) {
  const std::string pickle = pickled_dict({{"a", {}}});
  expect_error(bytes_of("\x80\x02K\x01."), "a pickle, but not one of torch.save's: its magic number is missing");
  expect_error(torch_stream(pickle, six, stream_header(1002)), "its format is of an unknown version");
  expect_error(torch_stream(pickle, six, stream_header(1001, false)), "it is big-endian");
  expect_error(torch_stream("\x80\x02N.", six), "that the saved value does not name");
  expect_error(torch_stream("\x80\x02N.", {}), "it holds None, not a state dict");
  expect_error(torch_stream(pickle + pickle, six), "the keys of its storages are a dict");
  expect_error(torch_stream(pickle, {}), "there is no storage \"0\"");
  expect_error(torch_stream(pickle, {{"0", Bytes(24)}, {"1", Bytes(24)}}), "that the saved value does not name");
  expect_error(torch_stream(pickle, {{"0", Bytes(20)}}), "reach beyond its storage of 5");
  Bytes file = torch_stream(pickle, six);
  const Bytes many(8, std::byte{0xff});
  std::copy(many.begin(), many.end(), file.end() - 32);
  expect_error(file, "a storage ends behind the file");
}

TEST_F(Weights, EveryTruncationIsRefused) {
  for (const Bytes& content : {good_archive(), good_stream()}) {
    expect_truncations_refused(
        content, [&](std::span<const std::byte> bytes) { open(Bytes(bytes.begin(), bytes.end())).tensors(); });
  }
}

TEST_F(Weights, FlippedBitsAreSurvived) {
  const Parser parse = [&](std::span<const std::byte> bytes) { open(Bytes(bytes.begin(), bytes.end())).tensors(); };
  EXPECT_GT(expect_flips_survived(good_archive(), parse, 3000), 1000);
  EXPECT_GT(expect_flips_survived(good_stream(), parse, 3000), 500);
}

class Shards : public Weights {
 protected:
  Shards() {
    io::save_safetensors(folder / "one.safetensors", {{"a", Tensor::from<float>({1}, {1})}});
    write(folder / "two.bin", torch_archive(pickled_dict({{"b", {}}, {"c", {}}}), six));
  }
};

TEST_F(Shards, AreReadThroughTheirIndex) {
  const io::WeightsFile file = open(bytes_of(R"({"metadata": {"total_size": 28},
    "weight_map": {"b": "two.bin", "a": "one.safetensors"}})"));
  EXPECT_EQ(file.entries().size(), 2U);
  const StateDict state = file.tensors();
  EXPECT_EQ(state.size(), 2U);
  EXPECT_EQ(state.at("a").to_vector<float>(), std::vector<float>{1});
  EXPECT_EQ(state.at("b").sizes(), (Shape{2, 3}));
}

TEST_F(Shards, OfEachTensorTheIndexNamesTheFile) {
  io::save_safetensors(folder / "zero.safetensors", {{"a", Tensor::from<float>({7, 8}, {2})}});
  io::save_safetensors(folder / "other.safetensors",
                       {{"a", Tensor::from<float>({9}, {1})}, {"d", Tensor::from<float>({5}, {1})}});
  const auto with = [&](const std::string& file) {
    return open(bytes_of(R"({"weight_map": {"d": "other.safetensors", "a": ")" + file + "\"}}")).tensors().at("a");
  };
  EXPECT_EQ(with("one.safetensors").to_vector<float>(), std::vector<float>{1});
  EXPECT_EQ(with("other.safetensors").to_vector<float>(), std::vector<float>{9});
  EXPECT_EQ(with("zero.safetensors").to_vector<float>(), (std::vector<float>{7, 8}));
}

TEST_F(Shards, DamagedIndicesAreRefused) {
  expect_error(bytes_of("{"), "JSON, but not an index with a weight_map");
  expect_error(bytes_of(R"({"model_type": "bert"})"), "JSON, but not an index with a weight_map");
  expect_error(bytes_of(R"({"weight_map": ["a"]})"), "JSON, but not an index with a weight_map");
  expect_error(bytes_of(R"({"weight_map": {"x": "two.bin"}})"), "tensor \"x\" is not in two.bin, where it should be");
  for (const char* name : {"\"../one.safetensors\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "5"}) {
    expect_error(bytes_of(std::string(R"({"weight_map": {"a": )") + name + "}}"), "not the name of a file beside it");
  }
  expect_error(bytes_of(R"({"weight_map": {"a": "weights"}})"), "it is an index, where an index has");
  EXPECT_NE(file_error([&] { open(bytes_of(R"({"weight_map": {"a": "nowhere"}})")); }).find("nowhere: cannot open it"),
            std::string::npos);
}

}  // namespace
}  // namespace russet::files
