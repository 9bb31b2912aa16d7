#pragma once
// In the place of Apple's <TargetConditionals.h>.
#define TARGET_OS_MAC 1
#define TARGET_OS_OSX 1
#define TARGET_OS_IPHONE 0
