// Start, end and destruction of a run in the C interface; one run at a time per process.
#include "instrumentation/c_api/run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "instrumentation/c_api/status.h"
#include "instrumentation/gpu_monitor.h"
#include "instrumentation/requests.h"
#include "instrumentation/table_checks.h"

namespace shardscope::instrumentation::c_api {
namespace {

/// So that the answer and its prefix fit into a message.
constexpr std::size_t kMaxAnswer = 16'000;

std::mutex g_mutex;
shardscope_run* g_active = nullptr;  // guarded by g_mutex: the run whose publisher exists

std::string from_environment(const char* given, const char* variable) {
  if (given != nullptr && *given != '\0') return given;
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

PublisherOptions publisher_options(const shardscope_options& options) {
  PublisherOptions out;
  out.endpoint = from_environment(options.endpoint, "SHARDSCOPE_ENDPOINT");
  require(options.detail >= SHARDSCOPE_DETAIL_STEPS && options.detail <= SHARDSCOPE_DETAIL_KERNELS,
          "detail is " + std::to_string(options.detail) + "; use a SHARDSCOPE_DETAIL_...");
  out.detail = static_cast<Detail>(options.detail);
  require(options.ring_events <= kMaxRingEvents, "ring_events is " + std::to_string(options.ring_events) +
                                                     "; at most " + std::to_string(kMaxRingEvents) +
                                                     " are allowed");
  if (options.ring_events != 0) out.ring_events = static_cast<std::size_t>(options.ring_events);
  if (options.queue_bytes != 0) out.queue_bytes = static_cast<std::size_t>(options.queue_bytes);
  require(std::isfinite(options.linger_s) && options.linger_s >= 0,
          "linger_s must be finite and not negative");
  out.linger_s = options.linger_s;
  out.key_file = text_or_empty(options.key_file);
  return out;
}

/// Lets gates that stop at a parameter look up which modules use it.
void set_gate_module_params(const RunTables& tables) {
  std::vector<std::vector<std::uint32_t>> uses(tables.modules.size());
  for (const ModuleInfo& module : tables.modules) uses[module.id] = module.params;
  GateKeeper::instance().set_module_params(
      [uses = std::move(uses)](std::uint32_t module, std::uint32_t param) {
        return module < uses.size() &&
               std::find(uses[module].begin(), uses[module].end(), param) != uses[module].end();
      });
}

/// Rejects tables that collectors would reject: the run would be visible nowhere.
void require_good(const RunTables& tables) {
  if (const char* wrong = validate(tables))
    throw Failure(SHARDSCOPE_INVALID_ARGUMENT, std::string("what was described cannot be: ") + wrong);
}

/// Runs `body` with the publisher of a started run.
template <typename Body>
[[nodiscard]] shardscope_status with_publisher(shardscope_run* run, Body&& body) noexcept {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    const std::lock_guard lock(run->mutex);
    if (!run->publisher)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has not started: shardscope_start()");
    body(*run->publisher);
  });
}

}  // namespace
}  // namespace shardscope::instrumentation::c_api

using namespace shardscope::instrumentation;
using namespace shardscope::instrumentation::c_api;

extern "C" {

SHARDSCOPE_API shardscope_status shardscope_start(shardscope_run* run, const shardscope_options* options) {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    const shardscope_options defaults = SHARDSCOPE_OPTIONS_INIT;
    PublisherOptions publish =
        publisher_options(options != nullptr ? take(options, defaults, "options") : defaults);
    const std::lock_guard lock(g_mutex);
    const std::lock_guard run_lock(run->mutex);
    if (run->phase != shardscope_run::Phase::described)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has started before");
    require_good(run->tables);
    if (g_active != nullptr)
      throw Failure(SHARDSCOPE_INVALID_STATE,
                    "another run of this process has started; destroy it before the next begins");
    publish.kept = kept_beginning();
    if (!publish.kept) forget_memory_levels();
    run->publisher = std::make_unique<Publisher>(publish, run->tables);
    end_keeping();
    for (const std::string& name : run->names) (void)run->publisher->name_id(name);
    set_gate_module_params(run->tables);
    run->phase = shardscope_run::Phase::started;
    g_active = run;
  });
}

