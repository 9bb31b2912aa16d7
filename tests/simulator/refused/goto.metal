KERNEL(refused, 32, OUT(float, y, 0)) { if (thread_id == 0) goto end; y[thread_id] = 1.0f; end: return; }
