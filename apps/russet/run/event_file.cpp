#include "run/event_file.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "folder.h"

namespace russet::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view name_prefix = "events.out.tfevents.";

// Numbers of fields in event.proto and summary.proto.
namespace event {
enum Field : protozero::pbf_tag_type { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
}
namespace session_log {
enum Field : protozero::pbf_tag_type { status = 1 };
constexpr std::int32_t start = 1;
}  // namespace session_log
namespace summary {
enum Field : protozero::pbf_tag_type { value = 1 };
}
namespace value {
enum Field : protozero::pbf_tag_type { tag = 1, simple_value = 2 };
}

void add_little_endian(std::string& bytes, std::uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
}

/// The CRC-32C, so changed that what holds it may have a CRC of its own.
std::uint32_t masked_crc(std::string bytes) {
  auto* const data = reinterpret_cast<unsigned char*>(bytes.data());  // read only, whatever the type says
  const std::uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0U);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

std::string record_of(const std::string& message) {
  std::string record;
  add_little_endian(record, message.size(), 8);
  add_little_endian(record, masked_crc(record), 4);
  record += message;
  add_little_endian(record, masked_crc(message), 4);
  return record;
}

/// The beginning of every event. Fields that are 0 are left out, as proto3 has it.
protozero::pbf_writer begin_event(std::string& message, double time, std::int64_t step) {
  protozero::pbf_writer writer(message);
  if (time != 0) writer.add_double(event::wall_time, time);
  if (step != 0) writer.add_int64(event::step, step);
  return writer;
}

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The present second, or one after those of all files in the folder: TensorBoard reads them in the order of their
/// names.
std::int64_t second_for_name(const fs::path& folder) {
  std::int64_t second = seconds_now();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(name_prefix)) continue;
    std::int64_t other = 0;
    std::from_chars(name.data() + name_prefix.size(), name.data() + name.size(), other);
    second = std::max(second, other + 1);
  }
  return second;
}

fs::path new_name(const fs::path& folder) {
  make_folder(folder);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  return folder / fmt::format("{}{:010d}.{}.{}", name_prefix, second_for_name(folder), host.data(),
                              static_cast<int>(::getpid()));
}

}  // namespace

std::string version_record(double time) {
  std::string message;
  begin_event(message, time, 0).add_string(event::file_version, "brain.Event:2");
  return record_of(message);
}

std::string start_record(double time, std::int64_t step) {
  std::string message;
  protozero::pbf_writer writer = begin_event(message, time, step);
  protozero::pbf_writer(writer, event::session_log).add_enum(session_log::status, session_log::start);
  return record_of(message);
}

std::string scalars_record(double time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string message;
  protozero::pbf_writer writer = begin_event(message, time, step);
  {
    protozero::pbf_writer values(writer, event::summary);
    for (const Scalar& scalar : scalars) {
      protozero::pbf_writer one(values, summary::value);
      one.add_string(value::tag, scalar.tag.data(), scalar.tag.size());
      one.add_float(value::simple_value, static_cast<float>(scalar.value));
    }
  }
  return record_of(message);
}

EventFile::EventFile(const fs::path& folder, std::int64_t step) : file_(new_name(folder), 0) {
  const auto time = static_cast<double>(seconds_now());
  file_.add(version_record(time));
  file_.add(start_record(time, step));
  file_.flush();
}

void EventFile::add(const StepRecord& record, double time) {
  const Scalar scalars[] = {{"train/loss", record.loss}, {"train/learning_rate", record.lr}};
  file_.add(scalars_record(time, record.step, scalars));
}

void EventFile::add(const EpochRecord& record, std::int64_t step, double time) {
  std::vector<Scalar> scalars;
  if (record.test_loss) scalars.push_back({"test/loss", *record.test_loss});
  if (record.accuracy) scalars.push_back({"test/accuracy", *record.accuracy});
  if (!scalars.empty()) file_.add(scalars_record(time, step, scalars));
}

}  // namespace russet::app
