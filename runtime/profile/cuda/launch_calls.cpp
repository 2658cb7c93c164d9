#include "runtime/profile/cuda/launch_calls.h"

#include <algorithm>
#include <array>

namespace shardscope::profile::cuda {
namespace {

constexpr std::array kRuntimeCalls{CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
                                   CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
                                   CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000};
constexpr std::array kDriverCalls{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                                  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async};

}  // namespace

bool queues_work(CUpti_ActivityKind kind, CUpti_CallbackId call) noexcept {
  const auto among = [call](const auto& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [call](auto one) { return static_cast<CUpti_CallbackId>(one) == call; });
  };
  return kind == CUPTI_ACTIVITY_KIND_RUNTIME ? among(kRuntimeCalls) : among(kDriverCalls);
}

}  // namespace shardscope::profile::cuda
