// [Note: keys on one machine]
// Every process of the machine can reach loopback ports, and so can web pages through the browser. A
// collector that listens there without `--keys` therefore makes keys at its start and stores them where only
// processes of its user can read them; those find them by the endpoint alone. One folder per endpoint,
//
//   <root>/tcp-5711-<boot>-<network namespace>/    mode 0700
//     publish.key view.key control.key             one key file per right (keys.h)
//     collector.key                                its own, so that the successor of a killed collector
//                                                  can continue with the same keys
//     insecure                                     instead of keys: `--insecure`, no keys required
//     lock                                         held by the running collector; contains its host,
//                                                  pid and endpoint
//
// under the first of $XDG_RUNTIME_DIR/shardscope, $XDG_STATE_HOME/shardscope (~/.local/state/shardscope) and
// /tmp/shardscope-<uid> that can be created with mode 0700. Readers search all of them: programs of one user
// do not always have the same environment. Folders without a lock holder are removed when the next collector
// starts.
//
// A rank, a viewer or a node's collector connects to a loopback endpoint with the keys of its folder, and
// does not connect without the folder, so that no other program on that port is mistaken for the collector.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/keys.h"

namespace shardscope::instrumentation {

/// The collector's keys on this machine.
class LocalKeys {
 public:
  enum class Wanted : std::uint8_t { keys, nothing };  ///< nothing: every peer is accepted
  /// Makes keys, or takes over those that a killed collector left for `endpoint`.
  LocalKeys(const std::string& endpoint, Wanted wanted);
  ~LocalKeys();  ///< removes the folder
  LocalKeys(const LocalKeys&) = delete;
  LocalKeys& operator=(const LocalKeys&) = delete;

  /// nullopt if no keys are required.
  [[nodiscard]] const std::optional<KeyFile>& key() const noexcept;
  /// Publishes the keys in the endpoint's folder. `endpoint`: with the actual port, on which this process
  /// must already listen. Throws std::runtime_error if no folder can be made: which, why, what to do.
  void leave_at(const std::string& endpoint);
  /// Empty before leave_at().
  [[nodiscard]] const std::string& folder() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes the folder that a killed collector left for an endpoint: for a collector that has keys of its
/// own.
void forget_local_keys(const std::string& endpoint);

/// The folder in which a collector of this user has published keys (or that none are required) for
/// `endpoint`. Empty: there is none. Ignores folders that other users could have created or modified.
[[nodiscard]] std::string local_key_folder(const std::string& endpoint);

/// A collector of this user that listens on the loopback.
struct LocalCollector {
  std::string endpoint;  ///< as Credentials expects it
  std::int64_t pid = 0;  ///< of the collector's process
};
/// Running collectors, by endpoint. Does not find collectors in another pid namespace. A killed one is listed
/// as long as another process has its pid and its folder exists.
[[nodiscard]] std::vector<LocalCollector> local_collectors();

/// True for endpoints whose keys are found automatically: tcp on the loopback.
[[nodiscard]] bool has_local_keys(const std::string& endpoint);
/// True if the listener at `endpoint` can also be reached over the loopback.
[[nodiscard]] bool listens_on_loopback(const std::string& endpoint);

/// Value of a key option: connect without a key, to any listener.
inline constexpr const char* kNoKey = "none";

/// Chooses the key with which a rank, a viewer or a node's collector connects to `endpoint`: a named key
/// file, else, on the loopback, the one in the endpoint's folder. Not thread-safe.
class Credentials {
 public:
  /// `key_file`: empty for the file that SHARDSCOPE_KEY names, if set. From a folder the first of `roles`
  /// that it has is used. Throws std::runtime_error for a named file that is incomplete or of none of these
  /// roles.
  Credentials(std::string endpoint, const std::string& key_file, std::vector<KeyRole> roles);

  /// False: there is no collector to connect to now.
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// nullopt: connect without a key.
  [[nodiscard]] const std::optional<KeyFile>& key() const noexcept { return key_; }
  /// Checks again, at most several times a second. True if the sockets must be recreated.
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
  std::string seen_;  ///< the files found by the last check
  std::int64_t looked_ns_ = 0;
};

}  // namespace shardscope::instrumentation
