// What a finding costs, what to change about it and what that gives, in words: as `shardscope findings`
// prints.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/session.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct FindingDetail {
  struct Change {
    std::string key, now,
        then;            ///< as the configuration writes them; `now` of what it does not name: "default"
    std::string option;  ///< "zero_optimization.overlap_comm=true": of `run --set` and `what-if --set`
  };
  std::string cost;  ///< "1.2 ms of a step, 3.00 MiB"; empty: not known
  std::vector<Change> changes;
  std::string gain;  ///< "1.1 ms of a step (...)", or why no gain is known
  std::vector<std::string> explains;
  std::string page;
};
[[nodiscard]] FindingDetail detail_of(const store::Store& store, const analysis::Finding& finding);

/// What the finding costs, for one column of a table: a time where there is one, else bytes.
[[nodiscard]] std::string cost_text(const analysis::Finding& finding);

/// A setting's value as text: strings without their quotation marks.
[[nodiscard]] std::string plain_value(const std::string& json);

/// Why nothing is predicted of what a run's findings would change; empty where what-if has answered.
[[nodiscard]] std::string advice_words(const Session& run);

}  // namespace shardscope::gui
