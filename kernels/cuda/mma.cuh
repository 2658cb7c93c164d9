// Tensor-core products of 16-bit tiles in shared memory.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/ptx.cuh"

namespace shardscope::kernels::cuda {

/// A tile of rows of D 16-bit elements; 16-byte chunks of a row are permuted by the row's index, so that the
/// eight rows of one matrix load are in different banks. A row of D = 64 or 128 elements is 128 or 256 bytes,
/// one or two times the 32 banks: unpermuted, the same chunk of every row would be in the same four banks.
/// Chunk c of row r is stored at c ^ (r % 8), so eight consecutive rows store a chunk at eight different
/// places. Padding rows would also work, but needs more shared memory, which limits the number of blocks per
/// multiprocessor.
template <class T, int D>
struct Tile {
  T* data;
  /// Address of the chunk that starts at `column`, a multiple of 8.
  __device__ __forceinline__ T* chunk(int row, int column) const {
    return data + row * D + (((column / 8) ^ (row & 7)) * 8);
  }
};

/// Copies rows [first, first + kRows) of a matrix whose rows are `stride` elements apart; rows from
/// `rows` on are zero. All kThreads of the block must call it. Neighbouring threads copy neighbouring
/// chunks of a row. `from` and its rows are aligned to 16 bytes. The caller commits the copies and waits
/// for them.
template <int kRows, int kThreads, class T, int D>
__device__ __forceinline__ void copy_rows(Tile<T, D> to, const T* from, std::int64_t stride, int first,
                                          int rows) {
  constexpr int kChunks = D / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    const bool valid = first + row < rows;
    const int source = valid ? first + row : 0;  // a valid address, although nothing is read
    copy_16_bytes(to.chunk(row, column), from + source * stride + column, valid);
  }
}

/// Operands of multiply_add() in a warp's lanes; ptx.cuh gives the lane of each element.
struct FragmentA {
  unsigned r[4];
};
struct FragmentB {
  unsigned r[2];
};
struct FragmentC {
  float x[4];
};

/// Rows [row, row+16) and columns [column, column+16) of the tile. Matrices 0 and 1 are the upper and lower 8
/// rows of its first 8 columns, 2 and 3 those of the other 8: the order of A's registers.
template <class T, int D>
__device__ __forceinline__ FragmentA load_a(Tile<T, D> tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Matrices m = load_matrices(tile.chunk(row + lane % 16, column + lane / 16 * 8));
  return {{m.r[0], m.r[1], m.r[2], m.r[3]}};
}

/// B = tile^T: its columns are the tile's rows [row, row+16), its k the tile's columns [column, column+16).
/// Column n of B is row n of the tile, so a non-transposed load gives lane (g, t) what B's registers hold:
/// elements 2t, 2t + 1 of row g. f[0] is B's columns 0 to 7, f[1] 8 to 15, each over 16 k.
template <class T, int D>
__device__ __forceinline__ void load_b_transposed(FragmentB (&f)[2], Tile<T, D> tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Matrices m = load_matrices(tile.chunk(row + lane / 16 * 8 + lane % 8, column + lane / 8 % 2 * 8));
  f[0] = {{m.r[0], m.r[1]}};
  f[1] = {{m.r[2], m.r[3]}};
}

/// B = the tile itself: its k are the tile's rows [row, row+16), its columns the tile's [column, column+16).
/// Two k of one column are in two rows of the tile; the transposed load puts them into one register.
template <class T, int D>
__device__ __forceinline__ void load_b(FragmentB (&f)[2], Tile<T, D> tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Matrices m =
      load_matrices_transposed(tile.chunk(row + lane / 8 % 2 * 8 + lane % 8, column + lane / 16 * 8));
  f[0] = {{m.r[0], m.r[1]}};
  f[1] = {{m.r[2], m.r[3]}};
}

template <class T>
__device__ __forceinline__ void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b, T) {
  multiply_16x8x16(c.x, a.r, b.r, T{});
}

// Two floats rounded to nearest even, `low` (the lower column) in the low half.
__device__ __forceinline__ unsigned pack2(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}
__device__ __forceinline__ unsigned pack2(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

/// Two neighbouring 16 x 8 results, rounded, as the 16 x 16 left operand of the next product. A result has
/// rows g and g + 8 of columns 2t, 2t + 1 in the same lanes as the left operand: scores become the operand of
/// the next product without shuffles and without shared memory.
template <class T>
__device__ __forceinline__ FragmentA as_a(const FragmentC& left, const FragmentC& right) {
  return {{pack2(left.x[0], left.x[1], T{}), pack2(left.x[2], left.x[3], T{}),
           pack2(right.x[0], right.x[1], T{}), pack2(right.x[2], right.x[3], T{})}};
}

/// c[j] += A B_j for the kTiles / 2 pairs of 8 columns: A is rows [a_row, a_row+16) of `a`, B_j the
/// transposed rows 8j.. of `b`, over all D columns of both.
/// Columns are summed in ascending order, 16 per instruction. A's fragment is loaded once for all of `b`.
template <int kTiles, class T, int D>
__device__ __forceinline__ void multiply_rows(FragmentC (&c)[kTiles], Tile<T, D> a, int a_row, Tile<T, D> b) {
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    const FragmentA left = load_a(a, a_row, k);
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      FragmentB right[2];
      load_b_transposed(right, b, j * 8, k);
      multiply_add(c[j], left, right[0], T{});
      multiply_add(c[j + 1], left, right[1], T{});
    }
  }
}

/// out[16, D] += P[16, 8 kTiles] b[8 kTiles, D], P rounded from the results `p`.
/// Sums stay fp32; only P is rounded to the storage type, because tensor cores have no unrounded fp32
/// operands.
template <int kTiles, class T, int D>
__device__ __forceinline__ void multiply_columns(FragmentC (&out)[D / 8], const FragmentC (&p)[kTiles],
                                                 Tile<T, D> b) {
#pragma unroll
  for (int k = 0; k < kTiles; k += 2) {
    const FragmentA left = as_a<T>(p[k], p[k + 1]);
#pragma unroll
    for (int j = 0; j < D / 8; j += 2) {
      FragmentB right[2];
      load_b(right, b, k * 8, j * 8);
      multiply_add(out[j], left, right[0], T{});
      multiply_add(out[j + 1], left, right[1], T{});
    }
  }
}

}  // namespace shardscope::kernels::cuda
