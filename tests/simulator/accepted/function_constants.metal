FUNCTION_CONSTANT(bool, doubled, 0);
FUNCTION_CONSTANT(int, shift, 1);
FUNCTION_CONSTANT(uint, count, 2);
FUNCTION_CONSTANT(float, factor, 3);

KERNEL(constants, 32, IN(float, x, 0), OUT(float, y, 1)) {
  const float sum = x[thread_id] * factor + float(shift);
  if (thread_id < count) y[thread_id] = doubled ? sum + sum : sum;
}
