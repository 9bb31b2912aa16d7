// Files that PyTorch wrote.
#include <gtest/gtest.h>
#include <russet/io.h>

#include "calls/golden.h"
#include "files/damage.h"

namespace golden {
namespace {

using namespace russet;
using files::Bytes;

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

class Weights : public ::testing::Test {
 protected:
  io::WeightsFile open(const Json& record) {
    files::write(folder / "weights", from_hex(record.at("file")));
    return io::WeightsFile(folder / "weights");
  }
  const files::TemporaryFolder folder;
  const Json records = read_json("weights.json.gz");
};

TEST_F(Weights, OfPyTorchAreRead) {
  int read = 0;
  for (const Json& record : records) {
    if (!record.contains("tensors")) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const io::WeightsFile file = open(record);
    const StateDict state = file.tensors();
    const Json& tensors = record.at("tensors");
    ASSERT_EQ(state.size(), tensors.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      const auto& [name, tensor] = state[i];
      EXPECT_EQ(name, tensors[i][0].get<std::string>());
      EXPECT_EQ(name_of(tensor.dtype()), tensors[i][1].get<std::string>()) << name;
      EXPECT_EQ(tensor.sizes(), shape_of(tensors[i][2])) << name;
      EXPECT_EQ(tensor.to_bytes(), from_hex(tensors[i][3])) << name;
      EXPECT_EQ(file.entries()[i].name, name);
      EXPECT_EQ(file.entries()[i].dtype, tensor.dtype()) << name;
      EXPECT_EQ(file.entries()[i].shape, tensor.sizes()) << name;
    }
    ++read;
  }
  EXPECT_EQ(read, 17);
}

TEST_F(Weights, OfPyTorchThatAreNoTensorsAndContainersAreRefused) {
  int refused = 0;
  for (const Json& record : records) {
    if (!record.contains("error")) continue;
    const std::string message = files::file_error([&] { open(record); });
    EXPECT_NE(message.find(record.at("error").get<std::string>()), std::string::npos) << record.at("name") << "\n"
                                                                                      << message;
    ++refused;
  }
  EXPECT_EQ(refused, 12);
}

}  // namespace
}  // namespace golden
