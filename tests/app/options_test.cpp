// The table of options: what it refuses, what a run remembers of it, and that docs/options.md says what it says.
// --write writes that page.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "options.h"
#include "run/defaults.h"

namespace russet::app {
namespace {

const std::string page_path = RUSSET_SOURCE_DIR "/docs/options.md";

TEST(Sizes, ParseAsPeopleWriteThem) {
  EXPECT_EQ(parse_size("2.5GiB"), 2684354560U);
  EXPECT_EQ(parse_size("512 MB"), 512000000U);
  EXPECT_EQ(parse_size("64k"), 65536U);
  EXPECT_EQ(parse_size("1000"), 1000U);
  for (const char* wrong : {"", "GiB", "1XB", "-1", "nan", "1e40TB", "1GiB2"}) {
    EXPECT_THROW(parse_size(wrong), ValueError) << wrong;
  }
}

TEST(OptionTable, EveryRowIsWellFormed) {
  for (const OptionRow& row : option_table) {
    EXPECT_FALSE(row.help.empty()) << row.name;
    for (const OptionRow& other : option_table) {
      if (&other == &row || other.name != row.name) continue;
      std::istringstream commands{std::string(row.commands)};
      for (std::string command; commands >> command;) {
        EXPECT_EQ((" " + std::string(other.commands) + " ").find(" " + command + " "), std::string::npos)
            << command << " has two rows for --" << row.name;
      }
    }
  }
}

TEST(OptionTable, DefaultsAreInTheirRange) {
  for (const OptionRow& row : option_table) {
    if (!row.usual.is_value) continue;
    std::istringstream commands{std::string(row.commands)};
    for (std::string command; commands >> command;) {
      CLI::App program;
      Arguments arguments(command);
      add_options(program, arguments);
      const std::string value(row.usual.text);
      if (row.kind == Kind::flag) continue;
      std::vector<std::string> words{value, "--" + std::string(row.name)};
      for (const OptionRow& other : option_table) {
        const bool needed = (other.traits & required) != 0 && other.name != row.name;
        if (!needed || (" " + std::string(other.commands) + " ").find(" " + command + " ") == std::string::npos)
          continue;
        words.insert(words.begin(), "x");
        if ((other.traits & positional) == 0) words.insert(words.begin() + 1, "--" + std::string(other.name));
      }
      EXPECT_NO_THROW(program.parse(words)) << command << " --" << row.name << " " << value;
    }
  }
}

TEST(Arguments, RangesAndChoices) {
  Arguments arguments("train");
  EXPECT_THROW(arguments.set("momentum", 1.0), ValueError);
  EXPECT_THROW(arguments.set("momentum", std::nan("")), ValueError);
  EXPECT_THROW(arguments.set("lr", HUGE_VAL), ValueError);
  EXPECT_THROW(arguments.set("width", 0.0), ValueError);
  EXPECT_NO_THROW(arguments.set("width", 8));
  EXPECT_THROW(arguments.set("epochs", 0), ValueError);
  EXPECT_THROW(arguments.set("epochs", 1.5), InternalError);
  try {
    arguments.set("schedule", "odd");
    FAIL() << "nothing was thrown";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "--schedule odd: the choices are cosine, step, none");
  }
  try {
    arguments.set("label-smoothing", -0.5);
    FAIL() << "nothing was thrown";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "--label-smoothing -0.5: it must be at least 0 and less than 1");
  }
}

TEST(Arguments, DefaultsHoldUntilSomethingIsGiven) {
  Arguments arguments("train");
  EXPECT_EQ(arguments.real("momentum"), 0.9);
  EXPECT_TRUE(arguments.flag("shuffle"));
  EXPECT_FALSE(arguments.has("dropout"));
  EXPECT_FALSE(arguments.has("chip"));  // an option of another command
  arguments.set("momentum", 0.5);
  EXPECT_EQ(arguments.real("momentum"), 0.5);
  arguments.remove("momentum");
  EXPECT_EQ(arguments.real("momentum"), 0.9);
}

TEST(Arguments, AFlagThatIsOnByDefaultIsTurnedOff) {
  CLI::App program;
  Arguments arguments("train");
  add_options(program, arguments);
  program.parse("lenet5 --data shapes --no-shuffle --memory 2KiB");
  EXPECT_FALSE(arguments.flag("shuffle"));
  EXPECT_EQ(arguments.text("model"), "lenet5");
  EXPECT_EQ(arguments.bytes("memory"), 2048U);
}

TEST(Arguments, SurviveJson) {
  Arguments arguments("train");
  arguments.set("model", "mlp");
  arguments.set("data", "tensors:\"odd\"");
  arguments.set("lr", 0.1);
  arguments.set("shuffle", false);
  const Arguments back = Arguments::from_json("train", with_recipe(arguments).to_json());
  EXPECT_EQ(back.text("data"), arguments.text("data"));
  EXPECT_EQ(back.real("lr"), 0.1);
  EXPECT_FALSE(back.flag("shuffle"));
  EXPECT_EQ(back.to_json(), with_recipe(arguments).to_json());
  EXPECT_THROW(Arguments::from_json("train", "{\"lr\": \"fast\"}"), FileError);
  EXPECT_THROW(Arguments::from_json("train", "{\"lr\": -1}"), FileError);
}

/// As runs before this table wrote it.
TEST(Arguments, JsonIsWhatCheckpointsHold) {
  Arguments arguments("train");
  arguments.set("model", "mlp");
  arguments.set("data", "shapes");
  EXPECT_EQ(with_recipe(arguments).to_json(),
            R"({"accumulate":1,"augment":"standard","batch":64,"clip-grad":0.0,"cutmix":0.0,"data":"shapes",)"
            R"("device":"cpu","epochs":10,"label-smoothing":0.0,"lowercase":true,"lr":0.05,"mixup":0.0,"model":"mlp",)"
            R"("momentum":0.9,"optimizer":"sgd","precision":"fp32","schedule":"cosine","seed":0,"shuffle":true,)"
            R"("warmup":0,"weight-decay":0.0})");
}

TEST(Arguments, DifferencesNameWhatWasGiven) {
  Arguments started("train");
  started.set("model", "mlp");
  started.set("lr", 0.1);
  Arguments given("train");
  given.set("lr", 0.2);
  given.set("dropout", 0.5);
  given.set("seed", 0);     // the default: no difference
  given.set("workers", 3);  // does not change the result
  const std::vector<std::string> found = given.differences(started);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "--dropout 0.5 (it was not given)");
  EXPECT_EQ(found[1], "--lr 0.2 (it was 0.1)");
  EXPECT_TRUE(Arguments("train").differences(started).empty());
}

TEST(OptionsPage, SaysWhatTheTableSays) {
  std::ifstream file(page_path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == options_page()) << page_path << " is out of date: build/tests/app_options_test --write";
}

}  // namespace
}  // namespace russet::app

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  if (count == 2 && std::string_view(words[1]) == "--write") {
    std::ofstream(russet::app::page_path) << russet::app::options_page();
    return 0;
  }
  return RUN_ALL_TESTS();
}
