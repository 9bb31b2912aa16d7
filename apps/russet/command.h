#pragma once
// What the subcommands share.
#include <fmt/format.h>
#include <russet/device.h>
#include <russet/error.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace russet::app {

using Json = nlohmann::ordered_json;

// One a file; main.cpp lists them.
void run_train(const Arguments& arguments);
void run_eval(const Arguments& arguments);
void run_predict(const Arguments& arguments);
void run_convert(const Arguments& arguments);
void run_tokenize(const Arguments& arguments);
void run_bench(const Arguments& arguments);
void run_plan(const Arguments& arguments);
void run_profile(const Arguments& arguments);
void run_devices(const Arguments& arguments);
void run_ops(const Arguments& arguments);

/// A line of JSON on standard output.
void print_json(const Json& value);

/// "name, name, ...".
std::string join(const std::vector<std::string>& words, std::string_view between = ", ");

/// The device of that name. Throws DeviceError that says why it is not available, and which ones are.
Device require_device(const std::string& name);

}  // namespace russet::app
