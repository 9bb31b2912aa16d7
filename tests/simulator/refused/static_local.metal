KERNEL(refused, 32, OUT(float, y, 0)) { static device int calls = 0; y[thread_id] = float(calls); }
