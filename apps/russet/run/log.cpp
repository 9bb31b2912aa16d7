#include "run/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <russet/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace russet::app {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& name) { throw FileError(fmt::format("{}: {}", name, std::strerror(errno))); }

double number(const ordered_json& record, const char* key) {
  const auto found = record.find(key);
  return found == record.end() || found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
}

std::optional<double> maybe(const ordered_json& record, const char* key) {
  const double value = number(record, key);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

}  // namespace

Log::Log(const std::filesystem::path& path, std::uint64_t bytes) : name_(path.string()), bytes_(bytes) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(name_);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail(name_);
  if (static_cast<std::uint64_t>(status.st_size) < bytes) {
    ::close(descriptor_);
    throw FileError(fmt::format("{}: the checkpoint was written when it held {} bytes, now it holds {}", name_, bytes,
                                status.st_size));
  }
  const auto end = static_cast<off_t>(bytes);
  if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end) fail(name_);
}

Log::~Log() {
  try {
    flush();
  } catch (const FileError&) {
    // A destructor can tell nobody; whoever needs to know calls sync().
  }
  ::close(descriptor_);
}

void Log::add(const StepRecord& record) {
  pending_ +=
      ordered_json{
          {"step", record.step}, {"loss", record.loss}, {"lr", record.lr}, {"ms", std::round(record.ms * 1000) / 1000}}
          .dump() +
      "\n";
}

void Log::add(const EpochRecord& record) {
  ordered_json line{{"epoch", record.epoch}, {"loss", record.loss}, {"accuracy", nullptr}};
  if (record.accuracy) line["accuracy"] = *record.accuracy;
  if (record.test_loss) line["test_loss"] = *record.test_loss;
  pending_ += line.dump() + "\n";
}

void Log::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      pending_.erase(0, done);
      fail(name_);
    }
    done += static_cast<std::size_t>(written);
    bytes_ += static_cast<std::uint64_t>(written);
  }
  pending_.clear();
}

std::uint64_t Log::sync() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(name_);
  return bytes_;
}

History read_log(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw FileError(fmt::format("{}: it cannot be read", path.string()));
  History history;
  std::string line;
  for (int count = 1; std::getline(file, line); ++count) {
    try {
      const ordered_json record = ordered_json::parse(line);
      if (record.contains("step")) {
        history.steps.push_back({record.at("step").get<std::int64_t>(), number(record, "loss"), number(record, "lr"),
                                 number(record, "ms")});
      } else {
        history.epochs.push_back({record.at("epoch").get<std::int64_t>(), number(record, "loss"),
                                  maybe(record, "accuracy"), maybe(record, "test_loss")});
      }
    } catch (const nlohmann::json::exception&) {
      throw FileError(fmt::format("{}: line {} is no record of a step or an epoch", path.string(), count));
    }
  }
  return history;
}

}  // namespace russet::app
