// russet: the command line.
#include "command.h"

#include <russet/version.h>

#include <cstdio>
#include <exception>
#include <new>

namespace {

constexpr int success = 0;
constexpr int internal_failure = 1;
constexpr int mistake = 2;  // the user's: an option, a file, a device

/// One line on standard error, whatever the message holds.
int report(std::string message, int status) {
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  for (char& letter : message) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  fmt::print(stderr, "russet: {}\n", message);
  return status;
}

int run(int count, char** words) {
  CLI::App program("Trains, evaluates and measures neural networks.", "russet");
  program.set_version_flag("--version", std::string("russet ") + std::string(russet::version()));
  program.set_help_all_flag("--help-all", "Print the help of all commands");
  program.require_subcommand(1);
  app::add_train(program);
  app::add_eval(program);
  app::add_predict(program);
  app::add_bench(program);
  app::add_plan(program);
  app::add_profile(program);
  app::add_devices(program);
  app::add_ops(program);
  try {
    program.parse(count, words);
  } catch (const CLI::Success& answered) {  // --help, --version
    program.exit(answered);
  } catch (const CLI::ParseError& error) {
    return report(fmt::format("{}. Try --help.", error.what()), mistake);
  }
  return success;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const russet::InternalError& error) {
    return report(fmt::format("internal error: {}", error.what()), internal_failure);
  } catch (const russet::Error& error) {
    return report(error.what(), mistake);
  } catch (const std::bad_alloc&) {
    return report("the system grants no more memory", mistake);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), internal_failure);
  }
}
