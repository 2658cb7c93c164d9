#include "runtime/comm/cuda/attach.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/comm/cuda/nccl_transport.h"
#include "runtime/comm/cuda/staged_transport.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

/// The physical device of a rank: the driver's UUID, 16 bytes.
using DeviceIdentity = std::array<std::byte, 16>;

DeviceIdentity identity_of(int ordinal, const std::string& where) {
  cudaDeviceProp properties{};
  device::cuda::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties", where);
  DeviceIdentity identity;
  static_assert(sizeof properties.uuid == sizeof identity);
  std::memcpy(identity.data(), &properties.uuid, sizeof identity);
  return identity;
}

/// NCCL refuses two ranks of a communicator on one GPU. Compares the driver's identity (UUID) and not the
/// ordinal: each rank may number its GPUs differently (CUDA_VISIBLE_DEVICES), and ordinals repeat on other
/// nodes.
bool shared_by_ranks(World& world, int ordinal, const std::string& where) {
  // Created before the adapter is set, so it uses the host's transport.
  const auto control = world.make_communicator("devices");
  const DeviceIdentity mine = identity_of(ordinal, where);
  std::set<DeviceIdentity> all;
  // Broadcasts by rank in turn: the interface has no gather of host bytes.
  for (std::uint32_t r = 0; r < world.size(); ++r) {
    DeviceIdentity one = mine;
    control->broadcast_host(one, r);
    all.insert(one);
  }
  // Fewer devices than ranks: two share one.
  return all.size() < world.size();
}

}  // namespace

void attach_cuda(World& world, device::Device& device, int ordinal, DeviceTransport which,
                 std::chrono::milliseconds timeout) {
  const std::string where = "rank " + std::to_string(world.rank());
  // Every rank has the same identities, so all choose the same transport.
  const bool shared = shared_by_ranks(world, ordinal, where);
  if (which == DeviceTransport::nccl && shared) {
    throw BackendError(
        "attach_cuda", 0,
        "NCCL was asked for, but several ranks share a GPU; give each rank its own or stage through "
        "the host",
        where);
  }
  // This rank's index within a group.
  const auto place = [rank = world.rank()](const Group& group) {
    return static_cast<std::uint32_t>(std::lower_bound(group.members.begin(), group.members.end(), rank) -
                                      group.members.begin());
  };
  if (which == DeviceTransport::staged || shared) {
    // One for all communicators of the rank, which share it through the adapter.
    auto staging = std::make_shared<Staging>(device, world.region());
    world.set_adapter(
        [staging, place](std::unique_ptr<Transport> host, const std::string&, const Group& group) {
          return std::make_unique<StagedTransport>(staging, std::move(host), place(group),
                                                   static_cast<std::uint32_t>(group.members.size()));
        });
    return;
  }
  world.set_adapter([ordinal, timeout, place](std::unique_ptr<Transport> host, const std::string& name,
                                              const Group& group) {
    return std::make_unique<NcclTransport>(std::move(host), name, place(group),
                                           static_cast<std::uint32_t>(group.members.size()), ordinal,
                                           timeout);
  });
}

}  // namespace shardscope::comm
