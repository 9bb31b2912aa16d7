FUNCTION_CONSTANT(uint, count, 0);
KERNEL(refused, 32, OUT(float, y, 0)) {
  count = 3u;
  y[thread_id] = float(count);
}
