#pragma once
// In the place of Apple's <CoreFoundation/CoreFoundation.h>.
#include <cmath>
#include <cstdint>

using CFTimeInterval = double;
