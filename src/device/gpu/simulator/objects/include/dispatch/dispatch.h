#pragma once
// In the place of Apple's <dispatch/dispatch.h>.
using dispatch_data_t = struct dispatch_data_s*;
using dispatch_queue_t = struct dispatch_queue_s*;
