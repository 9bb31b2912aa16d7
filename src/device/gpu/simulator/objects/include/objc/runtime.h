#pragma once
// In the place of Apple's <objc/runtime.h>: what metal-cpp uses of it.
#include <cstddef>
#include <cstdint>

extern "C" {
struct objc_object {};
using SEL = const char*;
void* objc_lookUpClass(const char* name);
void* objc_getProtocol(const char* name);
SEL sel_registerName(const char* name);
}
