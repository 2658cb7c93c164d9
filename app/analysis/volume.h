// Decomposes the communication of a step: ZeRO's formula, padding and named extras. The unexplained rest is
// reported, and should be 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"
#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_traffic.h"

namespace shardscope::analysis {

/// Why a step moved more or fewer elements than the formula.
enum class VolumeCause : std::uint8_t {
  padding,      ///< shards have equal size: the last ones are filled up
  persistent,   ///< persistent parameters are gathered once after the step instead of for every use
  kept,         ///< kept between uses, or already fetched for a later one: not gathered again
  shared,       ///< used by several modules (tied, external): gathered again for another one
  repeated,     ///< used several times in a pass (reused module, recomputed forward): gathered again
  unused,       ///< gathered more often than used: released unused, by an invalidated trace or otherwise
  no_gradient,  ///< without a gradient in a micro-step: not reduced
  all_reduced,  ///< gradients all-reduced where a reduction to the owners is enough
  other_way,    ///< hpZ: from all ranks where the formula has the small group, or the reverse
  skipped,      ///< of modules skipped by forward: gathered neither there nor in backward
  no_backward,  ///< of modules that ran forward but not backward: nothing below them is trained
  accumulated,  ///< FSDP: gradients of several micro-steps were reduced together
  scalars,      ///< all-reduces of one element that belongs to no parameter: norms, flags
};
inline constexpr std::size_t kVolumeCauses = 13;
/// "padding", "persistent parameters", ...; a sentence that explains it.
[[nodiscard]] const char* name_of(VolumeCause cause) noexcept;
[[nodiscard]] const char* explain(VolumeCause cause) noexcept;

/// Signed elements by cause.
using VolumeParts = std::array<double, kVolumeCauses>;

/// The expected volume of a run, built from its tables, which must outlive it. Building parses the
/// configuration and takes about as long as reading a small step: see KeptVolumeModel.
class VolumeModel {
 public:
  /// `recorded_micro_steps`: of a step, if the configuration has fewer: scripts of other frameworks
  /// accumulate on their own.
  explicit VolumeModel(const instrumentation::RunTables& tables, std::int64_t recorded_micro_steps = 0);

  [[nodiscard]] const std::string& expression() const noexcept { return expression_; }
  [[nodiscard]] double expected() const noexcept { return expected_; }

  /// Explains the difference between expected() and what this rank communicated in a step, from the number of
  /// gathers of each parameter and reductions of each gradient. nullopt if parameters were not recorded.
  [[nodiscard]] std::optional<VolumeParts> parts(const store::Store& store, std::uint32_t rank,
                                                 std::uint32_t step, std::int64_t begin_ns,
                                                 std::int64_t end_ns) const;

 private:
  struct Counts {
    /// By parameter: number of gathers, and of forward (recomputation included) and backward passes of
    /// modules that use it.
    std::vector<std::int64_t> gathers, forwards, backwards;
    /// By parameter: elements of the collectives that gathered it, of any operation.
    std::vector<double> gathered;
    /// By parameter: elements in buckets. In the first stage 1 a parameter may be in several communications,
    /// with a part in each.
    std::vector<std::int64_t> reduced;
    std::vector<bool> shared;    ///< by parameter
    std::vector<bool> external;  ///< by parameter: used by modules that do not list it
    bool known = false;
    std::vector<std::uint32_t> group;  ///< FSDP2: module of its group; kNoId: not gathered in the step
    bool gates = false;                ///< gates were recorded: forwards and backwards are valid
    [[nodiscard]] bool any_reduced() const noexcept {
      return std::any_of(reduced.begin(), reduced.end(), [](std::int64_t elems) { return elems > 0; });
    }
  };
  [[nodiscard]] Counts count(const store::Store& store, std::uint32_t rank, std::uint32_t step,
                             std::int64_t begin_ns, std::int64_t end_ns) const;
  void count_gathered(const store::Store& store, std::uint32_t rank, std::int64_t submitted_from_ns,
                      std::int64_t begin_ns, std::int64_t end_ns, Counts& counts) const;
  void add_gathers(const Counts& counts, VolumeParts& parts) const;
  void add_missing(const Counts& counts, std::size_t param, double missing, double off,
                   VolumeParts& parts) const;
  [[nodiscard]] double reduction_cost(std::size_t param) const noexcept;
  [[nodiscard]] double reductions(const Counts& counts) const noexcept;

  const instrumentation::RunTables* tables_;
  plan::ZeroConfig zero_;
  std::int64_t micro_steps_ = 1;
  /// The formula includes padding, persistent parameters and scales (ZeRO++, MiCS).
  bool special_ = false;
  double expected_ = 0;
  double flat_padding_ = 0;          ///< stages 0 to 2
  std::vector<double> gather_cost_;  ///< by parameter: elements of one gather
  // By parameter, if special_: elements of all gathers of a step; of one reduction.
  std::vector<double> expected_gathers_, reduction_cost_;
  std::string expression_;
};

/// The VolumeModel of the latest tables and number of micro-steps, built again only where these differ.
class KeptVolumeModel {
 public:
  const VolumeModel& of(const instrumentation::RunTables& tables, std::int64_t recorded_micro_steps);

 private:
  /// The tables of a rank only grow (store::TablesOfRanks).
  struct Key {
    const instrumentation::RunTables* tables = nullptr;
    std::uint32_t rank = 0;
    std::size_t modules = 0, params = 0, slices = 0, groups = 0, config_bytes = 0;
    std::int64_t micro_steps = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  Key key_;
  std::optional<VolumeModel> model_;
};

}  // namespace shardscope::analysis
