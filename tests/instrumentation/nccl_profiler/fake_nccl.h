// Calls the plugin as NCCL does: loads it as NCCL loads it, and plays communicators, calls, collectives,
// kernels and proxies of both interface versions.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "instrumentation/nccl_profiler/abi.h"

namespace shardscope::nccl_profiler {

/// ncclProfilerEventMask: one for the process.
extern int g_mask;

/// dlopen() of the plugin under test, once; ends the process when there is none.
const abi::ProfilerV5& plugin_v5();
const abi::ProfilerV4& plugin_v4();

/// GPU time: the host's real-time clock and a distance that the plugin has to find out.
std::uint64_t gpu_now();

struct Played {
  const char* function = "AllGather";
  std::size_t count = 1024;
  const char* datatype = "ncclBfloat16";
  const char* algorithm = "RING";
  const char* protocol = "LL128";
  std::uint8_t channels = 4;
  std::uint64_t sequence = 0;
};

class FakeComm {
 public:
  enum class Version { v4, v5 };
  FakeComm(Version version, std::uint64_t id, int ranks, int rank, const char* name = nullptr, int nodes = 1);
  ~FakeComm() { finalize(); }
  FakeComm(const FakeComm&) = delete;
  FakeComm& operator=(const FakeComm&) = delete;
  void finalize();

  /// The call on the thread of the program; null before version 5.
  void* call(const Played& played);
  /// Enqueued and, unless `running`, stopped: which to NCCL means enqueued.
  void* collective(const Played& played, void* call, bool running = false);
  void* channel(void* parent, std::uint8_t channel, std::uint64_t begin_gpu_ns);
  void end_channel(void* handle, std::uint64_t end_gpu_ns);
  void* proxy(void* parent, pid_t pid = getpid());
  void* event(std::uint64_t type, void* parent);
  void stop(void* handle);
  void state(void* handle, int state, abi::StateArguments* arguments);
  [[nodiscard]] void* context() const { return context_; }

 private:
  void* start(abi::DescriptionV5& v5, abi::DescriptionV4& v4);
  const Version version_;
  const int rank_;
  void* context_ = nullptr;
};

}  // namespace shardscope::nccl_profiler
