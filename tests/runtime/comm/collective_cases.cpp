#include "tests/runtime/comm/collective_cases.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/error.h"

namespace shardscope::testing {
namespace {

using device::Buffer;
using kernels::DType;

constexpr std::int64_t kSizes[] = {1, 2, 3, 7, 16, 63, 64, 65, 1000, 4097};
const kernels::Exec kHost;

/// Value of element i of rank r: a multiple of 1/4 small enough that sums of five ranks are exact in
/// every type, so that the closed form needs no tolerance.
float value(std::uint32_t rank, std::int64_t i) {
  return static_cast<float>((i * 3 + rank * 7) % 16 - 8) * 0.25F;
}
/// Values whose fp32 sum depends on the order, to tell one order from another.
float rough(std::uint32_t rank, std::int64_t i) {
  return std::ldexp(1.0F + 0.37F * static_cast<float>((i * 31 + rank * 17) % 101) / 101.0F,
                    static_cast<int>((i * 5 + rank * 3) % 9) - 4) *
         ((i + rank) % 3 == 0 ? -1.0F : 1.0F);
}

Buffer store(device::Device& device, const std::vector<float>& values, DType type) {
  Buffer buffer = device.memory().allocate(std::max<std::size_t>(values.size() * kernels::size_of(type), 1),
                                           {}, device.compute());
  kernels::cast(kHost, {buffer.data(), type}, {values.data(), DType::f32},
                static_cast<std::int64_t>(values.size()));
  return buffer;
}
std::vector<float> load(const void* data, std::int64_t n, DType type) {
  std::vector<float> values(static_cast<std::size_t>(n));
  kernels::cast(kHost, {values.data(), DType::f32}, {data, type}, n);
  return values;
}
template <typename Value>
std::vector<float> fill(std::int64_t n, Value v) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = v(i);
  return values;
}
float sum(std::uint32_t world, std::int64_t i) {
  float total = 0;
  for (std::uint32_t r = 0; r < world; ++r) total += value(r, i);
  return total;
}
void* at(const Buffer& buffer, std::int64_t elem, DType type) {
  return static_cast<std::byte*>(buffer.data()) + static_cast<std::size_t>(elem) * kernels::size_of(type);
}

}  // namespace

void check_all_gather(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("gather");
  const std::uint32_t n = world.size();
  std::vector<Buffer> shards;
  std::vector<Buffer> fulls;
  std::vector<comm::GatherPart> parts;
  bool in_place = false;
  for (const std::int64_t shard : kSizes) {
    const auto own = fill(shard, [&](std::int64_t i) { return value(world.rank(), i); });
    fulls.push_back(store(device, std::vector<float>(static_cast<std::size_t>(shard) * n, 99.0F), type));
    if (in_place) {
      kernels::cast(kHost, {at(fulls.back(), shard * world.rank(), type), type}, {own.data(), DType::f32},
                    shard);
      parts.push_back({at(fulls.back(), shard * world.rank(), type), fulls.back().data(), shard, 1});
    } else {
      shards.push_back(store(device, own, type));
      parts.push_back({shards.back().data(), fulls.back().data(), shard, 1});
    }
    in_place = !in_place;
  }
  comm->all_gather(parts, type, device.gather(), {7});
  device.gather().synchronize();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::int64_t shard = kSizes[p];
    const auto want = fill(
        shard * n, [&](std::int64_t i) { return value(static_cast<std::uint32_t>(i / shard), i % shard); });
    EXPECT_EQ(load(parts[p].full, shard * n, type), want) << "shard of " << shard;
  }
}

void check_reduce_scatter(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("reduce");
  const std::uint32_t n = world.size();
  const float factor = 0.5F;
  std::vector<Buffer> fulls;
  std::vector<Buffer> outs;
  std::vector<comm::ReduceScatterPart> parts;
  bool in_place = false;
  for (const std::int64_t elems : kSizes) {
    const std::int64_t shard = (elems + n - 1) / n;
    auto values = fill(shard * n, [&](std::int64_t i) { return i < elems ? value(world.rank(), i) : 77.0F; });
    fulls.push_back(store(device, values, type));
    void* out = at(fulls.back(), shard * world.rank(), type);
    if (!in_place) {
      outs.push_back(store(device, std::vector<float>(static_cast<std::size_t>(shard), 99.0F), type));
      out = outs.back().data();
    }
    parts.push_back({fulls.back().data(), elems, out, shard, 2});
    in_place = !in_place;
  }
  comm->reduce_scatter(parts, type, factor, device.reduce(), {});
  device.reduce().synchronize();
  for (const auto& part : parts) {
    const auto want = fill(part.shard_elems, [&](std::int64_t i) {
      const std::int64_t at_full = part.shard_elems * world.rank() + i;
      return at_full < part.full_elems ? factor * sum(n, at_full) : 0.0F;
    });
    EXPECT_EQ(load(part.out, part.shard_elems, type), want) << part.full_elems << " elements";
  }
}

