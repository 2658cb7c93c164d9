// Framework of the findings: the input of all rules (Facts), their output (Found), and the families of rules.
//
// [Note: causes before symptoms]
// Rules run in the order of the table in find.cpp, causes first. If an earlier finding explains a rule's
// symptom, the rule reports the symptom as its consequence: it is listed there and gets no advice of its own.
// Costs are those of typical steps; the cost of a single stop is reported once, by its own finding.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/advice.h"
#include "app/analysis/digest.h"
#include "app/analysis/pace.h"
#include "app/analysis/summary.h"
#include "app/analysis/why_late.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::analysis::findings {

namespace ev = shardscope::instrumentation;

/// Milliseconds of a rank in a typical step: medians.
struct RankFacts {
  std::uint32_t rank = 0;
  double compute = 0, waiting = 0, moving = 0, gather_moving = 0, reduce_moving = 0, link = 0,
         reduce_link = 0, hideable = 0;
  double copy = 0, idle = 0, data = 0, fetch_wait = 0, total = 0;
  double recompute = 0;            ///< part of compute: see RankStep
  double others_waited = 0;        ///< waits of each other rank for this one: mean over typical steps
  double processor = 0;            ///< its threads waited for a processor, summed over threads
  std::uint64_t retries = 0;       ///< cache flushes of its allocator, over all typical steps
  GpuState gpu{};                  ///< over all typical steps
  std::vector<OwnGroup> groups{};  ///< mean over typical steps
  /// Ranks that waited for this one in typical steps, and for how long in all.
  std::vector<std::pair<std::uint32_t, double>> waiters{};
  double lasting = 0;  ///< fraction of steps in which it computed longer than the median of the others
};
/// A step that took much longer than the median.
struct LongStep {
  std::size_t index = 0;  ///< in digest.steps()
  double excess_ms = 0;
};

struct Facts {
  const store::Store& store;
  const Summary& summary;
  const Digest& digest;
  std::vector<std::size_t> typical{};  ///< indices in digest.steps(): measured steps that are not long
  std::vector<LongStep> long_steps{};
  double step_ms = 0;              ///< median of the typical steps; 0: none
  std::vector<RankFacts> ranks{};  ///< ranks whose computation was recorded
  PathTimes path_ns{};             ///< mean over typical steps
  plan::ZeroConfig zero{};         ///< configured settings, if zero_keys
  bool zero_keys = false;          ///< the framework reads zero_optimization (this runtime, DeepSpeed)
  bool overlap_comm = false;
  std::int64_t micro_steps = 1;  ///< per step

  [[nodiscard]] double path_ms(PathPart part) const {
    return static_cast<double>(path_ns[static_cast<std::size_t>(part)]) * 1e-6;
  }
  /// As a fraction of a typical step.
  [[nodiscard]] double share(double ms) const { return step_ms > 0 ? ms / step_ms : 0; }
  [[nodiscard]] double mean(double RankFacts::*of) const;
  [[nodiscard]] bool own_runtime() const { return summary.kind == Framework::zero; }
};
[[nodiscard]] Facts facts_of(const store::Store& store, const Summary& summary, const Digest& digest);

/// Minimum cost of a finding, and of a warning, as fractions of a step.
inline constexpr double kNote = 0.02, kWarning = 0.05;
/// Precedes all others, whatever its severity.
inline constexpr const char* kRehearsedFault = "rehearsed_fault";
/// Minimum costs in ms: below these a gain is negligible even in a tiny model's step.
inline constexpr double kLeastCostMs = 0.1, kLeastWarningMs = 0.5;

/// Communication of a typical step that a slow link causes, in milliseconds, as a mean over ranks; 0 without
/// the finding, or where it is not known.
struct SlowLinkPart {
  double waiting = 0, moving = 0;  ///< exposed
  double link = 0;                 ///< transfers, hidden or exposed
};

