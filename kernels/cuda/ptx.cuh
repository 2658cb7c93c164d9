// Instructions without a C++ equivalent (PTX ISA): asynchronous copies to shared memory, matrix loads
// and matrix products of a warp. tests/gpu/host_cuda has the same functions for kernels that run on the
// host.
#pragma once

#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {

/// The 32-bit address within the shared-memory window, as used by `.shared` operands of PTX. `p` must point
/// into shared memory.
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Copies 16 bytes to shared memory asynchronously, both aligned to 16; zeros if not `valid`, and then `from`
/// is not read. `.cg` caches in the second level only and does not evict lines of the first.
__device__ __forceinline__ void copy_16_bytes(void* to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes));
}
/// Closes a group: the copies issued by this thread since its last group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;\n" ::); }
/// Waits until at most `kLeft` of this thread's latest groups are in flight. Other threads' copies are
/// visible only after a __syncthreads() that follows their own wait. The "memory" clobber keeps the compiler
/// from moving a read of shared memory above the wait.
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements: lane 8m + i gives the address of row i of matrix m,
/// and receives from each matrix the elements 2t, 2t + 1 of row g (transposed: of column g),
/// where g = lane / 4 and t = lane % 4. The whole warp must call it together (`.sync.aligned`),
/// never in a divergent branch. Each row is 16 bytes, aligned to 16. `volatile` keeps the
/// statements of this file in program order, so a matrix is not read before the wait for its
/// copies.
struct Matrices {
  unsigned r[4];
};
__device__ __forceinline__ Matrices load_matrices(const void* row) {
  Matrices f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(shared_address(row)));
  return f;
}
__device__ __forceinline__ Matrices load_matrices_transposed(const void* row) {
  Matrices f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(shared_address(row)));
  return f;
}

/// C += A B by the whole warp ("mma", m16n8k16, sums in fp32):
///   A (16 x 16): registers 0..3 hold rows g, g+8, g, g+8 and columns 2t.., 2t.., 2t+8.., 2t+8..
///   B (16 x 8):  registers 0..1 hold rows (k) 2t.., 2t+8.. of column g
///   C (16 x 8):  floats 0..1 hold row g, 2..3 row g+8, columns 2t, 2t+1
/// with g = lane / 4, t = lane % 4 and two 16-bit elements in a register, the lower column (A) or row (B) in
/// the low half. The whole warp calls it together. The last argument only selects the type.
__device__ __forceinline__ void multiply_16x8x16(float (&c)[4], const unsigned (&a)[4],
                                                 const unsigned (&b)[2], __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply_16x8x16(float (&c)[4], const unsigned (&a)[4],
                                                 const unsigned (&b)[2], __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace shardscope::kernels::cuda
