#include "instrumentation/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace shardscope::instrumentation {

namespace {

constexpr std::size_t kKeyChars = 40;  // Z85 of 32 bytes
constexpr std::size_t kMaxFile = 1U << 20;

bool is_key(const std::string& text) {
  std::array<std::uint8_t, 32> bytes{};
  return text.size() == kKeyChars && zmq_z85_decode(bytes.data(), text.c_str()) != nullptr;
}

std::optional<KeyRole> role_of(const std::string& name) {
  for (const KeyRole role : {KeyRole::collector, KeyRole::publish, KeyRole::view, KeyRole::control}) {
    if (name == name_of(role)) return role;
  }
  return std::nullopt;
}

/// One key file's lines, read one at a time.
class Parser {
 public:
  explicit Parser(const std::string& text) : in_(text) {}

  KeyFile parse() {
    for (std::string line; std::getline(in_, line);) {
      ++line_;
      std::istringstream words(line);
      std::string what;
      if (!(words >> what) || what == "#") continue;
      take(what, words);
    }
    if (!has_role_) fail("no line 'role ...'");
    if (key_.pair.public_key.empty() || key_.pair.secret_key.empty()) fail("no public or no secret key");
    // A pair that does not match would only show up as a peer that is always rejected.
    std::array<char, kKeyChars + 1> derived{};
    if (zmq_curve_public(derived.data(), key_.pair.secret_key.c_str()) != 0 ||
        derived.data() != key_.pair.public_key)
      fail("the public key is not that of the secret key");
    if (key_.role != KeyRole::collector && key_.collector.empty()) fail("no line 'collector KEY'");
    return std::move(key_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(line_) + ": " + what +
                             "; make a new one with `shardscope keys`");
  }
  std::string key_of(std::istringstream& words) const {
    std::string key;
    words >> key;
    if (!is_key(key)) fail("a key has 40 characters of Z85");
    end(words);
    return key;
  }
  void end(std::istringstream& words) const {
    std::string rest;
    if (words >> rest) fail("'" + rest.substr(0, 40) + "' does not belong there");
  }
  KeyRole role_of_words(std::istringstream& words) const {
    std::string name;
    words >> name;
    const std::optional<KeyRole> role = role_of(name);
    if (!role)
      fail("'" + name.substr(0, 40) + "' is no role; there are collector, publish, view and control");
    return *role;
  }
  void take(const std::string& what, std::istringstream& words) {
    if (what == "role") {
      key_.role = role_of_words(words);
      has_role_ = true;
    } else if (what == "public") {
      key_.pair.public_key = key_of(words);
    } else if (what == "secret") {
      key_.pair.secret_key = key_of(words);
    } else if (what == "collector") {
      key_.collector = key_of(words);
    } else if (what == "allow") {
      const KeyRole role = role_of_words(words);
      if (role == KeyRole::collector) fail("a collector lets in publish, view and control");
      std::string key, name;
      words >> key >> name;
      if (!is_key(key)) fail("a key has 40 characters of Z85");
      if (!name.empty() && !is_key_name(name))
        fail("a key's name has letters, digits, '.', '_' and '-' only");
      end(words);
      key_.allowed.push_back({role, key, name});
    } else {
      fail("'" + what.substr(0, 40) + "' is not known");
    }
  }

  std::istringstream in_;
  KeyFile key_;
  int line_ = 0;
  bool has_role_ = false;
};

}  // namespace

const char* name_of(KeyRole role) noexcept {
  switch (role) {
    case KeyRole::collector:
      return "collector";
    case KeyRole::publish:
      return "publish";
    case KeyRole::view:
      return "view";
    case KeyRole::control:
      return "control";
  }
  return "unknown";
}

bool is_key_name(const std::string& name) noexcept {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), fits);
}

std::string short_name(const std::string& public_key) { return "key " + public_key.substr(0, 8) + "..."; }

