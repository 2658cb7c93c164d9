#include "tests/instrumentation/nccl_profiler/fake_nccl.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace shardscope::nccl_profiler {

int g_mask = 0;

namespace {

void* loaded(const char* symbol) {
  static void* const library = dlopen(NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  void* found = library == nullptr ? nullptr : dlsym(library, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
  return found;
}

}  // namespace

const abi::ProfilerV5& plugin_v5() { return *static_cast<const abi::ProfilerV5*>(loaded("ncclProfiler_v5")); }
const abi::ProfilerV4& plugin_v4() { return *static_cast<const abi::ProfilerV4*>(loaded("ncclProfiler_v4")); }

std::uint64_t gpu_now() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

FakeComm::FakeComm(Version version, std::uint64_t id, int ranks, int rank, const char* name, int nodes)
    : version_(version), rank_(rank) {
  if (version == Version::v5) {
    plugin_v5().init(&context_, id, &g_mask, name, nodes, ranks, rank, nullptr);
  } else {
    plugin_v4().init(&context_, &g_mask, name, id, nodes, ranks, rank, nullptr);
  }
}

void FakeComm::finalize() {
  if (context_ == nullptr) return;
  if (version_ == Version::v5) {
    plugin_v5().finalize(context_);
  } else {
    plugin_v4().finalize(context_);
  }
  context_ = nullptr;
}

void* FakeComm::start(abi::DescriptionV5& v5, abi::DescriptionV4& v4) {
  void* handle = nullptr;
  if (version_ == Version::v5) {
    plugin_v5().start_event(context_, &handle, &v5);
  } else {
    plugin_v4().start_event(context_, &handle, &v4);
  }
  return handle;
}

void* FakeComm::event(std::uint64_t type, void* parent) {
  abi::DescriptionV5 v5{};
  v5.type = type;
  v5.parent = parent;
  abi::DescriptionV4 v4{};
  v4.type = static_cast<std::uint8_t>(type);
  v4.parent = parent;
  return start(v5, v4);
}

void* FakeComm::call(const Played& played) {
  if (version_ == Version::v4) return nullptr;
  abi::DescriptionV5 v5{};
  v5.type = abi::kCollectiveCall;
  v5.call = {played.function, played.count, played.datatype, 0, nullptr, false};
  abi::DescriptionV4 none{};
  return start(v5, none);
}

void* FakeComm::collective(const Played& played, void* call, bool running) {
  abi::CollectiveV4 reported{};
  reported.sequence = played.sequence;
  reported.function = played.function;
  reported.count = played.count;
  reported.datatype = played.datatype;
  reported.channels = played.channels;
  reported.warps = 16;
  reported.algorithm = played.algorithm;
  reported.protocol = played.protocol;
  abi::DescriptionV5 v5{};
  v5.type = abi::kCollective;
  v5.parent = call;
  v5.rank = rank_;
  v5.collective = {reported, nullptr};
  abi::DescriptionV4 v4{};
  v4.type = static_cast<std::uint8_t>(abi::kCollective);
  v4.rank = rank_;
  v4.collective = reported;
  void* handle = start(v5, v4);
  if (!running) stop(handle);
  return handle;
}

void* FakeComm::channel(void* parent, std::uint8_t channel, std::uint64_t begin_gpu_ns) {
  abi::DescriptionV5 v5{};
  v5.type = abi::kKernelChannel;
  v5.parent = parent;
  v5.kernel = {channel, begin_gpu_ns};
  abi::DescriptionV4 v4{};
  v4.type = static_cast<std::uint8_t>(abi::kKernelChannel);
  v4.parent = parent;
  v4.kernel = {channel, begin_gpu_ns};
  return start(v5, v4);
}

void FakeComm::end_channel(void* handle, std::uint64_t end_gpu_ns) {
  abi::StateArguments arguments{};
  arguments.kernel_gpu_ns = end_gpu_ns;
  state(handle, abi::kKernelChannelStop, &arguments);
  stop(handle);
}

void* FakeComm::proxy(void* parent, pid_t pid) {
  abi::DescriptionV5 v5{};
  v5.type = abi::kProxyOperation;
  v5.parent = parent;
  v5.proxy.pid = pid;
  abi::DescriptionV4 v4{};
  v4.type = static_cast<std::uint8_t>(abi::kProxyOperation);
  v4.parent = parent;
  v4.proxy.pid = pid;
  return start(v5, v4);
}

void FakeComm::stop(void* handle) {
  if (version_ == Version::v5) {
    plugin_v5().stop_event(handle);
  } else {
    plugin_v4().stop_event(handle);
  }
}

void FakeComm::state(void* handle, int state, abi::StateArguments* arguments) {
  if (version_ == Version::v5) {
    plugin_v5().record_event_state(handle, state, arguments);
  } else {
    plugin_v4().record_event_state(handle, state, arguments);
  }
}

}  // namespace shardscope::nccl_profiler
