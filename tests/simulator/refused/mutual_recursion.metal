uint odd(uint n);
uint even(uint n) { return n == 0 ? 1 : odd(n - 1); }
uint odd(uint n) { return n == 0 ? 0 : even(n - 1); }
KERNEL(refused, 32, OUT(uint, y, 0)) { y[thread_id] = even(thread_id); }