KeyPair make_key_pair() {
  std::array<char, kKeyChars + 1> public_key{}, secret_key{};
  if (zmq_has("curve") == 0 || zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    throw std::runtime_error("this libzmq was built without CURVE; install Debian's libzmq5");
  return {public_key.data(), secret_key.data()};
}

KeyFile parse_key_file(const std::string& text) { return Parser(text).parse(); }

std::string format_key_file(const KeyFile& key) {
  std::string text = "# Shardscope key. Whoever has this file has its right: keep it secret.\n";
  text += std::string("role ") + name_of(key.role) + "\n";
  text += "public " + key.pair.public_key + "\nsecret " + key.pair.secret_key + "\n";
  if (!key.collector.empty()) text += "collector " + key.collector + "\n";
  for (const KeyFile::Allowed& allowed : key.allowed)
    text += std::string("allow ") + name_of(allowed.role) + " " + allowed.public_key +
            (allowed.name.empty() ? "" : " " + allowed.name) + "\n";
  return text;
}

KeyFile read_key_file(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error("key file " + path + ": " + why);
  };
  struct stat info {};
  std::ifstream file(path, std::ios::binary);
  if (!file || stat(path.c_str(), &info) != 0) fail(std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("is not a file");
  if ((info.st_mode & 077) != 0)
    fail("others can read or change it; `chmod 600` it, or make new keys if they have");
  if (static_cast<std::size_t>(info.st_size) > kMaxFile) fail("is far too large");
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return parse_key_file(text.str());
  } catch (const std::runtime_error& error) {
    fail(error.what());
  }
  return {};
}

void write_key_file(const std::string& path, const KeyFile& key) {
  const std::string text = format_key_file(key), temporary = path + ".new";
  const auto fail = [&] {
    const std::string why = std::strerror(errno);
    unlink(temporary.c_str());
    throw std::runtime_error("key file " + path + ": cannot be written: " + why);
  };
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) fail();
  const ssize_t written = write(fd, text.data(), text.size());
  const bool good = written == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  close(fd);
  if (!good || rename(temporary.c_str(), path.c_str()) != 0) fail();
}

KeyFile client_key(const std::string& path, const std::vector<KeyRole>& roles) {
  KeyFile key = read_key_file(path);
  if (std::find(roles.begin(), roles.end(), key.role) == roles.end()) {
    std::string wanted;
    for (const KeyRole role : roles) wanted += (wanted.empty() ? "" : " or ") + std::string(name_of(role));
    throw std::runtime_error("key file " + path + ": its role is " + name_of(key.role) +
                             ", here it must be " + wanted);
  }
  return key;
}

namespace {

void check_folder(const std::string& path, const struct stat& info) {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error("key folder " + path + ": " + why);
  };
  if ((info.st_mode & 077) != 0)
    refuse("others can open or change it; `chmod 700` it, or make new keys if they have");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    struct stat file {};
    if (lstat(entry.path().c_str(), &file) != 0 || S_ISLNK(file.st_mode)) continue;
    if ((file.st_mode & 077) != 0)
      refuse("others could read or change " + entry.path().filename().string() +
             " in it; `chmod go=` it, or make new keys if they have");
  }
  if (error) refuse("cannot be read: " + error.message());
}

}  // namespace

std::optional<KeyFile> collector_key(const std::string& path) {
  if (path.empty()) return std::nullopt;
  struct stat info {};
  const bool folder = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (folder) check_folder(path, info);
  const std::string file = folder ? path + "/collector.key" : path;
  KeyFile key = read_key_file(file);
  if (key.role != KeyRole::collector)
    throw std::runtime_error("key file " + file + ": its role is " + name_of(key.role) +
                             ", a collector needs its own");
  if (key.allowed.empty())
    throw std::runtime_error("key file " + file +
                             ": it has no line 'allow ROLE KEY', so that no peer may connect");
  return key;
}

}  // namespace shardscope::instrumentation
