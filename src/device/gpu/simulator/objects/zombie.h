#pragma once
// Deallocated objects: kept for a while, so that a message to one is noticed.
#include "device/gpu/simulator/objects/object.h"

namespace russet::objects {

/// The name of the class that the object had, if it was deallocated; else nullptr.
const std::string* zombie_class(const Object& object);

}  // namespace russet::objects
