KERNEL(refused, 32, OUT(float, y, 0)) { const double x = 1; y[thread_id] = float(x); }