void check_reduce(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("reduce");
  const std::uint32_t n = world.size();
  std::vector<Buffer> inputs;
  std::vector<Buffer> outs;
  std::vector<comm::ReducePart> parts;
  std::uint32_t root = 0;
  for (const std::int64_t elems : kSizes) {
    inputs.push_back(
        store(device, fill(elems, [&](std::int64_t i) { return value(world.rank(), i); }), type));
    void* out = inputs.back().data();  // in place for every other part
    if (parts.size() % 2 == 0) {
      outs.push_back(store(device, std::vector<float>(static_cast<std::size_t>(elems), 99.0F), type));
      out = outs.back().data();
    }
    parts.push_back({inputs.back().data(), root == world.rank() ? out : nullptr, elems, root, 3});
    root = (root + 1) % n;
  }
  comm->reduce(parts, type, 2.0F, device.reduce(), {});
  device.reduce().synchronize();
  for (const auto& part : parts) {
    if (part.root == world.rank()) {
      EXPECT_EQ(load(part.out, part.elems, type),
                fill(part.elems, [&](std::int64_t i) { return 2.0F * sum(n, i); }));
    } else {
      EXPECT_EQ(load(part.in, part.elems, type),
                fill(part.elems, [&](std::int64_t i) { return value(world.rank(), i); }))
          << "the input of a rank that is not root was changed";
    }
  }
}

void check_all_reduce(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("reduce");
  for (const std::int64_t elems : kSizes) {
    const Buffer data =
        store(device, fill(elems, [&](std::int64_t i) { return value(world.rank(), i); }), type);
    comm->all_reduce(std::array{comm::AllReducePart{data.data(), elems}}, type, 0.25F, device.reduce(), {});
    device.reduce().synchronize();
    EXPECT_EQ(load(data.data(), elems, type),
              fill(elems, [&](std::int64_t i) { return 0.25F * sum(world.size(), i); }));
  }
  // All sizes as the parts of one collective.
  std::vector<Buffer> buffers;
  std::vector<comm::AllReducePart> parts;
  for (const std::int64_t elems : kSizes) {
    buffers.push_back(
        store(device, fill(elems, [&](std::int64_t i) { return value(world.rank(), i); }), type));
    parts.push_back({buffers.back().data(), elems});
  }
  comm->all_reduce(parts, type, 0.25F, device.reduce(), {});
  device.reduce().synchronize();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(load(buffers[i].data(), parts[i].elems, type),
              fill(parts[i].elems, [&](std::int64_t k) { return 0.25F * sum(world.size(), k); }));
  }
}

