// Which run a collector receives and how many ranks it has. Pure: no socket, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace shardscope::collector {

/// [Note: which run it is]
/// Anyone can send a hello: a stray one must not keep the real ranks out. So until something has been
/// published a run is only supposed, and the run that publishes its tables or events first is received,
/// unless the user has named one. In the same way the tables give the number of ranks, and a process has
/// a rank's place while it publishes.
class RunIdentity {
 public:
  /// `run_id`: as the user has named it; empty: the ranks do.
  explicit RunIdentity(std::string run_id) : run_id_(std::move(run_id)), known_(!run_id_.empty()) {}

  /// What a message proves of its run.
  enum class Proof : std::uint8_t { greeting, published };
  enum class Verdict : std::uint8_t {
    ours,
    ours_instead,  ///< ours from now on: a run that was only supposed is to be forgotten
    other,         ///< to be refused
    undecided,     ///< of another run than the supposed one: it greets again, and by then the run is known
  };
  Verdict judge(const std::string& run_id, Proof proof);
  [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }  ///< supposed or known
  /// By the user, or by what was published.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// Why ranks of `run_id` are refused, and what to do.
  [[nodiscard]] std::string refusal_of(const std::string& run_id) const;

  [[nodiscard]] std::uint32_t world() const noexcept { return world_; }     ///< ranks; 0: not known
  [[nodiscard]] bool world_known() const noexcept { return world_known_; }  ///< by tables
  /// Ranks of this machine, by tables; 1 before.
  [[nodiscard]] std::uint32_t local_world() const noexcept { return local_world_; }
  /// Whether a hello's number of ranks is another one than supposed or known.
  [[nodiscard]] bool contradicts(std::uint32_t world) const noexcept {
    return world_ != 0 && world_ != world;
  }
  /// From the first hello.
  void set_provisional_world(std::uint32_t world) noexcept { world_ = world; }
  enum class Tables : std::uint8_t {
    agree,
    change,      ///< the supposed number was wrong: those who gave it have published nothing
    contradict,  ///< what is known by other tables; nothing changes
  };
  [[nodiscard]] Tables set_world(std::uint32_t world, std::uint32_t local_world);
  /// With the run that was supposed.
  void forget_world() noexcept { world_ = 0; }
  [[nodiscard]] std::string contradiction_of(std::uint32_t world) const;

 private:
  std::string run_id_;
  bool known_;
  std::uint32_t world_ = 0, local_world_ = 1;
  bool world_known_ = false;
};

}  // namespace shardscope::collector
