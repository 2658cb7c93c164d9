#include "app/gui/model/span_text.h"

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/store/gather_contents.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

std::string short_name(const store::Store& store, std::uint32_t module) {
  return std::string(tail_path(module_name(store, module)));
}

}  // namespace

std::string length_text(const store::SpanTime& time) {
  std::string text = duration(time.running_ns).text();
  if (time.paused_ns > 0) text += " + " + duration(time.paused_ns).text() + " paused";
  return time.ended ? text : "open, " + text + " so far";
}

std::string reason_of(const store::Store& store, const Fetch& fetch) {
  const std::string contents = store::contents_text(store, fetch.params);
  const std::string at = short_name(store, fetch.module);
  if (fetch.prefetched) return "Prefetched at " + at + (contents.empty() ? "" : ", for " + contents);
  const bool own = contents.empty() || contents == at;
  return "Fetched on demand " + (own ? "for " + at : "at " + at + ", for " + contents);
}

std::string reason_of(const store::Store& store, std::uint8_t status_code, std::uint32_t module,
                      std::span<const std::uint32_t> params) {
  const auto cause = static_cast<ev::StatusCause>(status_code >> 4);
  const auto status = static_cast<plan::ParamStatus>(ev::status_of(status_code));
  std::string text = word(cause);
  if (module == ev::kNoId) return text;
  const std::string name = short_name(store, module);
  switch (cause) {
    case ev::StatusCause::prefetch: {
      if (status != plan::ParamStatus::in_flight) return text + ", for " + name;
      const std::string contents = store::contents_text(store, params);
      return text + " at " + name + (contents.empty() ? "" : ", for " + contents);
    }
    case ev::StatusCause::release:
      return text + " after " + name;
    case ev::StatusCause::invalidation:
      return text + " at " + name;
    default:
      return text + " for " + name;
  }
}

}  // namespace shardscope::gui
