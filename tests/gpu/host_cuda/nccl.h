// What tests ask of the NCCL of host_cuda (nccl.cpp).
#pragma once

namespace shardscope::host_cuda {

/// The thread's next operation is answered as one with an invalid argument.
inline thread_local bool refuse_next_operation = false;

}  // namespace shardscope::host_cuda
