#include "app/gui/model/span_text.h"

#include <algorithm>
#include <span>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/store/gather_contents.h"
#include "app/store/span_label.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

/// "for h.4.attn" for a module's own parameters, else "at h.3.mlp, for h.4.attn".
std::string place_of(const store::Store& store, std::uint32_t module, const std::string& contents) {
  const std::string at = unit_name(store, module);
  if (contents.empty() || contents == short_module(store, module)) return "for " + at;
  return "at " + at + ", for " + contents;
}

}  // namespace

std::string length_text(const store::SpanTime& time) {
  std::string text = duration(time.running_ns).text();
  if (time.paused_ns > 0) text += " + " + duration(time.paused_ns).text() + " paused";
  if (time.ended) return text;
  return time.still_running ? "open, " + text + " so far" : "not ended, " + text + " up to the last event";
}

std::string range_text(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  return length_text(store::time_between(store, begin_ns, end_ns));
}

std::string measured_text(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::string text = range_text(store, begin_ns, end_ns);
  const auto step = measured_step_of(store.steps(), begin_ns);
  const std::int64_t length = step ? store::time_of(store, store.steps()[*step]).running_ns : 0;
  if (length <= 0) return text;
  const auto running = static_cast<double>(store::time_between(store, begin_ns, end_ns).running_ns);
  return text + ", " + decimal(running / static_cast<double>(length), 2) + " steps";
}

std::string fold_text(const store::Store& store, store::LaneId lane, std::uint8_t depth, std::int64_t at_ns,
                      std::int64_t width_ns) {
  const std::int64_t begin = at_ns - width_ns / 2;
  const std::int64_t end = begin + std::max<std::int64_t>(width_ns, 1);
  const auto spans = static_cast<std::int64_t>(store.span_count(lane, depth, begin, end));
  store::Density column;
  store.density(lane, depth, begin, end, std::span(&column, 1));
  if (spans == 0 || column.count == 0) return "Nothing in this row here";
  return "About " + grouped(spans) + (spans == 1 ? " span" : " spans") + " within " +
         duration(end - begin).text() + ", which keep this row busy for " +
         decimal(static_cast<double>(column.busy) * 100, 0) + " %, mostly " +
         store::kind_label(store, column.dominant) + ". Zoom in to tell them apart.";
}

std::string wait_text(const store::Store& store, std::uint32_t rank, const store::Span& wait,
                      const RunIndex& index) {
  const store::Vocabulary& words = words_of(store);
  if (wait.kind != ev::EventKind::fetch_wait_begin) {
    const bool is_of_a_bucket = words.has_buckets && wait.kind == ev::EventKind::reduce_wait_begin &&
                                ev::as<ev::EventKind::reduce_wait_begin>(wait).bucket != ev::kNoId;
    return store::awaited(store, wait) + (is_of_a_bucket ? " to be reduced" : "");
  }
  const auto fields = ev::as<ev::EventKind::fetch_wait_begin>(wait);
  if (fields.module == ev::kNoId) return std::string(words.gather) + " of " + store::awaited(store, wait);
  const Fetch* fetch = index.fetch_by_id(rank, fields.gather);
  return words.fetch + (" " + (fetch == nullptr ? "at " + unit_name(store, fields.module)
                                                : place_of(store, fields.module,
                                                           store::contents_text(store, fetch->params))));
}

std::string reason_of(const store::Store& store, const Fetch& fetch) {
  const std::string contents = store::contents_text(store, fetch.params);
  if (fetch.prefetched)
    return "Prefetched at " + unit_name(store, fetch.module) + (contents.empty() ? "" : ", for " + contents);
  return sentence(words_of(store).fetched) + " on demand " + place_of(store, fetch.module, contents);
}

std::string reason_of(const store::Store& store, std::uint8_t status_code, std::uint32_t module,
                      std::span<const std::uint32_t> params) {
  const ev::StatusCause cause = ev::cause_of(status_code);
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(status_code));
  const std::string text = cause_word(store, cause);
  if (module == ev::kNoId) return text;
  const std::string name = unit_name(store, module), contents = store::contents_text(store, params);
  switch (cause) {
    case ev::StatusCause::prefetch:
      // In flight: the module at which it was issued. Later: the first module that used it.
      if (status != plan::ParamStatus::in_flight)
        return text + (contents == short_module(store, module) ? ", for " + name : ", used first at " + name);
      return text + " at " + name + (contents.empty() ? "" : ", for " + contents);
    case ev::StatusCause::fetch:
      return text + " " + place_of(store, module, contents);
    case ev::StatusCause::release:
      return text + " after " + name;
    case ev::StatusCause::invalidation:
      return text + " at " + name;
    default:
      return text + " for " + name;
  }
}

}  // namespace shardscope::gui