SHARDSCOPE_API shardscope_status shardscope_finish(shardscope_run* run, int32_t exit_code, const char* text) {
  return with_publisher(run, [&](Publisher& publisher) {
    if (std::exchange(run->phase, shardscope_run::Phase::finished) == shardscope_run::Phase::finished)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has been finished before");
    publisher.finish(exit_code, text_or_empty(text));
  });
}

SHARDSCOPE_API shardscope_status shardscope_publish(shardscope_run* run) {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    const std::lock_guard lock(run->mutex);
    if (run->phase == shardscope_run::Phase::finished)
      throw Failure(SHARDSCOPE_INVALID_STATE, "the run has been finished: it accepts no further calls");
    if (!run->publisher) return;  // the start sends everything
    require_good(run->tables);
    run->publisher->tables(run->tables);
    set_gate_module_params(run->tables);
  });
}

SHARDSCOPE_API void shardscope_run_destroy(shardscope_run* run) {
  // A forked child must not end anything: the run continues in the parent.
  if (run == nullptr || is_forked_child()) return;
  const std::lock_guard lock(g_mutex);
  if (g_active == run || g_active == nullptr) {  // also restores what a run that never started has set
    GateKeeper::instance().set_on_hold({});
    GateKeeper::instance().set_module_params({});
    Requests::set_answer({});
    g_active = nullptr;
  }
  delete run;
}

SHARDSCOPE_API shardscope_status shardscope_get_counts(shardscope_run* run, shardscope_counts* counts) {
  return with_publisher(run, [&](Publisher& publisher) {
    shardscope_counts known = take(counts, shardscope_counts SHARDSCOPE_COUNTS_INIT, "counts");
    known.dropped = publisher.dropped();
    known.invalid = invalid_events();
    std::memcpy(static_cast<void*>(counts), &known, std::min(known.size, sizeof known));
  });
}

SHARDSCOPE_API shardscope_status shardscope_name_id(shardscope_run* run, const char* name, uint32_t* id) {
  return guarded([&] {
    require(run != nullptr && name != nullptr && id != nullptr, "run, name or the place for its id is NULL");
    const std::lock_guard lock(run->mutex);
    if (run->publisher) {
      *id = run->publisher->name_id(name);
      return;
    }
    const std::string words = Publisher::name_key(name);
    const auto known = std::find(run->names.begin(), run->names.end(), words);
    *id = static_cast<std::uint32_t>(known - run->names.begin());
    if (known == run->names.end()) run->names.push_back(words);
  });
}

SHARDSCOPE_API shardscope_status shardscope_message(shardscope_run* run, int32_t severity, const char* text) {
  return with_publisher(run, [&](Publisher& publisher) {
    require(severity >= SHARDSCOPE_INFO && severity <= SHARDSCOPE_ERROR,
            "severity is " + std::to_string(severity) + "; use SHARDSCOPE_INFO, _WARNING or _ERROR");
    publisher.message(static_cast<Severity>(severity), text_or_empty(text));
  });
}

SHARDSCOPE_API shardscope_status shardscope_set_gpu(shardscope_run* run, const char* pci_bus_id) {
  return with_publisher(run, [&](Publisher& publisher) {
    publisher.sample_gpu(pci_bus_id == nullptr ? nullptr : std::make_unique<GpuMonitor>(pci_bus_id));
  });
}

SHARDSCOPE_API shardscope_status shardscope_set_on_request(shardscope_run* run,
                                                           shardscope_on_request on_request, void* context) {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    if (on_request == nullptr) {
      Requests::set_answer({});
      return;
    }
    Requests::set_answer([on_request, context](Request request) {
      std::string text(kMaxAnswer, '\0');
      const std::size_t size =
          on_request(context, static_cast<std::int32_t>(request), text.data(), text.size());
      text.resize(std::min(text.size(), size));
      return size > kMaxAnswer ? text + cut_note(size) : text;
    });
  });
}

SHARDSCOPE_API shardscope_status shardscope_set_on_hold(shardscope_run* run, void (*on_hold)(void*),
                                                        void* context) {
  return guarded([&] {
    require(run != nullptr, "run is NULL");
    if (on_hold == nullptr) {
      GateKeeper::instance().set_on_hold({});
    } else {
      GateKeeper::instance().set_on_hold([on_hold, context] { on_hold(context); });
    }
  });
}

}  // extern "C"
