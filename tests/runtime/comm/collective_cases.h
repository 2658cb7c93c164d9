// What every transport must compute, as functions that any kind of rank can run: threads of one process,
// processes under mpirun. They assert with EXPECT_* on the rank's own thread.
#pragma once

#include "kernels/types.h"
#include "runtime/comm/world.h"
#include "runtime/device/device.h"

namespace shardscope::testing {

void check_all_gather(comm::World& world, device::Device& device, kernels::DType type);
void check_reduce_scatter(comm::World& world, device::Device& device, kernels::DType type);
void check_reduce(comm::World& world, device::Device& device, kernels::DType type);
void check_all_reduce(comm::World& world, device::Device& device, kernels::DType type);
/// reduce, reduce_scatter and all_reduce of the same values give the same bits.
void check_same_bits(comm::World& world, device::Device& device, kernels::DType type);
void check_all_to_all(comm::World& world, device::Device& device, kernels::DType type);
/// Groups without common members that work at the same time.
void check_groups(comm::World& world, device::Device& device, kernels::DType type);
void check_host_values(comm::World& world, device::Device& device, kernels::DType type);
/// Gathers and reduces at the same time on their own streams, many of them, never block one another.
void check_two_communicators(comm::World& world, device::Device& device, kernels::DType type);

}  // namespace shardscope::testing
