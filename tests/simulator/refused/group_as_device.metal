float first(device const float* p) { return p[0]; }
KERNEL(refused, 32, OUT(float, y, 0)) { GROUP_MEMORY(float, part, 32); part[thread_id] = 0.0f; y[thread_id] = first(part); }
