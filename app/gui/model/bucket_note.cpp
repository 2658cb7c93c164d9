#include "app/gui/model/bucket_note.h"

#include <nlohmann/json.hpp>

#include "app/analysis/foreign_json.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/format.h"
#include "runtime/plan/gradient_buckets.h"

namespace shardscope::gui {

namespace {

std::string text_of_buffers(const plan::ZeroConfig& zero, std::uint32_t element_bytes) {
  const std::string buffer = bytes(zero.reduce_bucket_size * static_cast<std::int64_t>(element_bytes)).text();
  const bool two = zero.stage < 3 && zero.overlap();
  return std::string("compat gradient_buffers, as DeepSpeed: gradients are copied into ") +
         (two ? "one of two buffers" : "a buffer") + " of reduce_bucket_size elements (" + buffer +
         (two ? " each, the second by overlap_comm)" : ")") +
         (zero.stage < 3 ? ", allocated whole for each backward."
                         : ", allocated whole by the first backward and kept.") +
         " A gradient that is larger stays where backward wrote it.";
}

}  // namespace

std::string bucket_note(const instrumentation::RunTables& tables) {
  const nlohmann::json config = analysis::parse_foreign(tables.config_json);
  if (!config.is_object() || !config.contains("shardscope")) return "";
  const plan::ZeroConfig zero = analysis::zero_of(tables);
  if (plan::buckets_are_buffers(zero)) {
    return text_of_buffers(zero, zero.stage == 1 ? tables.grad_bytes : tables.param_bytes);
  }
  if (tables.stage != 2) return "";
  const std::string buffer =
      bytes(zero.reduce_bucket_size * static_cast<std::int64_t>(tables.param_bytes)).text();
  std::string text =
      "Gradients where backward wrote them, from joining a bucket to the end of its reduction: no buffer is "
      "allocated. ";
  text += zero.overlap() ? "With overlap_comm up to three buckets are held: one fills, two are being reduced."
                         : "Without overlap_comm one bucket is held; with it one fills and up to two more "
                           "are being reduced.";
  text += " Beside them is the gradient that did not fit.";
  if (!zero.contiguous_gradients) return text;  // DeepSpeed has no buffers in this case either
  text += " DeepSpeed copies gradients into a buffer of reduce_bucket_size elements (" + buffer +
          "), allocated whole for each backward; overlap_comm ";
  return text + (zero.overlap() ? "costs" : "would cost") + " a second one there and none here.";
}

}  // namespace shardscope::gui
