// CURVE keys for collectors that other machines can reach. A collector has a pair of its own and a list of
// the public keys it lets in, each for one right; a rank or viewer has a pair and the collector's public key.
// One file per holder, plain text, readable by its owner only:
//
//   role publish            what the holder may do
//   public  <40 characters, Z85>
//   secret  <40 characters, Z85>
//   collector <40 characters, Z85>         ranks and viewers: whom they talk to
//   allow publish <40 characters, Z85> anna    collectors: whom they let in, and how they call it; repeated
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
/// What a key may be called: letters, digits, '.', '_' and '-', 64 of them at most.
[[nodiscard]] bool is_key_name(const std::string& name) noexcept;
/// How a key without a name is called: by the beginning of its public half.
[[nodiscard]] std::string short_name(const std::string& public_key);

/// A new pair, from the system's random numbers. Throws std::runtime_error if this libzmq has no CURVE.
[[nodiscard]] KeyPair make_key_pair();

struct KeyFile {
  struct Allowed {
    KeyRole role = KeyRole::publish;
    std::string public_key;
    std::string name{};  ///< of its file; empty: none
  };
  KeyRole role = KeyRole::publish;
  KeyPair pair;
  std::string collector;         ///< ranks and viewers
  std::vector<Allowed> allowed;  ///< collectors
};

/// Reads and checks a file. Throws std::runtime_error: path, line, what is wrong, what to do. A file that
/// others than its owner can read is refused.
[[nodiscard]] KeyFile read_key_file(const std::string& path);
/// Writes it for the owner's eyes only; replaces the file as a whole or not at all. Throws
/// std::runtime_error.
void write_key_file(const std::string& path, const KeyFile& key);

/// The text of a key file. parse throws std::runtime_error naming the line.
[[nodiscard]] KeyFile parse_key_file(const std::string& text);
[[nodiscard]] std::string format_key_file(const KeyFile& key);

/// The key of a rank or a viewer. Throws std::runtime_error as read_key_file() does, and if it is not for any
/// of `roles`. Which file it is, Credentials says (local_keys.h).
[[nodiscard]] KeyFile client_key(const std::string& path, const std::vector<KeyRole>& roles);
/// The key of a collector: a file, or a folder that `shardscope keys` made. Empty path: none. A folder that
/// others than its owner can open, or that holds a file which they can read, is refused.
[[nodiscard]] std::optional<KeyFile> collector_key(const std::string& path);

}  // namespace shardscope::instrumentation
