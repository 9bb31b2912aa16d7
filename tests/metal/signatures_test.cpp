// The table of messages and the structs of the stand-in agree with metal-cpp's declarations.
#include "metal/signatures.h"

#include <gtest/gtest.h>

#include <map>

#include "device/gpu/simulator/objects/metal.h"

namespace russet {
namespace {

using metal_test::Declared;

TEST(Signatures, EachMessageOfTheTableIsDeclaredWithItsTypes) {
  std::map<std::pair<std::string, std::string>, std::string> declared;
  for (const Declared& message : metal_test::declared_messages()) {
    declared[{message.type, message.message}] = message.types;
  }
  // Protected in metal-cpp: bool respondsToSelector(const void*, SEL), and likewise a MethodSignature*.
  declared[{"NSObject", "respondsToSelector:"}] = "B^";
  declared[{"NSObject", "methodSignatureForSelector:"}] = "^^";
  for (const objects::Row& row : objects::table()) {
    const auto found = declared.find({row.type, row.message});
    if (found == declared.end()) {
      ADD_FAILURE() << row.type << " " << row.message << " is not in tests/metal/metal_cpp/signatures.cpp";
      continue;
    }
    EXPECT_EQ(found->second, row.types) << row.type << " " << row.message;
    declared.erase(found);
  }
  for (const auto& [name, types] : declared) ADD_FAILURE() << name.first << " " << name.second << " is not answered";
}

TEST(Signatures, StructsHaveTheirSizes) {
  const metal_test::DeclaredSizes sizes = metal_test::declared_sizes();
  EXPECT_EQ(sizes.size, sizeof(objects::Size));
  EXPECT_EQ(sizes.height, offsetof(objects::Size, height));
  EXPECT_EQ(sizes.depth, offsetof(objects::Size, depth));
  EXPECT_EQ(sizes.system_version, 3 * sizeof(long));
}

TEST(Signatures, TypesAreEncoded) {
  EXPECT_EQ((objects::signature<void>()), "v");
  EXPECT_EQ((objects::signature<void*, unsigned long, const char*>()), "^Q^");
  EXPECT_EQ((objects::signature<bool, int, float, double, objects::Size>()), "Bifd{024}");
}

}  // namespace
}  // namespace russet
