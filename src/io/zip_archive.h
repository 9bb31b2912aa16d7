#pragma once
// The zip archives that torch.save writes: entries that are stored, not compressed.
#include <russet/io/file.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;

namespace russet::io {

/// An open archive, mapped into memory; entries are read when they are asked for. Every function throws FileError.
class ZipArchive {
 public:
  ZipArchive(std::shared_ptr<const MappedFile> map, std::string_view name);

  /// The path of the first entry whose last part is `name`; empty if there is none.
  std::string find(const std::string& name) const;
  bool contains(const std::string& path) const;
  std::uint64_t size_of(const std::string& path) const;
  /// Replaces `content`, whose memory is used again, by the entry.
  void read(const std::string& path, std::vector<std::byte>& content) const;

  const std::string& name() const { return name_; }
  /// Of the whole file.
  std::uint64_t bytes() const { return map_->bytes().size(); }

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  std::string name_;
  std::shared_ptr<const MappedFile> map_;
  std::unique_ptr<zip, Close> archive_;
};

}  // namespace russet::io
