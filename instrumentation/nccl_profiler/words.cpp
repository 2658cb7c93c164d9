#include "instrumentation/nccl_profiler/words.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace shardscope::nccl_profiler {
namespace {

using instrumentation::CollectiveOp;
using instrumentation::NcclAlgorithm;
using instrumentation::NcclProtocol;

template <typename Value, std::size_t N>
const Value* find(const std::array<std::pair<std::string_view, Value>, N>& rows, const char* word) noexcept {
  if (word == nullptr) return nullptr;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == word; });
  return row == rows.end() ? nullptr : &row->second;
}

}  // namespace

std::optional<CollectiveOp> operation_of(const char* function) noexcept {
  static constexpr std::array<std::pair<std::string_view, CollectiveOp>, 6> kRows{{
      {"AllGather", CollectiveOp::all_gather},
      {"ReduceScatter", CollectiveOp::reduce_scatter},
      {"Reduce", CollectiveOp::reduce},
      {"AllReduce", CollectiveOp::all_reduce},
      {"Broadcast", CollectiveOp::broadcast},
      {"AlltoAll", CollectiveOp::all_to_all},
  }};
  const CollectiveOp* found = find(kRows, function);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

ElementType type_of(const char* datatype) noexcept {
  static constexpr std::array<std::pair<std::string_view, ElementType>, 12> kRows{{
      {"ncclFloat32", {4, 0}},
      {"ncclBfloat16", {2, 1}},
      {"ncclFloat16", {2, 2}},
      {"ncclInt8", {1, 3}},
      {"ncclUint8", {1, 3}},
      {"ncclInt32", {4, 255}},
      {"ncclUint32", {4, 255}},
      {"ncclInt64", {8, 255}},
      {"ncclUint64", {8, 255}},
      {"ncclFloat64", {8, 255}},
      {"ncclFloat8e4m3", {1, 255}},
      {"ncclFloat8e5m2", {1, 255}},
  }};
  const ElementType* found = find(kRows, datatype);
  return found == nullptr ? ElementType{} : *found;
}

NcclAlgorithm algorithm_of(const char* name) noexcept {
  static constexpr std::array<std::pair<std::string_view, NcclAlgorithm>, 7> kRows{{
      {"TREE", NcclAlgorithm::tree},
      {"RING", NcclAlgorithm::ring},
      {"COLLNET_DIRECT", NcclAlgorithm::collnet_direct},
      {"COLLNET_CHAIN", NcclAlgorithm::collnet_chain},
      {"NVLS", NcclAlgorithm::nvls},
      {"NVLS_TREE", NcclAlgorithm::nvls_tree},
      {"PAT", NcclAlgorithm::pat},
  }};
  const NcclAlgorithm* found = find(kRows, name);
  return found == nullptr ? NcclAlgorithm::unknown : *found;
}

NcclProtocol protocol_of(const char* name) noexcept {
  static constexpr std::array<std::pair<std::string_view, NcclProtocol>, 3> kRows{{
      {"LL", NcclProtocol::ll},
      {"LL128", NcclProtocol::ll128},
      {"SIMPLE", NcclProtocol::simple},
  }};
  const NcclProtocol* found = find(kRows, name);
  return found == nullptr ? NcclProtocol::unknown : *found;
}

std::int64_t parts_of(CollectiveOp operation, int ranks) noexcept {
  switch (operation) {
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
      return std::max(ranks, 1);
    case CollectiveOp::reduce:
    case CollectiveOp::all_reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::barrier:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      break;
  }
  return 1;
}

}  // namespace shardscope::nccl_profiler
