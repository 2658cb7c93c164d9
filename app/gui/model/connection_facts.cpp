#include "app/gui/model/connection_facts.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/store/control_text.h"
#include "app/store/losses.h"

namespace shardscope::gui {
namespace {

/// "lowered from kernels to steps by ann" of the newest command that lowered the detail level; empty: none.
std::string newest_lowering(std::span<const store::Message> messages) {
  constexpr std::size_t kBeforeLowered = store::kControlPrefix.size() + std::string_view("detail ").size();
  std::string newest;
  for (const store::Message& message : messages)
    if (message.text.starts_with(store::kDetailLowered)) newest = message.text.substr(kBeforeLowered);
  return newest;
}

}  // namespace

std::string link_text(const Session& run) {
  static constexpr const char* kLinks[] = {"connecting", "catching up", "live", "connection lost", "ended"};
  if (run.live()) return kLinks[static_cast<int>(run.link())];
  return run.disconnected() ? "disconnected" : "recording";
}

Table connection_table(const AppState& app) {
  const Session& run = *app.run;
  const store::Store& store = run.store();
  Table table;
  table.columns = {{"what", 0.6F}, {"value", 1.4F}, {"note", 1.6F}};
  const auto add = [&](const char* what, std::string value, std::string note = {}, Tone tone = Tone::normal) {
    table.add({{what, {}, Tone::muted, {}, ""},
               {std::move(value), {}, tone, {}, ""},
               {std::move(note), {}, Tone::muted, {}, ""}});
  };
  using Link = collector::Viewer::Link;
  const bool lost = run.live() && run.link() == Link::lost;
  add("endpoint", run.source());
  add("state", link_text(run), run.disconnected() ? "received events are kept" : "",
      lost ? Tone::bad : Tone::normal);
  const auto connected = std::ranges::count_if(
      store.ranks(), [](const store::RankRow& rank) { return rank.connected && !rank.finished; });
  add("ranks", std::to_string(connected) + " of " + std::to_string(store.ranks().size()) + " send events");
  const ConnectionRates& rates = run.rates();
  const collector::Viewer::Traffic traffic = run.traffic();
  add("rate",
      count(rates.events_per_s(), "events/s").text() + ", " +
          bytes(static_cast<std::int64_t>(rates.bytes_per_s())).text() + "/s",
      "the last 5 s, as they arrive here");
  add("received",
      bytes(static_cast<std::int64_t>(traffic.bytes)).text() + ", " +
          count(static_cast<double>(store.event_count()), "events").text(),
      store.event_count() == 0
          ? ""
          : decimal(static_cast<double>(traffic.bytes) / static_cast<double>(store.event_count()), 1) +
                " bytes per event: received / events; an event has " + std::to_string(sizeof(ev::Event)) +
                " in memory");
  const bool behind = traffic.waiting_bytes > 0 || traffic.items_behind > 0;
  add("backlog",
      !behind ? "none"
              : bytes(static_cast<std::int64_t>(traffic.waiting_bytes)).text() + " here, " +
                    grouped(static_cast<std::int64_t>(traffic.items_behind)) + " items at the collector",
      "here: received, not processed yet; at the collector: not sent yet",
      behind ? Tone::warning : Tone::normal);
  const store::Losses losses = store::losses_of(store);
  add("lost", store::text_of(losses), "", losses.any() ? Tone::bad : Tone::normal);
  const auto detail = store.recorded_detail();
  const std::string lowered = newest_lowering(store.messages());
  add("detail", detail ? ev::name_of(*detail) : "not known",
      lowered.empty() ? "the highest that ranks have sent" : lowered,
      lowered.empty() ? Tone::normal : Tone::warning);
  const collector::ControlState control = run.control();
  if (control.paused)
    add("pause", "held at gate " + std::to_string(control.gate),
        decimal(control.lease_left_s, 0) +
            " s until the run resumes by itself, unless a viewer stays connected");
  const std::string newest = store::newest_control(store.messages());
  add("control", newest.empty() ? "no viewer has paused it or changed its detail" : newest,
      control.note.empty() ? "the newest command, and who gave it" : control.note);
  return table;
}

}  // namespace shardscope::gui
