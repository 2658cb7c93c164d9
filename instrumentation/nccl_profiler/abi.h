// NCCL's profiler plugin interface, versions 5 (NCCL 2.28 and later) and 4 (2.27): the symbols a plugin
// exports and the arguments of its calls. NCCL's documentation has plugins declare it themselves; the toolkit
// ships no header. Written from the documented interface (NVIDIA/nccl v2.28.9, ext-profiler/README.md and
// profiler_v4.h, profiler_v5.h; BSD-3); only fields that are used are declared, the rest of a union is
// padding. abi_test.cpp checks the layout.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace shardscope::nccl_profiler::abi {

using Result = int;  ///< ncclResult_t
inline constexpr Result kSuccess = 0;
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

/// Event types; also the bits of the activation mask.
enum EventType : std::uint64_t {
  kGroup = 1U << 0,
  kCollective = 1U << 1,
  kPointToPoint = 1U << 2,
  kProxyOperation = 1U << 3,
  kKernelChannel = 1U << 6,
  kCollectiveCall = 1U << 9,
  kPointToPointCall = 1U << 10,
};
/// The only recorded state: a channel of a kernel has stopped; the arguments have its GPU time.
inline constexpr int kKernelChannelStop = 22;

struct CallV5 {  ///< collApi; equal to p2pApi up to `stream`
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graph_captured;
};
struct CollectiveV4 {
  std::uint64_t sequence;  ///< counts by function and communicator
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct CollectiveV5 {
  CollectiveV4 v4;
  void* parent_group;
};
struct PointToPoint {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
struct ProxyOperation {
  pid_t pid;  ///< of the process whose collective it serves; the parent object belongs to that process
  std::uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t gpu_ns;  ///< the GPU's globaltimer
};

struct DescriptionV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    CallV5 call;
    CollectiveV5 collective;
    PointToPoint point_to_point;
    ProxyOperation proxy;
    KernelChannel kernel;
  };
};
struct DescriptionV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveV4 collective;
    PointToPoint point_to_point;
    ProxyOperation proxy;
    KernelChannel kernel;
  };
};
union StateArguments {
  std::uint64_t kernel_gpu_ns;
  std::size_t other;
};

struct ProfilerV5 {
  const char* name;
  Result (*init)(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes,
                 int ranks, int rank, Logger log);
  Result (*start_event)(void* context, void** handle, DescriptionV5* description);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};
struct ProfilerV4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* name, std::uint64_t communicator, int nodes,
                 int ranks, int rank, Logger log);
  Result (*start_event)(void* context, void** handle, DescriptionV4* description);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};

}  // namespace shardscope::nccl_profiler::abi
