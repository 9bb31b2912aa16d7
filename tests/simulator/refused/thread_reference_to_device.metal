void set(thread float& x) { x = 1.0f; }
KERNEL(refused, 32, OUT(float, y, 0)) { set(y[thread_id]); }
