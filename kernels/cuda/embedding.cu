// Table lookup and its gradient. As on the CPU, the gradient of a row is the sum over the positions that
// read it, in their order: positions are grouped by row, each row's list is sorted, and one block adds them
// up.
//
// Atomic additions to the table's rows would be simpler, but their order differs from run to run. Integer
// atomics count and place the positions: counts do not depend on their order, and the places are sorted.
#include "kernels/cuda/device.cuh"

namespace shardscope::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSorted = 1024;  // positions of one row that are sorted in shared memory

/// y[N,C] (+)= table[index[i], :]; one block per row i.
template <class Y, class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(Y* y, const T* table, const std::int32_t* index, std::int64_t C, bool add) {
  const std::int64_t i = blockIdx.x;
  const T* row = table + std::int64_t{index[i]} * C;
  Y* to = y + i * C;
  for (std::int64_t c = threadIdx.x; c < C; c += kThreads) {
    float value = to_float(row[c]);
    if (add) value += to_float(to[c]);
    to[c] = from_float<Y>(value);
  }
}

/// counts[rows]: number of the N positions with each row as their index. Backward groups the positions by row
/// with count, scan and place; then one block per row sums in order of position.
__global__ void __launch_bounds__(kThreads)
    count_kernel(std::int32_t* counts, const std::int32_t* index, std::int64_t N) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < N) atomicAdd(counts + index[i], 1);
}

constexpr int kScanThreads = 1024;
/// start[r] = counts[0] + ... + counts[r - 1] for r in [0, rows]; cursor is a copy of it. One block scans
/// kScanThreads counts at a time: each warp scans its 32 by shuffles, warp 0 scans the 32 warps' totals, and
/// `before` carries the running total, in a register of every thread.
__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(std::int32_t* start, std::int32_t* cursor, const std::int32_t* counts, std::int64_t rows) {
  __shared__ std::int32_t warps[32];
  std::int32_t before = 0;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  for (std::int64_t first = 0; first <= rows; first += kScanThreads) {
    // Threads after the last row scan zeros, and take part in shuffles and barriers.
    const std::int64_t r = first + threadIdx.x;
    const std::int32_t own = r < rows ? counts[r] : 0;
    std::int32_t sum = own;  // inclusive
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t other = __shfl_up_sync(0xFFFFFFFFU, sum, static_cast<unsigned>(step));
      if (lane >= step) sum += other;
    }
    // Lane 31 has the warp's sum.
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      std::int32_t total = warps[lane];
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const std::int32_t other = __shfl_up_sync(0xFFFFFFFFU, total, static_cast<unsigned>(step));
        if (lane >= step) total += other;
      }
      warps[lane] = total;
    }
    __syncthreads();
    // warps[w] is now the sum over warps 0 to w of this pass.
    const std::int32_t exclusive = before + (warp > 0 ? warps[warp - 1] : 0) + sum - own;
    if (r <= rows) {
      start[r] = exclusive;
      if (r < rows) cursor[r] = exclusive;
    }
    // Then a barrier: all threads must have read `warps` before the next pass overwrites it.
    before += warps[31];
    __syncthreads();
  }
}

/// position[N]: positions grouped by row; within a row in arbitrary order, so sum_kernel
/// sorts.
__global__ void __launch_bounds__(kThreads)
    place_kernel(std::int32_t* position, std::int32_t* cursor, const std::int32_t* index, std::int64_t N) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < N) position[atomicAdd(cursor + index[i], 1)] = static_cast<std::int32_t>(i);
}

/// Sorts ascending, in shared memory; `size` is a power of two. In a step each pair (i, i ^ step) is compared
/// only by the thread of its lower index, so that a step has no conflicts; the barrier before it makes the
/// previous one visible.
__device__ void bitonic_sort(std::int32_t* keys, int size) {
  for (int span = 2; span <= size; span *= 2) {
    for (int step = span / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) {
        const int other = i ^ step;
        if (other <= i) continue;
        const bool ascending = (i & span) == 0;
        if ((keys[i] > keys[other]) == ascending) {
          const std::int32_t held = keys[i];
          keys[i] = keys[other];
          keys[other] = held;
        }
      }
    }
  }
  __syncthreads();
}