void check_same_bits(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("reduce");
  const std::uint32_t n = world.size();
  const float factor = 1.0F / static_cast<float>(n);
  for (const std::int64_t elems : kSizes) {
    const std::int64_t shard = (elems + n - 1) / n;
    const auto mine = fill(elems, [&](std::int64_t i) { return rough(world.rank(), i); });
    const Buffer whole = store(device, mine, type);
    const Buffer input = store(device, mine, type);
    const Buffer reduced = store(device, mine, type);
    const Buffer scattered = store(device, std::vector<float>(static_cast<std::size_t>(shard)), type);
    comm->all_reduce(std::array{comm::AllReducePart{whole.data(), elems}}, type, factor, device.reduce(), {});
    const comm::ReduceScatterPart scatter{input.data(), elems, scattered.data(), shard, 0};
    comm->reduce_scatter({&scatter, 1}, type, factor, device.reduce(), {});
    const comm::ReducePart reduce{input.data(), reduced.data(), elems, n - 1, 0};
    comm->reduce({&reduce, 1}, type, factor, device.reduce(), {});
    device.reduce().synchronize();
    const auto reference = load(whole.data(), elems, type);
    if (world.rank() == n - 1) {
      EXPECT_EQ(load(reduced.data(), elems, type), reference);
    }
    const auto part = load(scattered.data(), shard, type);
    for (std::int64_t i = 0; i < shard; ++i) {
      const std::int64_t full = shard * world.rank() + i;
      EXPECT_EQ(part[static_cast<std::size_t>(i)],
                full < elems ? reference[static_cast<std::size_t>(full)] : 0.0F);
    }
    // The order is that of the ranks, in fp32, rounded once.
    std::vector<std::vector<float>> inputs(n);
    for (std::uint32_t r = 0; r < n; ++r) {
      const Buffer rounded = store(device, fill(elems, [&](std::int64_t i) { return rough(r, i); }), type);
      inputs[r] = load(rounded.data(), elems, type);
    }
    const Buffer want = store(device,
                              fill(elems,
                                   [&](std::int64_t i) {
                                     float total = inputs[0][static_cast<std::size_t>(i)];
                                     for (std::uint32_t r = 1; r < n; ++r)
                                       total += inputs[r][static_cast<std::size_t>(i)];
                                     return factor * total;
                                   }),
                              type);
    EXPECT_EQ(reference, load(want.data(), elems, type));
  }
}

