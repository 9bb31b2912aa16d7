KERNEL(refused, 32, OUT(bfloat, y, 0)) { y[thread_id] = 1.0f; }
