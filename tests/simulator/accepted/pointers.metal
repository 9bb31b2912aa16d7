constant float weights[2] = {0.5f, 2.0f};

struct PointersValues {
  ulong base;
  uint count;
  float factors[3];
};

struct Source {
  device const float* data;
  float at(uint i) const { return data[i]; }
};

float first(device const float* p) { return p[0]; }
float from_group(threadgroup const float* p, uint i) { return p[i]; }
void add(thread float& sum, float x) { sum += x; }
template <class T>
float all_of(threadgroup T* memory, uint count) {
  float sum = 0.0f;
  for (uint i = 0; i < count; ++i) sum += float(memory[i]);
  return sum;
}

KERNEL(pointers, 64, IN(float, x, 0), IN(bfloat, b, 1), OUT(half, h, 2), OUT(float, y, 3), VALUES(PointersValues, values, 4)) {
  GROUP_MEMORY(float, part, 64);
  const uint i = group_id.x * 64u + thread_id;
  Source source;
  source.data = x;
  float sum = source.at(i) * values.factors[1] + weights[1];
  add(sum, float(b[i]) + first(x));
  part[thread_id] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  add(sum, simd_sum(from_group(part, 63u - thread_id)) + all_of(part, 64));
  if (i < values.count) {
    h[i] = half(sum);
    y[i] = precise::exp(sum) + as_type<float>(as_type<uint>(sum) ^ 1u);
  }
}
