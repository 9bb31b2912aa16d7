// Data sets by name.
#include <gtest/gtest.h>
#include <russet/error.h>

#include "run/open_data.h"

namespace russet::app {
namespace {

TEST(OpenData, RefusesOtherWords) {
  EXPECT_THROW(open_data("cifar"), ValueError);
  EXPECT_THROW(open_data("mnist:"), ValueError);
  EXPECT_THROW(open_data("mnist:/nowhere"), FileError);
  EXPECT_THROW(open_data("cifar10:"), ValueError);
  EXPECT_THROW(open_data("cifar10:/nowhere"), FileError);
  EXPECT_EQ(open_data("shapes").train->classes(), 10);
}

}  // namespace
}  // namespace russet::app
