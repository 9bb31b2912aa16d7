#pragma once
// Fragments of matrices on tensor cores: mma.sync and ldmatrix (PTX ISA 9.7.14), and copies that run ahead of them:
// cp.async (9.7.9.25). The rest is in fragments.metal, which declares the types after this.
#define RUSSET_OWN_FRAGMENTS

namespace russet_cuda {

inline uint shared_address(const void* memory) {
  uint address;
  asm("{ .reg .u64 shared; cvta.to.shared.u64 shared, %1; cvt.u32.u64 %0, shared; }" : "=r"(address) : "l"(memory));
  return address;
}
/// Of an element, so that where memory begins is found once and constants become a part of instructions.
template <class T>
inline uint element_address(const T* memory, uint element) {
  return shared_address(memory) + element * uint(sizeof(T));
}

/// Of the element at (row, column) beyond a lane's own, likewise where the layout is linear: then what lanes add is a
/// sum of its own.
template <class Layout, class T>
inline uint place_address(const T* memory, uint row, uint own_row, uint column, uint own_column) {
  if constexpr (requires { Layout::linear; }) {
    return element_address(memory, Layout::place(own_row, own_column)) + Layout::place(row, column) * uint(sizeof(T));
  } else {
    return element_address(memory, Layout::place(row + own_row, column + own_column));
  }
}

/// Four matrices of 8 x 8, the rows of which eight lanes each point to.
inline void load_matrices(uint* pairs, uint row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(row)
               : "memory");
}
inline void load_transposed_matrices(uint* pairs, uint row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(row)
               : "memory");
}

inline void multiply(half, float* sum, const uint* left, const uint* right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}
inline void multiply(bfloat, float* sum, const uint* left, const uint* right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

// The same, added to nothing.
inline void start(half, float* product, const uint* left, const uint* right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, "
      "%10};"
      : "=f"(product[0]), "=f"(product[1]), "=f"(product[2]), "=f"(product[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]), "f"(0.0f));
}
inline void start(bfloat, float* product, const uint* left, const uint* right) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=f"(product[0]), "=f"(product[1]), "=f"(product[2]), "=f"(product[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]), "f"(0.0f));
}

}  // namespace russet_cuda

template <class Layout, class Left, class T>
inline void load_left(Left& left, const T* memory, uint row, uint column, uint lane_id) {
  russet_cuda::load_matrices(
      left.pairs, russet_cuda::place_address<Layout>(memory, row, lane_id % 16u, column, lane_id / 16u * 8u));
}
template <class Layout, class Left, class T>
inline void load_left_columns(Left& left, const T* memory, uint row, uint column, uint lane_id) {
  russet_cuda::load_transposed_matrices(
      left.pairs, russet_cuda::place_address<Layout>(memory, row, lane_id / 16u * 8u + lane_id % 8u, column,
                                                     lane_id / 8u % 2u * 8u));
}
template <class Layout, class Right, class T>
inline void load_right_columns(Right& right, const T* memory, uint row, uint column, uint lane_id) {
  russet_cuda::load_matrices(right.pairs,
                             russet_cuda::place_address<Layout>(memory, row, lane_id / 16u * 8u + lane_id % 8u, column,
                                                                lane_id / 8u % 2u * 8u));
}
template <class Layout, class Right, class T>
inline void load_right_rows(Right& right, const T* memory, uint row, uint column, uint lane_id) {
  russet_cuda::load_transposed_matrices(
      right.pairs, russet_cuda::place_address<Layout>(memory, row, lane_id % 16u, column, lane_id / 16u * 8u));
}
template <class T, uint WHICH, class Sum, class Left, class Right>
inline void multiply_fragments(Sum& sum, const Left& left, const Right& right, uint) {
  russet_cuda::multiply(T(), sum.at, left.pairs, right.pairs + WHICH * 2u);
}
template <class T, uint WHICH, class Sum, class Left, class Right>
inline void start_product(Sum& product, const Left& left, const Right& right, uint) {
  russet_cuda::start(T(), product.at, left.pairs, right.pairs + WHICH * 2u);
}

template <class T>
inline void copy_vector(T* memory, uint element, const T* from, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(russet_cuda::element_address(memory, element)), "l"(from), "r"(is_there ? 16 : 0)
               : "memory");
}
inline void copy_number(float* memory, uint element, const float* from, bool is_there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(russet_cuda::element_address(memory, element)), "l"(from), "r"(is_there ? 4 : 0)
               : "memory");
}
inline void end_fragment_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <uint PENDING>
inline void wait_for_fragment_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
