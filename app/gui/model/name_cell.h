// Names of modules and parameters without what all of a model's begin with.
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

/// Of one store, decided once from all of its modules: names that differ stay different.
class NameCells {
 public:
  explicit NameCells(const store::Store& store);
  /// Without the model's own name in front: a part of `name`.
  [[nodiscard]] std::string_view without_model(std::string_view name) const;
  /// The same, whole under the pointer.
  [[nodiscard]] Cell cell(const std::string& name) const;

 private:
  /// With its dot: the part that every path begins with, but for heads beside it; empty: there is none.
  std::string model_;
};

/// The name where it fits, else its end: "…1.self_attn.in_proj_weight". Components go from the front, because
/// what tells a list's names apart stands at the end; the last one is left to be cut by who draws it. `fits`
/// says whether a text has room.
[[nodiscard]] std::string end_of_name(std::string_view name,
                                      const std::function<bool(std::string_view)>& fits);

/// NameCells, kept while the run's tables stay.
class KeptNameCells {
 public:
  /// `run`: Session::number().
  [[nodiscard]] const NameCells& of(std::uint64_t run, const store::Store& store);

 private:
  TablesKey key_;
  std::optional<NameCells> names_;
};

}  // namespace shardscope::gui