class Found {
 public:
  [[nodiscard]] const Finding* find(std::string_view id) const;  ///< null: none; invalidated by the next add
  [[nodiscard]] bool has(std::string_view id) const { return find(id) != nullptr; }
  void add(Finding finding) { findings_.push_back(std::move(finding)); }
  /// Sets the severity by cost; adds nothing below kNote or kLeastCostMs.
  void add_by_cost(const Facts& facts, double cost_ms, Finding finding,
                   ev::Severity most = ev::Severity::warning);
  /// Adds `title` to the consequences of the finding `cause`, which must exist.
  void follows(std::string_view cause, std::string title);
  /// Appends to the finding of this id and rank; false if there is none.
  bool add_evidence(std::string_view id, std::uint32_t rank, const std::string& text);
  /// Ranks of the groups reported by slow_link; empty without that finding.
  std::vector<std::uint32_t> slow_link_ranks;
  SlowLinkPart slow_link_part;
  [[nodiscard]] std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::vector<Finding> findings_;
};

// The families of rules, one file each.
void rehearsals(const Facts& facts, Found& found);
void rank_failures(const Facts& facts, Found& found);
void hangs(const Facts& facts, Found& found);
void losses_of_events(const Facts& facts, Found& found);
void wrong_emission(const Facts& facts, Found& found);
void damage(const Facts& facts, Found& found);
void clock_residuals(const Facts& facts, Found& found);

void single_stops(const Facts& facts, Found& found);
void data_starvation(const Facts& facts, Found& found);
void stragglers(const Facts& facts, Found& found);
void drifting_ranks(const Facts& facts, Found& found);
void past_stragglers(const Facts& facts, Found& found);
void slow_links(const Facts& facts, Found& found);

void overlap_off(const Facts& facts, Found& found);
void large_buckets(const Facts& facts, Found& found);
void small_buckets(const Facts& facts, Found& found);
void accumulated_reductions(const Facts& facts, Found& found);
void serialized_buckets(const Facts& facts, Found& found);
void link_bound(const Facts& facts, Found& found);
void tiny_gathers(const Facts& facts, Found& found);
void exposed_communication(const Facts& facts, Found& found);
void volume_above(const Facts& facts, Found& found);

void trace_invalidations(const Facts& facts, Found& found);
void unused_prefetches(const Facts& facts, Found& found);
void large_prefetches(const Facts& facts, Found& found);
void short_prefetches(const Facts& facts, Found& found);
void late_groups(const Facts& facts, Found& found);
void late_prefetches(const Facts& facts, Found& found);

void memory_excess(const Facts& facts, Found& found);
void held_after_use(const Facts& facts, Found& found);
void gathered_peak(const Facts& facts, Found& found);
void fragmentation(const Facts& facts, Found& found);

void divergence(const Facts& facts, Found& found);
void overflows(const Facts& facts, Found& found);
void loss_scale_floor(const Facts& facts, Found& found);

void cpu_optimizer(const Facts& facts, Found& found);
void nvme_wait(const Facts& facts, Found& found);
void nvme_params(const Facts& facts, Found& found);
void host_bound(const Facts& facts, Found& found);
void recomputation(const Facts& facts, Found& found);

// Where the window goes at a click on a finding (places.cpp). None changes a place that is set.
/// The step of the largest figure above 0, among typical steps; of the finding's rank if it has one.
void look_at_worst(const Facts& facts, Finding& finding,
                   const std::function<std::int64_t(const RankStep&)>& figure);
/// The longest piece of this part of the critical paths of typical steps; or the step with most of it.
void look_at_path(const Facts& facts, Finding& finding, PathPart part);
/// The typical step of the largest figure above 0 of all its ranks: that step of the finding's rank, or of
/// its lowest one.
void look_at_worst_step(const Facts& facts, Finding& finding,
                        const std::function<double(const StepDigest&)>& figure);
/// The typical step of median length; without one the first completed step.
void look_at_a_step(const Facts& facts, Finding& finding);

