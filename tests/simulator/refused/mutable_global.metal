device float counter = 0;
KERNEL(refused, 32, OUT(float, y, 0)) { y[thread_id] = counter; }