/// dtable[rows,C] += the sum of dy[N,C] over the positions of the row, in ascending order of
/// position. One block per row of the table. For the few rows with more positions than fit, the block
/// scans the whole index, which is in order. The sum starts from the row's old value and adds in fp32
/// in ascending order of position, as on the CPU: the same bits, whatever order place_kernel
/// produced.
template <class D, class G>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(D* dtable, const G* dy, const std::int32_t* index, const std::int32_t* start,
               const std::int32_t* position, std::int64_t N, std::int64_t C) {
  __shared__ std::int32_t list[kSorted];
  __shared__ int found[kThreads / 32];
  const std::int32_t row = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t begin = start[row];
  const std::int32_t total = start[row + 1] - begin;
  // Equal for the whole block: all threads reach the barriers.
  if (total == 0) return;
  D* to = dtable + std::int64_t{row} * C;

  // Each thread has its own columns, neighbours next to each other; the positions are equal for all (a
  // broadcast).
  const auto add_list = [&](int count) {
    for (std::int64_t c = threadIdx.x; c < C; c += kThreads) {
      float sum = to_float(to[c]);
      for (int k = 0; k < count; ++k) sum += to_float(dy[std::int64_t{list[k]} * C + c]);
      to[c] = from_float<D>(sum);
    }
  };
  if (total <= kSorted) {
    // Sorts the row's positions in shared memory, then adds.
    int size = 1;
    while (size < total) size *= 2;
    for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) {
      // Padding sorts after every position and is not added.
      list[i] = i < total ? position[begin + i] : INT32_MAX;
    }
    bitonic_sort(list, size);
    add_list(total);
    return;
  }
  // More than fit. Sums stay in registers over the whole scan, so that 16-bit tables are rounded once; a pass
  // over the index covers kThreads columns.
  for (std::int64_t first = 0; first < C; first += kThreads) {
    const std::int64_t c = first + threadIdx.x;
    float sum = c < C ? to_float(to[c]) : 0.0F;
    for (std::int64_t from = 0; from < N; from += kThreads) {
      const std::int64_t i = from + threadIdx.x;
      // Compaction in order: a thread's place is the number of hits in earlier warps and on lower lanes.
      // Threads without a column take part, since ballots and barriers include all.
      const bool mine = i < N && index[i] == row;
      const unsigned votes = __ballot_sync(0xFFFFFFFFU, mine);
      const int warp = static_cast<int>(threadIdx.x / 32);
      if (threadIdx.x % 32 == 0) found[warp] = __popc(votes);
      __syncthreads();
      int place = __popc(votes & ((1U << (threadIdx.x % 32)) - 1U));
      int count = 0;
      for (int w = 0; w < kThreads / 32; ++w) {
        if (w == warp) place += count;
        count += found[w];
      }
      // At most kThreads hits per pass: they fit the list.
      if (mine) list[place] = static_cast<std::int32_t>(i);
      __syncthreads();
      if (c < C) {
        for (int k = 0; k < count; ++k) sum += to_float(dy[std::int64_t{list[k]} * C + c]);
      }
    }
    if (c < C) to[c] = from_float<D>(sum);
  }
}

unsigned count(std::int64_t n, std::int64_t unit) { return static_cast<unsigned>((n + unit - 1) / unit); }

}  // namespace

void embedding_forward(const Context& on, Ptr y, ConstPtr table, const std::int32_t* index, std::int64_t N,
                       std::int64_t C, Write write) {
  constexpr const char* kName = "embedding_forward";
  if (N == 0) return;
  with_type(kName, y.type, [&](auto y_tag) {
    with_type(kName, table.type, [&](auto t_tag) {
      using Y = decltype(y_tag);
      using T = decltype(t_tag);
      forward_kernel<<<static_cast<unsigned>(N), kThreads, 0, stream_of(on)>>>(
          static_cast<Y*>(y.data), static_cast<const T*>(table.data), index, C, write == Write::add);
    });
  });
  check_launch(kName);
}

void embedding_backward(const Context& on, Ptr dtable, ConstPtr dy, const std::int32_t* index, std::int64_t N,
                        std::int64_t rows, std::int64_t C, Write write) {
  constexpr const char* kName = "embedding_backward";
  const cudaStream_t stream = stream_of(on);
  if (write == Write::set) {
    fill_zero(on, dtable.data, static_cast<std::size_t>(rows * C) * size_of(dtable.type));
  }
  if (N == 0 || rows == 0) return;
  if (static_cast<std::size_t>(3 * rows + 1 + N) * sizeof(std::int32_t) > Context::kWorkspaceBytes) {
    throw_bad_argument(kName, std::to_string(rows) + " rows and " + std::to_string(N) +
                                  " positions are more than the workspace of a stream has room for");
  }
  // Workspace, int32: counts[rows], start[rows + 1], cursor[rows], position[N].
  auto* counts = static_cast<std::int32_t*>(on.workspace());
  std::int32_t* start = counts + rows;
  std::int32_t* cursor = start + rows + 1;
  std::int32_t* position = cursor + rows;
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(rows) * sizeof *counts, stream), kName,
        "cudaMemsetAsync");
  count_kernel<<<count(N, kThreads), kThreads, 0, stream>>>(counts, index, N);
  scan_kernel<<<1, kScanThreads, 0, stream>>>(start, cursor, counts, rows);
  place_kernel<<<count(N, kThreads), kThreads, 0, stream>>>(position, cursor, index, N);
  with_type(kName, dtable.type, [&](auto d_tag) {
    with_type(kName, dy.type, [&](auto g_tag) {
      using D = decltype(d_tag);
      using G = decltype(g_tag);
      sum_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
          static_cast<D*>(dtable.data), static_cast<const G*>(dy.data), index, start, position, N, C);
    });
  });
  check_launch(kName);
}

}  // namespace shardscope::kernels::cuda
