// What a collective moves: the parameters in it and the modules that they belong to. A gather is called after
// these, not after the module at which it was issued: a prefetch is issued at one module and is for another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

/// The modules whose parameters these are, each once, in their order. A parameter that several modules use
/// counts to the first of them; one that the tables do not name to none.
[[nodiscard]] std::vector<std::uint32_t> owners_of(const Store& store, std::span<const std::uint32_t> params);
/// "h.3.attn", "h.3.attn, h.3.mlp", "h.3.attn, h.3.mlp and 2 more": their modules; empty where none is known.
[[nodiscard]] std::string contents_text(const Store& store, std::span<const std::uint32_t> params);
/// Parameters by collective (its sequence) of one rank.
[[nodiscard]] std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> collective_params(
    const Store& store, std::uint32_t rank);

}  // namespace shardscope::store
