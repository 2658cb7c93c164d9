// Which run a collector receives and how many ranks it has. Pure: no socket, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace shardscope::collector {

/// [Note: which run it is]
/// Anyone can send a hello: a stray one must not keep the real ranks out. So hellos make a run provisional
/// only: the run that publishes tables or events first is received, unless the user has named one. In the
/// same way the tables define the number of ranks, and a process holds a rank's place only if it
/// publishes.
class RunIdentity {
 public:
  /// `run_id`: the run that the user has named; empty: the first that publishes.
  explicit RunIdentity(std::string run_id) : run_id_(std::move(run_id)), known_(!run_id_.empty()) {}

  /// How much a message proves about its run.
  enum class Proof : std::uint8_t { hello, published };
  enum class Verdict : std::uint8_t {
    ours,
    ours_instead,  ///< ours from now on: the caller has to discard the provisional run
    other,         ///< to be refused
    undecided,     ///< not the provisional run: its ranks repeat their hellos, when the run may be known
  };
  Verdict judge(const std::string& run_id, Proof proof);
  [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }  ///< provisional or known
  /// Whether the user has named it, or a rank has published.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// Why ranks of `run_id` are refused, and what to do.
  [[nodiscard]] std::string refusal_of(const std::string& run_id) const;

  [[nodiscard]] std::uint32_t world() const noexcept { return world_; }     ///< ranks; 0: not known
  [[nodiscard]] bool world_known() const noexcept { return world_known_; }  ///< from tables
  /// Ranks on this machine, from tables; 1 before.
  [[nodiscard]] std::uint32_t local_world() const noexcept { return local_world_; }
  /// Whether a hello's number of ranks differs from the provisional or known one.
  [[nodiscard]] bool contradicts(std::uint32_t world) const noexcept {
    return world_ != 0 && world_ != world;
  }
  /// From the first hello.
  void set_provisional_world(std::uint32_t world) noexcept { world_ = world; }
  enum class Tables : std::uint8_t {
    agree,
    change,      ///< the provisional number was wrong: ranks that sent it have not published
    contradict,  ///< earlier tables have another number; nothing changes
  };
  [[nodiscard]] Tables set_world(std::uint32_t world, std::uint32_t local_world);
  /// Call when the provisional run is discarded.
  void forget_world() noexcept { world_ = 0; }
  [[nodiscard]] std::string contradiction_of(std::uint32_t world) const;

 private:
  std::string run_id_;
  bool known_;
  std::uint32_t world_ = 0, local_world_ = 1;
  bool world_known_ = false;
};

}  // namespace shardscope::collector
