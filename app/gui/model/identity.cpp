#include "app/gui/model/identity.h"

#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/framework.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

bool enabled(const nlohmann::json& config, const char* section) {
  const auto found = config.find(section);
  return found != config.end() && found->is_object() && found->value("enabled", false);
}

std::string dtype(const nlohmann::json& config, std::uint32_t param_bytes) {
  if (enabled(config, "bf16")) return "bf16";
  if (enabled(config, "fp16")) return "fp16";
  return param_bytes == 4 ? "fp32" : std::to_string(param_bytes * 8) + "-bit";
}

}  // namespace

Identity identify(const store::Store& store) {
  Identity out;
  if (!store.has_tables()) {
    out.model = "no run yet";
    return out;
  }
  const auto& tables = store.tables();
  out.model = tables.model.empty() ? "model" : tables.model;
  if (tables.simulated)
    out.facts.emplace_back(kSimulated);  // first, since the last facts are left out in a narrow window
  out.facts.push_back(analysis::partitioning_name(tables));
  out.facts.push_back(std::to_string(tables.world) + (tables.world == 1 ? " rank" : " ranks") +
                      analysis::copies_text(tables.world, analysis::copy_size(tables)));
  // Not an error: a run without a readable configuration is still shown.
  const nlohmann::json config = analysis::parse_foreign(tables.config_json);
  const bool readable = config.is_object();
  out.facts.push_back(readable ? dtype(config, tables.param_bytes)
                               : dtype(nlohmann::json::object(), tables.param_bytes));
  if (readable) {
    const auto zero = config.find("zero_optimization");
    if (zero != config.end() && zero->is_object()) {
      const auto overlap = zero->find("overlap_comm");
      if (overlap != zero->end() && overlap->is_boolean()) {
        out.facts.push_back(overlap->get<bool>() ? "overlap on" : "overlap off");
      }
    }
  }
  if (tables.link_gbps > 0) {
    out.link = "emulated link " + count(tables.link_gbps).number + " Gb/s";
    if (tables.link_latency_us > 0) out.link += ", " + count(tables.link_latency_us).number + " µs";
  }
  return out;
}

}  // namespace shardscope::gui
