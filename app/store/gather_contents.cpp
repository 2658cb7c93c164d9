#include "app/store/gather_contents.h"

#include <algorithm>
#include <string_view>

#include "app/store/module_name.h"

namespace shardscope::store {
namespace {

/// Without the model's name in front, where there is one.
std::string_view tail(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos || path.find('.', dot + 1) == std::string_view::npos
             ? path
             : path.substr(dot + 1);
}

}  // namespace

std::vector<std::uint32_t> owners_of(const Store& store, std::span<const std::uint32_t> params) {
  std::vector<std::uint32_t> out;
  const auto& known = store.tables().params;
  for (const std::uint32_t param : params) {
    if (param >= known.size() || known[param].modules.empty()) continue;
    const std::uint32_t module = known[param].modules.front();
    if (std::find(out.begin(), out.end(), module) == out.end()) out.push_back(module);
  }
  return out;
}

std::string contents_text(const Store& store, std::span<const std::uint32_t> params) {
  constexpr std::size_t kNamed = 2;
  const std::vector<std::uint32_t> owners = owners_of(store, params);
  std::string out;
  for (std::size_t i = 0; i < std::min(kNamed, owners.size()); ++i) {
    if (i > 0) out += ", ";
    out += tail(module_name(store, owners[i]));
  }
  if (owners.size() > kNamed) out += " and " + std::to_string(owners.size() - kNamed) + " more";
  return out;
}

std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> collective_params(const Store& store,
                                                                                std::uint32_t rank) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> out;
  store.for_each_instant(rank, Store::kBegin, Store::kEnd, [&](const ev::Event& event) {
    if (event.kind != ev::EventKind::collective_part) return;
    const auto part = ev::as<ev::EventKind::collective_part>(event);
    out[part.sequence].push_back(part.param);
  });
  return out;
}

}  // namespace shardscope::store
