#include "runtime/train/weight_sums.h"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/base/hash.h"

namespace shardscope::train {
namespace {

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

void WeightSums::add(plan::ParamId param, const float* values, std::int64_t elems) {
  std::uint64_t& sum = ownership_.whole_everywhere(param) ? whole_ : sharded_;
  const auto bytes = std::as_bytes(std::span(values, static_cast<std::size_t>(elems)));
  sum = base::hash64(sum ^ base::checksum(bytes));
}

void WeightSums::check(comm::Communicator& control) const {
  const std::uint32_t world = control.world();
  std::vector<std::uint64_t> sums(std::size_t{2} * world);
  sums[control.rank()] = whole_;
  sums[world + control.rank()] = sharded_;
  control.max_host(sums);
  const auto compare = [&](std::uint32_t rank, std::uint32_t like, std::size_t at) {
    if (sums[at + rank] == sums[at + like]) return;
    throw std::runtime_error(
        "initial weights: rank " + std::to_string(rank) + " begins with others than rank " +
        std::to_string(like) + " (checksums " + hex(sums[at + rank]) + " and " + hex(sums[at + like]) +
        ") though both made them from the same; run the same build on one kind of processor, "
        "or give the weights as a file with --init");
  };
  for (std::uint32_t rank = 1; rank < world; ++rank) {
    compare(rank, 0, 0);
    compare(rank, rank % ownership_.shard_world(), world);
  }
}

}  // namespace shardscope::train
