KERNEL(refused, 32, IN(bfloat, x, 0), OUT(float, y, 1)) { y[thread_id] = float(x[thread_id] + x[thread_id]); }
