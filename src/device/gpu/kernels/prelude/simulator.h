// clang-format off: the order of includes matters, and macros come last.
// The dialect for the simulated GPU: clang compiles a kernel's text, after this, for the processor at hand. No standard
// header is included: kernels see what Metal declares and nothing else. Precompiled once (simulator/clang.cpp).
#pragma once
#include "simulator/abi.h"
#include "simulator/atomics.h"
#include "simulator/entry.h"
#include "simulator/integers.h"
#include "simulator/math.h"
#include "simulator/matrix.h"
#include "simulator/scalars.h"
#include "simulator/simdgroup.h"
#include "simulator/threads.h"
#include "simulator/trampolines.h"
#include "simulator/vectors.h"
#include "simulator/watch.h"

using namespace metal;

// Metal's qualifiers. Address spaces are checked by another pass, with check.h.
#define device
#define threadgroup
#define thread
#define constant const

// Loops stay as they are written: unrolled ones take longer to compile than to run.
#define UNROLL
