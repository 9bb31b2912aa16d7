uint factorial(uint n) { return n < 2 ? 1 : n * factorial(n - 1); }
KERNEL(refused, 32, OUT(uint, y, 0)) { y[thread_id] = factorial(thread_id); }
