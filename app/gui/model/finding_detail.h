// Cost, suggested changes and predicted gain of a finding as text, matching `shardscope
// findings`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/gui/model/session.h"
#include "app/store/store.h"

namespace shardscope::gui {

struct FindingDetail {
  struct Change {
    std::string key, now,
        then;            ///< as in the configuration; `now` of an unset key: "default"
    std::string option;  ///< "zero_optimization.overlap_comm=true": for `run --set` and `what-if --set`
  };
  std::string cost;  ///< "1.2 ms of a step, 3.00 MiB"; empty: unknown
  std::vector<Change> changes;
  std::string gain;  ///< "1.1 ms of a step (...)", or why the gain is unknown
  std::vector<std::string> explains;
  std::string page;
};
[[nodiscard]] FindingDetail detail_of(const store::Store& store, const analysis::Finding& finding);

/// Cost of the finding for a table cell: a time if known, else bytes.
[[nodiscard]] std::string cost_text(const analysis::Finding& finding);

/// A JSON value as text: strings without quotation marks.
[[nodiscard]] std::string plain_value(const std::string& json);

/// What could be found in a run recorded up to `detail`, and what could not: without findings that is not
/// "nothing is wrong".
[[nodiscard]] std::string findings_looked_for(std::optional<ev::Detail> detail);

/// Why the findings of a run have no predicted gains; empty once `shardscope findings` has answered.
[[nodiscard]] std::string advice_words(const Session& run);

}  // namespace shardscope::gui
