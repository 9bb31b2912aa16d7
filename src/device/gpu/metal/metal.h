#pragma once
// metal-cpp, and the little that russet puts round it. Only the files of this folder include it.
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>

#include <string>

namespace russet::metal {

/// Objects that Metal autoreleases in this scope live until its end. Every thread that sends messages needs one.
class PoolScope {
 public:
  PoolScope() : pool_(NS::AutoreleasePool::alloc()->init()) {}
  ~PoolScope() { pool_->release(); }
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  NS::AutoreleasePool* pool_;
};

/// Autoreleased.
inline NS::String* string(const std::string& text) { return NS::String::string(text.c_str(), NS::UTF8StringEncoding); }
inline std::string text(const NS::String* string) { return string == nullptr ? "" : string->utf8String(); }
inline std::string text(const NS::Error* error) {
  return error == nullptr ? "Metal gives no reason" : text(error->localizedDescription());
}
inline NS::URL* file_url(const std::string& path) { return NS::URL::fileURLWithPath(string(path)); }

}  // namespace russet::metal
