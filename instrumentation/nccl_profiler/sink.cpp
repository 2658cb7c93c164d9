#include "instrumentation/nccl_profiler/sink.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "instrumentation/nccl_host.h"
#include "shardscope/shardscope.h"

namespace shardscope::nccl_profiler {
namespace {

using instrumentation::Detail;
using instrumentation::Event;
using instrumentation::NcclHost;

const NcclHost* find_host() noexcept {
  void* symbol = dlsym(RTLD_DEFAULT, instrumentation::kNcclHostSymbol);
  if (symbol == nullptr) return nullptr;
  const NcclHost* host = reinterpret_cast<instrumentation::NcclHostFunction>(symbol)();
  return host != nullptr && host->bytes >= sizeof(NcclHost) ? host : nullptr;
}
/// The process's host interface, looked up once: programs export it from their start.
const NcclHost* host() noexcept {
  static const NcclHost* const found = find_host();
  return found;
}

class HostSink final : public Sink {
 public:
  bool enabled(Detail detail) const override { return host()->enabled(detail); }
  void emit_at(std::int64_t ns, const Event& event) override { host()->emit_at(ns, event); }
  bool joins() const override { return true; }
};

class LibrarySink final : public Sink {
 public:
  explicit LibrarySink(bool joins) : joins_(joins) {}
  bool enabled(Detail detail) const override { return shardscope_enabled(static_cast<int>(detail)) != 0; }
  void emit_at(std::int64_t ns, const Event& event) override {
    const shardscope_event record{static_cast<std::uint16_t>(event.kind),
                                  static_cast<std::uint8_t>(event.stream),
                                  event.code,
                                  event.a,
                                  event.b,
                                  event.c,
                                  event.v0,
                                  event.v1};
    shardscope_emit_at(ns, &record);
  }
  bool joins() const override { return joins_; }

 private:
  const bool joins_;
};

shardscope_run* g_own = nullptr;  ///< written before its sink is returned

std::optional<std::uint32_t> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

bool has_host() noexcept { return host() != nullptr; }

std::uint32_t current_collective() noexcept {
  if (const NcclHost* const known = host()) return known->current_collective();
  std::uint32_t sequence = instrumentation::kNoId;
  (void)shardscope_nccl_calls_of_thread(&sequence);
  return sequence;
}

bool reports_collectives() noexcept { return has_host() || shardscope_nccl_calls_of_thread(nullptr) != 0; }

std::unique_ptr<Sink> sink_of_process() {
  if (has_host()) return std::make_unique<HostSink>();
  // Level `steps` is disabled only if there is no run.
  if (shardscope_enabled(SHARDSCOPE_DETAIL_STEPS) != 0) return std::make_unique<LibrarySink>(true);
  return nullptr;
}

OwnRun own_run(std::uint64_t communicator, int nodes, int ranks, int rank) {
  OwnRun out;
  const std::uint32_t world = ranks > 0 ? static_cast<std::uint32_t>(ranks) : 1;
  out.world = world;
  out.rank = rank >= 0 && static_cast<std::uint32_t>(rank) < world ? static_cast<std::uint32_t>(rank) : 0;
  out.local_world = nodes > 0 ? std::max(1U, world / static_cast<std::uint32_t>(nodes)) : world;
  struct Launcher {
    const char *rank, *world, *local, *id;
  };
  for (const Launcher& launcher :
       {Launcher{"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
        Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                 "PMIX_NAMESPACE"},
        Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID"}}) {
    const auto r = number(launcher.rank), w = number(launcher.world);
    if (!r || !w || *r >= *w) continue;
    out.rank = *r;
    out.world = *w;
    out.local_world = number(launcher.local).value_or(std::min(out.local_world, *w));
    const char* id = std::getenv(launcher.id);
    if (id != nullptr && *id != '\0' && std::string_view(id) != "none") out.run_id = id;
    break;
  }
  if (const char* id = std::getenv("SHARDSCOPE_RUN_ID"); id != nullptr && *id != '\0') out.run_id = id;
  if (out.run_id.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "nccl-%016llx", static_cast<unsigned long long>(communicator));
    out.run_id = text;
  }
  return out;
}

std::unique_ptr<Sink> start_own_run(const OwnRun& run, std::string& problem) {
  const char* endpoint = std::getenv("SHARDSCOPE_ENDPOINT");
  if (endpoint == nullptr || *endpoint == '\0') {
    problem = "no run in this process and SHARDSCOPE_ENDPOINT is not set; nothing is sent";
    return nullptr;
  }
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  info.run_id = run.run_id.c_str();
  info.model = "NCCL job";
  info.device = "cuda";
  info.rank = run.rank;
  info.world = run.world;
  info.local_world = run.local_world;
  shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
  options.linger_s = 2;
  // A user who sets the level of kernel times wants them in the run as well; viewers can change it later.
  const char* level = std::getenv("SHARDSCOPE_NCCL_LEVEL");
  if (level != nullptr && std::string_view(level) == "kernels") options.detail = SHARDSCOPE_DETAIL_KERNELS;
  shardscope_run* created = nullptr;
  if (shardscope_run_create(&info, &created) != SHARDSCOPE_OK ||
      shardscope_start(created, &options) != SHARDSCOPE_OK) {
    problem = shardscope_last_error();
    shardscope_run_destroy(created);
    return nullptr;
  }
  g_own = created;
  return std::make_unique<LibrarySink>(false);
}

void end_own_run() {
  if (g_own == nullptr) return;
  shardscope_finish(g_own, 0, "the process ended");
  shardscope_run_destroy(g_own);
  g_own = nullptr;
}

void message_of_own_run(const std::string& text) {
  if (g_own != nullptr) shardscope_message(g_own, SHARDSCOPE_INFO, text.c_str());
}

}  // namespace shardscope::nccl_profiler
