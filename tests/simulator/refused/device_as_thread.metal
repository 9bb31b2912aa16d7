float first(thread const float* p) { return p[0]; }
KERNEL(refused, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = first(x); }
