// [Note: keys on one machine]
// Ports of the loopback are open to every process of the machine, and to web pages through the browser. So a
// collector that listens there without `--keys` makes keys at its start and leaves them where only processes
// of its user can read them; those find them by the endpoint alone. One folder per endpoint,
//
//   <root>/tcp-5711-<boot>-<network namespace>/    mode 0700
//     publish.key view.key control.key             what the holder may do (keys.h)
//     collector.key                                its own, so that a collector which follows one that was
//                                                  killed can go on with the same
//     insecure                                     instead of keys: with `--insecure` none are wanted
//     lock                                         held by the collector while it lives; names its host,
//                                                  its process and its endpoint
//
// under the first of $XDG_RUNTIME_DIR/shardscope, $XDG_STATE_HOME/shardscope (~/.local/state/shardscope) and
// /tmp/shardscope-<uid> that can be had with mode 0700. Who looks for keys looks in all of them: programs of
// one user do not always have the same environment. Folders that no process holds are removed when the next
// collector starts.
//
// A rank, a viewer or a node's collector connects to an endpoint of the loopback as the folder says and not
// at all while there is none, so that no other program on that port is taken for the collector.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/keys.h"

namespace shardscope::instrumentation {

/// The collector's side.
class LocalKeys {
 public:
  enum class Wanted : std::uint8_t { keys, nothing };  ///< nothing: every peer is accepted
  /// Makes the keys, or takes over those that a killed collector left for `endpoint`.
  LocalKeys(const std::string& endpoint, Wanted wanted);
  ~LocalKeys();  ///< removes the folder
  LocalKeys(const LocalKeys&) = delete;
  LocalKeys& operator=(const LocalKeys&) = delete;

  /// None where nothing is wanted.
  [[nodiscard]] const std::optional<KeyFile>& key() const noexcept;
  /// Leaves them for others to find. `endpoint`: with the real port, on which this process listens already.
  /// Throws std::runtime_error if no folder can be had: which, why, what to do.
  void leave_at(const std::string& endpoint);
  /// Empty before leave_at().
  [[nodiscard]] const std::string& folder() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes what says how an endpoint is reached that a killed collector left: for one that has keys of its
/// own.
void forget_local_keys(const std::string& endpoint);

/// The folder in which a collector of this user has left keys, or the word that it wants none, for
/// `endpoint`. Empty: there is none. A folder that others could have made or changed is none.
[[nodiscard]] std::string local_key_folder(const std::string& endpoint);

/// A collector of this user that listens on the loopback.
struct LocalCollector {
  std::string endpoint;  ///< as Credentials takes it
  std::int64_t pid = 0;  ///< of the process that it is in
};
/// Those that live, by endpoint. One that is in another namespace of processes is not found. One that was
/// killed is found as long as another process has its pid and its folder lies there.
[[nodiscard]] std::vector<LocalCollector> local_collectors();

/// True for an endpoint whose keys are found by themselves: tcp on the loopback.
[[nodiscard]] bool has_local_keys(const std::string& endpoint);
/// True if what listens there can also be reached over the loopback.
[[nodiscard]] bool listens_on_loopback(const std::string& endpoint);

/// The key to give where one could be given, to connect without any, to any listener.
inline constexpr const char* kNoKey = "none";

/// How a rank, a viewer or a node's collector gets in at `endpoint`: by a key file that was named, else, on
/// the loopback, as the endpoint's folder says at the time. Used by one thread.
class Credentials {
 public:
  /// `key_file`: empty for the file that SHARDSCOPE_KEY names, if it names any. Of `roles` the first one that
  /// a folder has is used. Throws std::runtime_error for a named file that is not whole or not for any of
  /// them.
  Credentials(std::string endpoint, const std::string& key_file, std::vector<KeyRole> roles);

  /// False: there is no collector to connect to now.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// None: without one.
  [[nodiscard]] const std::optional<KeyFile>& key() const noexcept { return key_; }
  /// Looks again, several times a second at most. True if the sockets are to be made anew.
  [[nodiscard]] bool changed(std::int64_t now_ns);
  /// Why there is no connection, and what to do; empty if there is one.
  [[nodiscard]] std::string what_is_missing() const;

 private:
  void look();

  std::string endpoint_;
  std::vector<KeyRole> roles_;
  bool by_folder_ = false, by_owner_ = false;
  bool known_ = true;
  std::optional<KeyFile> key_;
  std::string seen_;  ///< which files the last look found
  std::int64_t looked_ns_ = 0;
};

}  // namespace shardscope::instrumentation
