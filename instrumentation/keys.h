// CURVE keys for collectors that other machines can reach. A collector has its own key pair and a list of
// accepted public keys, each with one right; a rank or viewer has a key pair and the collector's public key.
// One plain-text file per holder, readable only by its owner:
//
//   role publish            what the holder may do
//   public  <40 characters, Z85>
//   secret  <40 characters, Z85>
//   collector <40 characters, Z85>         ranks and viewers: whom they talk to
//   allow publish <40 characters, Z85> anna    collectors: an accepted key and its name; repeated
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::instrumentation {

/// `control` may also view.
enum class KeyRole : std::uint8_t { collector, publish, view, control };
[[nodiscard]] const char* name_of(KeyRole role) noexcept;

struct KeyPair {
  std::string public_key, secret_key;
};
/// Allowed key names: letters, digits, '.', '_' and '-', at most 64.
[[nodiscard]] bool is_key_name(const std::string& name) noexcept;
/// Name shown for a key without one: the beginning of its public half.
[[nodiscard]] std::string short_name(const std::string& public_key);

/// A new pair, from the system's random numbers. Throws std::runtime_error if this libzmq has no CURVE.
[[nodiscard]] KeyPair make_key_pair();

struct KeyFile {
  struct Allowed {
    KeyRole role = KeyRole::publish;
    std::string public_key;
    std::string name{};  ///< of its file; empty: no name
  };
  KeyRole role = KeyRole::publish;
  KeyPair pair;
  std::string collector;         ///< for ranks and viewers
  std::vector<Allowed> allowed;  ///< for collectors
};

/// Reads and checks a file. Throws std::runtime_error with path, line, problem and remedy. A file that users
/// other than its owner can read is rejected.
[[nodiscard]] KeyFile read_key_file(const std::string& path);
/// Writes the file, readable only by its owner; replaces it atomically. Throws
/// std::runtime_error.
void write_key_file(const std::string& path, const KeyFile& key);

/// The text of a key file. parse_key_file() throws std::runtime_error with the line.
[[nodiscard]] KeyFile parse_key_file(const std::string& text);
[[nodiscard]] std::string format_key_file(const KeyFile& key);

/// The key of a rank or a viewer. Throws std::runtime_error like read_key_file(), and if the key's role is
/// not in `roles`. Credentials chooses the file (local_keys.h).
[[nodiscard]] KeyFile client_key(const std::string& path, const std::vector<KeyRole>& roles);
/// The key of a collector, from a file or from a folder made by `shardscope keys`. Empty path: none. Rejects
/// a folder that users other than its owner can open, or that holds a file which they can read.
[[nodiscard]] std::optional<KeyFile> collector_key(const std::string& path);

}  // namespace shardscope::instrumentation
