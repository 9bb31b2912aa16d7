#pragma once
// What the subcommands share.
#include <fmt/format.h>
#include <russet/device.h>
#include <russet/dtype.h>
#include <russet/error.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace app {

using Json = nlohmann::ordered_json;

// One a file: adds the subcommand, which runs when the command line has been parsed.
void add_devices(CLI::App& program);
void add_train(CLI::App& program);
void add_eval(CLI::App& program);
void add_predict(CLI::App& program);
void add_bench(CLI::App& program);
void add_plan(CLI::App& program);
void add_profile(CLI::App& program);
void add_ops(CLI::App& program);

/// A line of JSON on standard output.
void print_json(const Json& value);

/// "name, name, ..." with a default's mark left to the caller.
std::string join(const std::vector<std::string>& words, std::string_view between = ", ");

/// The device of that name. Throws DeviceError that says why it is not available, and which ones are.
russet::Device require_device(const std::string& name);

/// float32 or bfloat16 for fp32 and bf16. Throws ValueError for another word.
russet::DType precision_type(const std::string& word);

/// Adds --device, --precision, --phase, --batch as several commands have them.
CLI::Option* add_device_option(CLI::App& command, std::string& device);
CLI::Option* add_precision_option(CLI::App& command, std::string& precision);
CLI::Option* add_model_option(CLI::App& command, std::string& model);

}  // namespace app
