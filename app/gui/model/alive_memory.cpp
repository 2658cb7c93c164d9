#include "app/gui/model/alive_memory.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "app/gui/model/block_name.h"
#include "app/gui/model/memory_stack.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/store/model_states.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

using C = ev::MemoryCategory;
using Key = std::pair<C, std::uint32_t>;

std::size_t place_of(C category) {
  const auto order = stack_order();
  return static_cast<std::size_t>(std::ranges::find(order, category) - order.begin());
}

std::string owner_name(const store::Store& store, const AliveBytes& part) {
  if (part.owner == ev::kNoId) return "no single owner";
  return owner_kind(part.category) == OwnerKind::module ? module_name(store, part.owner)
                                                        : param_name(store, part.owner);
}

/// Why the bytes are allocated at that time.
std::string why(const Session& run, std::uint32_t rank, const AliveBytes& part, std::int64_t at_ns,
                std::span<const store::BucketState> buckets) {
  const store::Store& store = run.store();
  const std::int32_t stage = stage_of(store);
  const bool owned = part.owner != ev::kNoId;
  switch (part.category) {
    case C::param_gathered:
      if (stage < 3) return "the resident copy: stage " + std::to_string(stage) + " keeps all parameters";
      if (!owned) return "gathered parameters";
      {
        const store::ParamState state = store.param_state(rank, part.owner, at_ns);
        const std::vector<std::uint32_t> params{part.owner};
        std::string text = reason_of(store, ev::status_code(state.status, state.cause), state.module, params);
        return text.empty() ? word(static_cast<plan::ParamStatus>(ev::status_of(state.status))) : text;
      }
    case C::grad_full:
    case C::reduce_bucket:
      for (const store::BucketState& bucket : buckets) {
        if (std::ranges::find(bucket.params, part.owner) != bucket.params.end())
          return "in " + std::string(words_of(store).bucket) + " " + std::to_string(bucket.bucket) +
                 ", which is filling";
      }
      return part.category == C::grad_full ? "written by backward, until it is reduced to its owner"
                                           : "until the reduction has ended";
    case C::gather_buffer:
      return "the " + std::string(words_of(store).gather) + " under way writes into it";
    case C::activation:
      return "saved by the forward for the backward";
    case C::input:
      return "the micro-batch";
    case C::temporary:
      return "scratch of an operation";
    case C::quantization:
      return "packed values and their scales";
    case C::swap_buffer:
      return "on its way between device, host and NVMe";
    case C::param_secondary:
      return "secondary shard of hpZ, for gathers within the node";
    default:
      return store::is_model_state(part.category, stage) ? "this rank's shard of the model states" : "";
  }
}

AliveNode leaf(const Session& run, std::uint32_t rank, const AliveBytes& part, std::int64_t at_ns,
               std::span<const store::BucketState> buckets) {
  AliveNode node;
  node.label = owner_name(run.store(), part);
  node.category = part.category;
  node.bytes = part.bytes;
  node.owner = part.owner;
  if (part.since_ns > 0) node.since_ns = part.since_ns;
  node.why = why(run, rank, part, at_ns, buckets);
  return node;
}

void add_up(AliveNode& node) {
  if (node.children.empty()) return;
  node.bytes = node.before = 0;
  for (const AliveNode& child : node.children) {
    node.bytes += child.bytes;
    node.before += child.before;
    if (child.since_ns && (!node.since_ns || *child.since_ns < *node.since_ns))
      node.since_ns = child.since_ns;
  }
}

using Size = std::function<std::int64_t(const AliveNode&)>;

/// Groups owners by their block of the model; a block with a single owner is that owner.
std::vector<AliveNode> in_blocks(std::vector<AliveNode> owners, const Size& size) {
  std::map<std::string, std::vector<AliveNode>> blocks;
  for (AliveNode& owner : owners) blocks[std::string(block_of(owner.label))].push_back(std::move(owner));
  std::vector<AliveNode> out;
  for (auto& [name, members] : blocks) {
    std::ranges::stable_sort(members, std::greater{}, size);
    if (members.size() == 1) {
      out.push_back(std::move(members.front()));
      continue;
    }
    AliveNode block;
    block.label = name;
    block.category = members.front().category;
    block.why = std::to_string(members.size()) + " owners";
    block.children = std::move(members);
    add_up(block);
    out.push_back(std::move(block));
  }
  std::ranges::stable_sort(out, std::greater{}, size);
  return out;
}

}  // namespace

OwnerKind owner_kind(C category) noexcept {
  return category == C::activation || category == C::input || category == C::temporary ? OwnerKind::module
                                                                                       : OwnerKind::param;
}

std::int64_t AliveMemory::total() const noexcept {
  std::int64_t sum = 0;
  for (const AliveBytes& part : parts) sum += part.bytes;
  for (const std::int64_t more : unexplained) sum += more;
  return sum;
}

AliveMemory alive_memory(const store::Store& store, std::uint32_t rank, ev::MemoryPool pool,
                         std::int64_t at_ns) {
  AliveMemory out;
  out.at_ns = at_ns;
  out.unexplained = store.memory_at(rank, pool, at_ns).bytes;
  // Events are missing at that time: the owners of the bytes are unknown.
  if (!store.is_known(rank, at_ns)) return out;
  std::map<Key, AliveBytes> alive;
  store.for_each_instant(rank, store::Store::kBegin, at_ns + 1, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::memory_alloc && event.kind != ev::EventKind::memory_free) return;
    const auto change = ev::as<ev::EventKind::memory_alloc>(event);
    if (change.pool != pool) return;
    AliveBytes& part = alive[{change.category, change.owner}];
    if (part.bytes == 0) part.since_ns = static_cast<std::int64_t>(event.ticks);
    part.bytes += event.kind == ev::EventKind::memory_alloc ? change.bytes : -change.bytes;
  });
  for (auto& [key, part] : alive) {
    if (part.bytes == 0) continue;
    part.category = key.first;
    part.owner = key.second;
    out.unexplained[static_cast<std::size_t>(key.first)] -= part.bytes;
    out.parts.push_back(part);
  }
  std::ranges::stable_sort(out.parts, [](const AliveBytes& a, const AliveBytes& b) {
    return std::pair(place_of(a.category), -a.bytes) < std::pair(place_of(b.category), -b.bytes);
  });
  return out;
}

