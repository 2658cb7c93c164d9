#include "app/gui/model/bucket_note.h"

#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/format.h"

namespace shardscope::gui {

std::string bucket_note(const instrumentation::RunTables& tables) {
  const nlohmann::json config = analysis::parse_foreign(tables.config_json);
  if (tables.stage != 2 || !config.is_object() || !config.contains("shardscope")) return "";
  const plan::ZeroConfig zero = analysis::zero_of(tables);
  const std::string buffer =
      bytes(zero.reduce_bucket_size * static_cast<std::int64_t>(tables.param_bytes)).text();
  std::string text =
      "Gradients where backward wrote them, from joining a bucket to the end of its reduction: no buffer is "
      "allocated. ";
  text += zero.overlap() ? "With overlap_comm up to three buckets are held: one fills, two are being reduced."
                         : "Without overlap_comm one bucket is held; with it one fills and up to two more "
                           "are being reduced.";
  text += " Beside them is the gradient that did not fit.";
  if (!zero.contiguous_gradients) return text;  // then DeepSpeed has no buffers either
  text += " DeepSpeed copies gradients into a buffer of reduce_bucket_size elements (" + buffer +
          "), allocated whole for each backward; overlap_comm ";
  return text + (zero.overlap() ? "costs" : "would cost") + " a second one there and none here.";
}

}  // namespace shardscope::gui
