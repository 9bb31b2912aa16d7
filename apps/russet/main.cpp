// russet: the command line.
#include <russet/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include "command.h"

namespace {

constexpr int success = 0;
constexpr int internal_failure = 1;
constexpr int mistake = 2;  // the user's: an option, a file, a device

struct CommandRow {
  const char* name;
  void (*run)(const russet::app::Arguments& arguments);
  const char* help;
};
constexpr CommandRow commands[] = {
    {"train", russet::app::run_train, "Train a model"},
    {"eval", russet::app::run_eval, "Loss and accuracy of weights on a data set"},
    {"predict", russet::app::run_predict, "Classes of images, or outputs for a file of inputs"},
    {"convert", russet::app::run_convert, "Write PyTorch's weights as a safetensors file"},
    {"tokenize", russet::app::run_tokenize, "Ids of text: a line in, a line of ids out"},
    {"bench", russet::app::run_bench, "How fast models train and evaluate, on made-up data"},
    {"plan", russet::app::run_plan, "What a step would do and need, without running it"},
    {"profile", russet::app::run_profile, "Where the time of a step goes"},
    {"devices", russet::app::run_devices, "What there is, what it can do, and why others are missing"},
    {"ops", russet::app::run_ops, "The operator table, and what runs natively where"},
};

void add(CLI::App& program, const CommandRow& row) {
  CLI::App* command = program.add_subcommand(row.name, row.help);
  auto arguments = std::make_shared<russet::app::Arguments>(row.name);
  add_options(*command, *arguments);
  command->callback([arguments, run = row.run] { run(*arguments); });
}

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
  for (const CommandRow& row : commands) add(program, row);
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
