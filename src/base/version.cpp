#include <russet/version.h>

namespace russet {

std::string_view version() { return version_string; }

}  // namespace russet