/// From the first begin to the last end over ranks, without checkpoints.
[[nodiscard]] double length_ms(const StepDigest& step);
/// How much shorter a typical step would be if this part of its critical path took no time, in milliseconds:
/// bounded by what comes next (free_parts.h). A mean over the typical steps that could be replayed; nullopt
/// if none could.
[[nodiscard]] std::optional<double> gain_without(const Facts& facts, PathPart part);
/// "12.3 of 100.0 ms (12 %)".
[[nodiscard]] std::string of_step(const Facts& facts, double ms);
/// False for a single rank.
[[nodiscard]] bool communicates(const Facts& facts);
/// Elements of all trained parameters.
[[nodiscard]] std::int64_t trained_elems(const Facts& facts);
enum class CommunicatedTensor : std::uint8_t { parameters, gradients };
/// Bytes per communicated element, over the gathers or reductions of the typical steps; of a stored element
/// if there were none.
[[nodiscard]] double element_bytes(const Facts& facts, CommunicatedTensor what);
/// Whether a run with four-byte parameters communicates mostly four-byte elements.
[[nodiscard]] bool travels_as_f32(const Facts& facts);
/// Advice "Set KEY to VALUE and KEY to VALUE." followed by `more`.
[[nodiscard]] Advice setting(std::vector<Change> changes, const std::string& more = {});
/// Other limits of prefetched elements for stage 3's gathers, each with the live limit that it needs.
[[nodiscard]] std::vector<Advice> gather_options(const Facts& facts);
/// Micro-batch sizes with fewer micro-steps for the same global batch, smallest first; none if micro-batches
/// vary in size.
[[nodiscard]] std::vector<Advice> micro_batch_options(const Facts& facts);
// The modules behind a finding's cost (module_costs.cpp).
/// Nanoseconds or bytes by module; collectives of several modules have a name of them.
struct ModuleCosts {
  std::map<std::string, double> of;
  double all = 0;              ///< of all of them; less than their sum where collectives overlap
  std::size_t rank_steps = 0;  ///< the values are sums over these; 0: over one
};
enum class Collectives : std::uint8_t { gathers, all };
/// Exposed nanoseconds by the contents of collectives, of at most eight ranks in the last typical steps, and
/// with waiting for other ranks; empty where not recorded.
[[nodiscard]] ModuleCosts exposed_modules(const Facts& facts, Collectives which);
/// Nanoseconds for which computation waited for parameters, likewise.
[[nodiscard]] ModuleCosts awaited_modules(const Facts& facts);
enum class CostUnit : std::uint8_t { ns, bytes };
/// " Longest waits: h.3.mlp (3.2 of 9.1 ms of a step), wte (2.0 ms)." The worst one or two of `what`, which
/// is a quantity of its own beside the finding's cost; empty if none is known.
[[nodiscard]] std::string worst_of(const ModuleCosts& costs, std::string_view what,
                                   CostUnit unit = CostUnit::ns);
/// What exposed_modules() and awaited_modules() are of, with a superlative.
inline constexpr std::string_view kExposedGathers = "Longest exposed gathers, with waiting for other ranks",
                                  kExposedCollectives =
                                      "Longest exposed collectives, with waiting for other ranks",
                                  kAwaitedParameters =
                                      "Longest waits for parameters, whether prefetched or not";

// Of runs that a script configures (script_options.cpp); empty for other frameworks.
/// FSDP2: parameters stay gathered from the forward to the backward; empty if they do already.
[[nodiscard]] std::vector<Advice> reshard_off_options(const Facts& facts);
/// FSDP2: groups that are not resharded after their forward are.
[[nodiscard]] std::vector<Advice> reshard_on_options(const Facts& facts);
/// FSDP2: groups are gathered further ahead.
[[nodiscard]] std::vector<Advice> earlier_group_options(const Facts& facts);
/// FSDP2 and DDP: gradients are reduced once per step; `text` names the call. Empty for one micro-step.
[[nodiscard]] std::vector<Advice> reduce_last_options(const Facts& facts, const std::string& text);
enum class BucketSizes : std::uint8_t { smaller, larger, all };
/// DDP: other sizes of buckets than the recorded one.
[[nodiscard]] std::vector<Advice> bucket_cap_options(const Facts& facts, BucketSizes sizes);
/// Latency and rate of the link that bounds collectives, from the last typical steps.
[[nodiscard]] std::optional<LinkPace> link_of(const Facts& facts);
/// A round number of elements near `count`: one significant digit.
[[nodiscard]] std::int64_t round_elems(double count);
/// A value for stage3_max_live_parameters of about `elems`, at least the largest parameter, which is gathered
/// whole whatever the limit.
[[nodiscard]] std::int64_t live_limit(const Facts& facts, double elems);

}  // namespace shardscope::analysis::findings
