#pragma once
// In the place of Apple's <IOSurface/IOSurfaceRef.h>.
using IOSurfaceRef = struct IOSurface*;
