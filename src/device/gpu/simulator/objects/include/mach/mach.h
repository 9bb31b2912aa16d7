#pragma once
// In the place of Apple's <mach/mach.h>.
using kern_return_t = int;
using task_id_token_t = unsigned;
