KERNEL(refused, 32, IN(float, x, 0)) { x[thread_id] = 1.0f; }