void check_host_values(comm::World& world, device::Device&, DType) {
  const auto comm = world.make_communicator("host");
  const std::uint32_t n = world.size();
  std::vector<double> sums(10001);  // more than one round
  std::vector<std::uint64_t> largest(3);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(i) + world.rank();
  for (std::size_t i = 0; i < largest.size(); ++i) largest[i] = (world.rank() + i) % n;
  comm->all_reduce_host(sums);
  comm->max_host(largest);
  for (std::size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(sums[i], static_cast<double>(i * n + n * (n - 1) / 2));
  for (const std::uint64_t value : largest) EXPECT_EQ(value, n - 1);
  std::vector<std::byte> text(100'000, std::byte{static_cast<unsigned char>(world.rank() + 1)});
  comm->broadcast_host(text, n - 1);
  EXPECT_EQ(text, std::vector<std::byte>(100'000, std::byte{static_cast<unsigned char>(n)}));
  comm->barrier_host();
}

void check_two_communicators(comm::World& world, device::Device& device, DType type) {
  const auto gather = world.make_communicator("gather");
  const auto reduce = world.make_communicator("reduce");
  const std::uint32_t n = world.size();
  constexpr std::int64_t kElems = 257;
  const Buffer full = store(device, std::vector<float>(kElems * n, 1.0F), type);
  const Buffer data = store(device, std::vector<float>(kElems, 1.0F), type);
  for (int i = 0; i < 50; ++i) {
    const comm::GatherPart part{at(full, kElems * world.rank(), type), full.data(), kElems, 0};
    gather->all_gather({&part, 1}, type, device.gather(), {});
    reduce->all_reduce(std::array{comm::AllReducePart{data.data(), kElems}}, type,
                       1.0F / static_cast<float>(n), device.reduce(), {});
    if (i % 10 == 0) gather->barrier_host();
  }
  device.synchronize();
  for (const float v : load(data.data(), kElems, type))
    EXPECT_NEAR(v, 1.0F, 1e-2F);  // n * round(1/n), 50 times
}

void check_all_to_all(comm::World& world, device::Device& device, DType type) {
  const auto comm = world.make_communicator("exchange");
  const std::uint32_t n = world.size();
  std::vector<Buffer> buffers;
  std::vector<comm::AllToAllPart> parts;
  for (const std::int64_t chunk : kSizes) {
    // Chunk k of rank r holds value(r, 1000 * k + i).
    buffers.push_back(store(
        device,
        fill(chunk * n, [&](std::int64_t i) { return value(world.rank(), 1000 * (i / chunk) + i % chunk); }),
        type));
    buffers.push_back(store(device, std::vector<float>(static_cast<std::size_t>(chunk * n), 99.0F), type));
    parts.push_back({buffers[buffers.size() - 2].data(), buffers.back().data(), chunk, 4});
  }
  comm->all_to_all(parts, type, device.reduce(), {3});
  device.reduce().synchronize();
  for (const auto& part : parts) {
    EXPECT_EQ(load(part.receive, part.chunk_elems * n, type),
              fill(part.chunk_elems * n,
                   [&](std::int64_t i) {
                     return value(static_cast<std::uint32_t>(i / part.chunk_elems),
                                  1000 * world.rank() + i % part.chunk_elems);
                   }))
        << "chunks of " << part.chunk_elems;
  }
  const comm::AllToAllPart same{buffers[0].data(), buffers[0].data(), 1, 0};
  EXPECT_THROW(comm->all_to_all({&same, 1}, type, device.reduce(), {}), BackendError);
}

namespace {

/// What the collectives of one group give, against the closed form over its members.
void check_group(comm::Communicator& comm, const comm::Group& group, std::uint32_t world_rank,
                 device::Device& device, DType type) {
  constexpr std::int64_t kElems = 65;
  const auto n = static_cast<std::int64_t>(group.members.size());
  ASSERT_EQ(comm.world(), n);
  ASSERT_EQ(group.members[comm.rank()], world_rank);
  const auto member = [&](std::int64_t r) { return group.members[static_cast<std::size_t>(r)]; };
  const auto total = [&](std::int64_t i) {
    float sum = 0;
    for (const std::uint32_t m : group.members) sum += value(m, i);
    return sum;
  };
  const auto mine = fill(kElems * n, [&](std::int64_t i) { return value(world_rank, i); });
  const Buffer own = store(device, mine, type);
  const Buffer gathered = store(device, std::vector<float>(kElems * static_cast<std::size_t>(n)), type);
  const Buffer exchanged = store(device, std::vector<float>(kElems * static_cast<std::size_t>(n)), type);
  const Buffer scattered = store(device, std::vector<float>(kElems), type);
  const Buffer reduced = store(device, mine, type);
  const comm::GatherPart gather{own.data(), gathered.data(), kElems, 0};
  const comm::AllToAllPart exchange{own.data(), exchanged.data(), kElems, 0};
  const comm::ReduceScatterPart scatter{own.data(), kElems * n, scattered.data(), kElems, 0};
  comm.all_gather({&gather, 1}, type, device.reduce(), {});
  comm.all_to_all({&exchange, 1}, type, device.reduce(), {});
  comm.reduce_scatter({&scatter, 1}, type, 0.5F, device.reduce(), {});
  comm.all_reduce(std::array{comm::AllReducePart{reduced.data(), kElems}}, type, 1.0F, device.reduce(), {});
  device.reduce().synchronize();
  EXPECT_EQ(load(gathered.data(), kElems * n, type),
            fill(kElems * n, [&](std::int64_t i) { return value(member(i / kElems), i % kElems); }));
  EXPECT_EQ(load(exchanged.data(), kElems * n, type), fill(kElems * n, [&](std::int64_t i) {
              return value(member(i / kElems), kElems * comm.rank() + i % kElems);
            }));
  EXPECT_EQ(load(scattered.data(), kElems, type),
            fill(kElems, [&](std::int64_t i) { return 0.5F * total(kElems * comm.rank() + i); }));
  EXPECT_EQ(load(reduced.data(), kElems, type), fill(kElems, total));
  std::vector<double> sums{static_cast<double>(world_rank)};
  comm.all_reduce_host(sums);
  double want = 0;
  for (const std::uint32_t m : group.members) want += m;
  EXPECT_EQ(sums[0], want);
}

}  // namespace

void check_groups(comm::World& world, device::Device& device, DType type) {
  const std::uint32_t n = world.size();
  const std::uint32_t rank = world.rank();
  comm::Group pair;    // neighbours; the last may be alone
  comm::Group stride;  // every other rank
  for (std::uint32_t r = 0; r < n; ++r) {
    if (r / 2 == rank / 2) pair.members.push_back(r);
    if (r % 2 == rank % 2) stride.members.push_back(r);
  }
  const auto pairs = world.make_communicator("pairs", pair);
  const auto strides = world.make_communicator("strides", stride);
  const auto all = world.make_communicator("all");
  for (int round = 0; round < 3; ++round) {
    check_group(*pairs, pair, rank, device, type);
    check_group(*strides, stride, rank, device, type);
  }
  all->barrier_host();
  EXPECT_THROW(static_cast<void>(world.make_communicator("alien", comm::Group{{rank + 1}})), BackendError);
  EXPECT_THROW(static_cast<void>(world.make_communicator("outside", comm::Group{{rank, n}})), BackendError);
}

}  // namespace shardscope::testing
