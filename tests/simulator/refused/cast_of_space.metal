KERNEL(refused, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = ((threadgroup const float*)x)[0]; }
