KERNEL(refused, 32, OUT(float, y, 0)) { y[thread_id] = y[thread_id] * 1.5; }
