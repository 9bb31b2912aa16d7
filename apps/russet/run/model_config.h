#pragma once
// Sizes of a model from a Hugging Face config.json.
#include <russet/models/registry.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace russet::app {

/// Those of ModelSpec::config that the file has. Throws FileError for a damaged file and for a model of another kind,
/// ValueError if the model has no sizes of its own.
std::map<std::string, std::int64_t> read_model_config(const std::filesystem::path& path, const models::ModelSpec& spec);

}  // namespace russet::app