std::vector<AliveNode> alive_tree(const Session& run, std::uint32_t rank, const AliveMemory& alive) {
  const std::vector<store::BucketState> buckets = run.store().buckets_at(rank, alive.at_ns);
  const Size size = [](const AliveNode& node) { return node.bytes; };
  std::vector<AliveNode> out;
  for (const C category : stack_order()) {
    AliveNode node;
    node.label = word(category);
    node.category = category;
    std::vector<AliveNode> owners;
    for (const AliveBytes& part : alive.parts) {
      if (part.category == category) owners.push_back(leaf(run, rank, part, alive.at_ns, buckets));
    }
    if (const std::int64_t more = alive.unexplained[static_cast<std::size_t>(category)]; more != 0) {
      AliveNode rest;
      rest.label = "allocation not recorded";
      rest.category = node.category;
      rest.bytes = more;
      rest.why = "events are missing, or the detail was below params when it was made";
      owners.push_back(std::move(rest));
    }
    if (owners.empty()) continue;
    if (owners.size() == 1) {
      node.why = owners.front().label + ": " + owners.front().why;
      node.bytes = owners.front().bytes;
      node.since_ns = owners.front().since_ns;
      node.owner = owners.front().owner;
    } else {
      node.children = in_blocks(std::move(owners), size);
      add_up(node);
    }
    out.push_back(std::move(node));
  }
  std::ranges::stable_sort(out, std::greater{}, size);
  return out;
}

std::vector<AliveNode> alive_by_owner(const Session& run, std::uint32_t rank, const AliveMemory& alive) {
  const std::vector<store::BucketState> buckets = run.store().buckets_at(rank, alive.at_ns);
  const auto larger = [](const AliveNode& a, const AliveNode& b) { return a.bytes > b.bytes; };
  std::map<std::string, std::map<C, std::vector<AliveNode>>> blocks;
  std::vector<AliveNode> out;
  for (const AliveBytes& part : alive.parts) {
    AliveNode owner = leaf(run, rank, part, alive.at_ns, buckets);
    if (part.owner == ev::kNoId) {
      owner.why = owner.label + (owner.why.empty() ? "" : ": " + owner.why);
      owner.label = word(part.category);
      out.push_back(std::move(owner));
      continue;
    }
    const std::string block(block_of(owner.label));
    blocks[block][part.category].push_back(std::move(owner));
  }
  for (auto& [name, categories] : blocks) {
    AliveNode block;
    block.label = name;
    for (auto& [category, owners] : categories) {
      std::ranges::stable_sort(owners, larger);
      AliveNode node;
      node.label = word(category);
      node.category = category;
      node.why = std::to_string(owners.size()) + (owners.size() == 1 ? " owner" : " owners");
      node.children = std::move(owners);
      add_up(node);
      block.children.push_back(std::move(node));
    }
    std::ranges::stable_sort(block.children, larger);
    block.category = block.children.front().category;  // its largest
    add_up(block);
    out.push_back(std::move(block));
  }
  for (const C category : stack_order()) {
    const std::int64_t more = alive.unexplained[static_cast<std::size_t>(category)];
    if (more == 0) continue;
    AliveNode rest;
    rest.label = std::string(word(category)) + ", allocation not recorded";
    rest.category = category;
    rest.bytes = more;
    rest.why = "events are missing, or the detail was below params when it was made";
    out.push_back(std::move(rest));
  }
  std::ranges::stable_sort(out, larger);
  return out;
}

std::vector<AliveNode> alive_difference(const Session& run, std::uint32_t rank, const AliveMemory& before,
                                        const AliveMemory& after) {
  std::map<Key, std::pair<AliveBytes, AliveBytes>> both;
  for (const AliveBytes& part : before.parts) both[{part.category, part.owner}].first = part;
  for (const AliveBytes& part : after.parts) both[{part.category, part.owner}].second = part;
  const std::vector<store::BucketState> then = run.store().buckets_at(rank, before.at_ns);
  const std::vector<store::BucketState> now = run.store().buckets_at(rank, after.at_ns);
  const Size size = [](const AliveNode& node) { return std::abs(node.bytes - node.before); };
  std::map<C, std::vector<AliveNode>> categories;
  for (const auto& [key, parts] : both) {
    const auto& [old_part, new_part] = parts;
    if (old_part.bytes == new_part.bytes) continue;
    const bool here = new_part.bytes != 0;
    AliveBytes part = here ? new_part : old_part;
    part.category = key.first;
    part.owner = key.second;
    AliveNode node = leaf(run, rank, part, here ? after.at_ns : before.at_ns, here ? now : then);
    node.bytes = new_part.bytes;
    node.before = old_part.bytes;
    categories[key.first].push_back(std::move(node));
  }
  std::vector<AliveNode> out;
  for (auto& [category, owners] : categories) {
    AliveNode node;
    node.label = word(category);
    node.category = category;
    node.children = in_blocks(std::move(owners), size);
    add_up(node);
    out.push_back(std::move(node));
  }
  std::ranges::stable_sort(out, std::greater{}, size);
  return out;
}

}  // namespace shardscope::gui
