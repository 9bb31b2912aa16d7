struct Values { float table[4]; };
float first(device const float* p) { return p[0]; }
KERNEL(refused, 32, OUT(float, y, 0), VALUES(Values, values, 1)) { y[thread_id] = first(values.table); }
