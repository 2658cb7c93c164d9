// [Note: lanes]
// The host lane says what is decided and in which order, the gather lane what a gather holds, the compute
// lane what becomes available and is freed between which modules. The host runs ahead, so only the order
// within a lane counts: the compute lane leads, and each of its modules takes the host's next fetch.
#include "tests/runtime/engine/emitted_fetches.h"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "instrumentation/gate.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::engine::testing {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::GateKind;
using instrumentation::kNoId;
using instrumentation::Pass;
using instrumentation::StatusCause;
using instrumentation::StreamId;
using plan::ParamStatus;
using Json = nlohmann::json;
using Ids = std::set<std::uint32_t>;

struct Fetch {
  std::uint32_t module = 0;
  bool forward = true;
  std::uint32_t gather = kNoId, prefetch = kNoId;
  std::int64_t available = 0;
};

struct Decided {
  std::vector<std::uint8_t> modes;  ///< by micro-step
  std::vector<Fetch> fetches;
};

/// A fetch follows its gate; what is read by attribute is fetched without one.
Decided decided_on(const std::vector<Event>& events) {
  Decided decided;
  GateKind gate = GateKind::step;  ///< before the next decision
  for (const Event& event : events) {
    if (event.stream != StreamId::host) continue;
    if (event.kind == EventKind::gate) gate = static_cast<GateKind>(event.code);
    if (event.kind == EventKind::trace_mode) decided.modes.push_back(event.code);
    if (event.kind == EventKind::fetch_decision) {
      if (gate == GateKind::pre_forward || gate == GateKind::pre_backward) {
        decided.fetches.push_back({event.a, gate == GateKind::pre_forward, event.b, kNoId, event.v1});
      }
      gate = GateKind::step;
    }
    if (event.kind == EventKind::prefetch_issued) decided.fetches.back().prefetch = event.a;
  }
  return decided;
}

ParamStatus status_in(const Event& event) {
  return static_cast<ParamStatus>(instrumentation::status_of(event.code));
}
StatusCause cause_in(const Event& event) { return instrumentation::cause_of(event.code); }

void put(Json& event, const char* key, const Ids& ids) {
  if (!ids.empty()) event[key] = ids;
}

class Reader {
 public:
  Reader(const plan::ModelPlan& model, const std::vector<Event>& events)
      : model_(model), decided_(decided_on(events)) {
    for (const Event& event : events) {
      if (event.kind != EventKind::param_status || event.stream != StreamId::gather) continue;
      if (status_in(event) == ParamStatus::in_flight) gathers_[event.c].insert(event.a);
    }
  }

  Json read(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (event.stream != StreamId::compute) continue;
      if (event.kind == EventKind::param_status) status(event);
      if (event.kind == EventKind::module_begin) begin(event);
      if (event.kind == EventKind::module_end) {
        end_release();
        forward_ = static_cast<Pass>(event.code) == Pass::forward;
      }
    }
    end_release();
    end_iteration();
    if (next_ != decided_.fetches.size()) throw std::runtime_error("a fetch without its module");
    return std::move(iterations_);
  }

 private:
  void status(const Event& event) {
    if (status_in(event) == ParamStatus::available) {
      end_release();
      available_.insert(event.a);
      in_flight_.erase(event.a);
      if (cause_in(event) != StatusCause::external) completed_[event.b].insert(event.a);
      return;
    }
    if (status_in(event) != ParamStatus::not_available) return;
    available_.erase(event.a);
    in_flight_.erase(event.a);
    if (iterations_.empty()) return;  // the weights are being set
    const bool all = cause_in(event) == StatusCause::partition;
    const char* kind = all ? "release_all" : event.b == kNoId ? "release_leftovers" : "release";
    if (release_.is_null() || release_["ev"] != kind) {
      end_release();
      release_ = {{"ev", kind}};
      if (event.b != kNoId) {
        release_["module"] = event.b;
        release_["dir"] = forward_ ? "fwd" : "bwd";
      }
    }
    release_["n_available"] = event.v1;
    released_.insert(event.a);
  }

  void end_release() {
    if (release_.is_null()) return;
    put(release_, "ids", released_);
    iterations_.back()["events"].push_back(std::move(release_));
    release_ = nullptr;
    released_.clear();
  }

  void begin(const Event& event) {
    end_release();
    const bool forward = static_cast<Pass>(event.code) == Pass::forward;
    if (!model_.modules.at(event.a).hooks) return;
    if (next_ == decided_.fetches.size()) throw std::runtime_error("a module without its fetch");
    const Fetch& fetch = decided_.fetches[next_++];
    if (fetch.module != event.a || fetch.forward != forward) {
      throw std::runtime_error("module " + std::to_string(event.a) + " runs, module " +
                               std::to_string(fetch.module) + " was fetched");
    }
    if (event.a == 0 && forward) begin_iteration();
    Json reported = {{"ev", "fetch"},
                     {"module", fetch.module},
                     {"dir", forward ? "fwd" : "bwd"},
                     {"n_available", fetch.available}};
    const Ids completed = std::exchange(completed_, {})[event.a];
    const Ids gathered = fetch.gather == kNoId ? Ids{} : gathers_.at(fetch.gather);
    const Ids prefetched = fetch.prefetch == kNoId ? Ids{} : gathers_.at(fetch.prefetch);
    for (const Ids* ids : {&gathered, &prefetched}) {
      for (const std::uint32_t id : *ids) {
        if (completed.count(id) == 0) in_flight_.insert(id);
      }
    }
    put(reported, "gather", gathered);
    put(reported, "completed", completed);
    put(reported, "prefetch", prefetched);
    put(reported, "inflight_after", in_flight_);
    iterations_.back()["events"].push_back(std::move(reported));
  }

  void begin_iteration() {
    end_iteration();
    static constexpr const char* kModes[] = {"INVALID", "RECORD", "COMPLETE"};
    Ids before = available_;
    for (const auto& [module, ids] : completed_) {  // by the root's own fetch
      if (module == 0) {
        for (const std::uint32_t id : ids) before.erase(id);
      }
    }
    iterations_.push_back({{"mode", kModes[decided_.modes.at(iterations_.size())]},
                           {"available_at_start", before},
                           {"events", Json::array()}});
  }
  void end_iteration() {
    if (!iterations_.empty() && iterations_.back().count("available_after_step") == 0) {
      Ids after = available_;
      for (const std::uint32_t id : completed_[0]) after.erase(id);
      iterations_.back()["available_after_step"] = after;
    }
  }

  const plan::ModelPlan& model_;
  const Decided decided_;
  std::map<std::uint32_t, Ids> gathers_;  ///< parameters by gather id
  std::size_t next_ = 0;                  ///< fetch
  Ids available_, in_flight_, released_;
  std::map<std::uint32_t, Ids> completed_;  ///< since the last fetch, by the module that waited
  Json release_;                            ///< being put together; null: none
  bool forward_ = true;                     ///< pass of the module that ended last
  Json iterations_ = Json::array();
};

}  // namespace

Json emitted_fetches(const plan::ModelPlan& model, const std::vector<Event>& events) {
  return Reader(model, events).read(events);
}

}  // namespace shardscope::engine::testing
