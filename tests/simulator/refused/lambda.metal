KERNEL(refused, 32, OUT(float, y, 0)) { auto f = [](float x) { return x; }; y[thread_id] = f(1.0f); }
