// Parameters of a collective and the modules that own them. A gather is named after its contents, not after
// the module that issued it: a prefetch is issued in one module for another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

/// The modules of these parameters, each once, in their order. A parameter used by several modules counts to
/// the first of them; one that is missing in the tables is left out.
[[nodiscard]] std::vector<std::uint32_t> owners_of(const Store& store, std::span<const std::uint32_t> params);
/// "h.3.attn", "h.3.attn, h.3.mlp", "h.3.attn, h.3.mlp and 2 more": their modules; empty: none known.
[[nodiscard]] std::string contents_text(const Store& store, std::span<const std::uint32_t> params);
/// Parameter ids by sequence of the collective, of one rank.
[[nodiscard]] std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> collective_params(
    const Store& store, std::uint32_t rank);

}  // namespace shardscope::store
