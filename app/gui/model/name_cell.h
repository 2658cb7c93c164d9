// Names of modules and parameters without the prefix that all names of a model share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/gui/model/table.h"
#include "app/gui/model/tables_key.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Computed from all modules of one store, so that different names stay different.
class NameCells {
 public:
  explicit NameCells(const store::Store& store);
  /// Removes the model's own name; returns a part of `name`.
  [[nodiscard]] std::string_view without_model(std::string_view name) const;
  /// A table cell with the short name, and the full one as tooltip.
  [[nodiscard]] Cell cell(const std::string& name) const;

 private:
  /// With its dot: the first component of every path but those of heads beside the model; empty: none.
  std::string model_;
};

/// The name if it fits, else its end: "…1.self_attn.in_proj_weight". Removes leading components, since the
/// names of a list differ at the end; the last component is kept and left to the caller to clip. `fits`
/// returns whether a text fits.
[[nodiscard]] std::string end_of_name(std::string_view name,
                                      const std::function<bool(std::string_view)>& fits);

/// NameCells, cached while the run's tables are unchanged.
class KeptNameCells {
 public:
  /// `run`: Session::number().
  [[nodiscard]] const NameCells& of(std::uint64_t run, const store::Store& store);

 private:
  TablesKey key_;
  std::optional<NameCells> names_;
};

}  // namespace shardscope::gui
