#include "instrumentation/local_keys.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "instrumentation/sockets.h"

namespace shardscope::instrumentation {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCollector = "/collector.key";
constexpr const char* kInsecure = "/insecure";
constexpr const char* kLock = "/lock";
constexpr const char* kUnfinished = "new-";
constexpr std::int64_t kLookEvery_ns = 200'000'000;
constexpr std::int64_t kUnfinishedFor_s = 3600;
/// Grace period for a collector that has closed its port but not yet removed its folder.
constexpr std::chrono::milliseconds kLeaving{3000};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home() {
  if (const std::string set = variable("HOME"); !set.empty()) return set;
  std::array<char, 4096> storage{};
  passwd entry{}, *found = nullptr;
  if (getpwuid_r(geteuid(), &entry, storage.data(), storage.size(), &found) != 0 || found == nullptr)
    return "";
  return entry.pw_dir;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// Whether only this user can have created and modified the folder.
bool is_private(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

struct Root {
  std::string parent, folder;
  bool runtime = false;  ///< the parent folder is made by the system and private
};

/// Candidate folders, the preferred first. The environment is read once, by the thread that sets up: the
/// observed program may change it later, while other threads read it here.
const std::vector<Root>& roots() {
  static const std::vector<Root> known = [] {
    std::vector<Root> all;
    const auto add = [&](const std::string& parent, bool runtime, const std::string& name = "shardscope") {
      if (!parent.empty() && parent.front() == '/') all.push_back({parent, parent + "/" + name, runtime});
    };
    const std::string user = std::to_string(geteuid());
    add(variable("XDG_RUNTIME_DIR"), true);
    add("/run/user/" + user, true);
    add(variable("XDG_STATE_HOME"), false);
    if (const std::string at = home(); !at.empty()) add(at + "/.local/state", false);
    add("/tmp", false, "shardscope-" + user);
    return all;
  }();
  return known;
}

/// Creates the first usable root and returns its path. Throws std::runtime_error.
std::string make_root() {
  std::string why;
  for (const Root& root : roots()) {
    if (root.runtime && !is_private(root.parent)) continue;  // should be private; its owner is unknown
    std::error_code error;
    if (!root.runtime) fs::create_directories(root.parent, error);
    if (mkdir(root.folder.c_str(), 0700) != 0 && errno != EEXIST) {
      why += root.folder + ": " + std::strerror(errno) + "; ";
    } else if (!is_private(root.folder)) {
      why += root.folder + ": others can open it, or it is not yours; ";
    } else if (access(root.folder.c_str(), W_OK | X_OK) != 0) {
      why += root.folder + ": " + std::strerror(errno) + "; ";
    } else {
      return root.folder;
    }
  }
  throw std::runtime_error("no private folder for the keys of a collector on this machine (" + why +
                           "); set XDG_RUNTIME_DIR to a folder of yours with mode 0700, give --keys DIR, or "
                           "let in everybody with --insecure");
}

struct Place {
  std::string boot, network;
};

/// Equal in processes that share the loopback interface: same boot, same network namespace.
const Place& place() {
  static const Place found = [] {
    Place p{"0", "0"};
    std::string boot;
    if (std::ifstream("/proc/sys/kernel/random/boot_id") >> boot && boot.size() >= 8)
      p.boot = boot.substr(0, 8);
    struct stat info {};
    if (stat("/proc/self/ns/net", &info) == 0) p.network = std::to_string(info.st_ino);
    return p;
  }();
  return found;
}

std::string host_of(const std::string& endpoint) { return endpoint.substr(6, endpoint.rfind(':') - 6); }

/// Name of the folder of an endpoint on the loopback.
std::string folder_name(const std::string& endpoint) {
  const std::string host = host_of(endpoint);
  const bool usual = host.rfind("127.", 0) != 0 || host == "127.0.0.1";
  return "tcp-" + (usual ? "" : host + "-") + endpoint.substr(endpoint.rfind(':') + 1) + "-" + place().boot +
         "-" + place().network;
}

/// Address at which this machine reaches the listener at `endpoint`.
std::string reached_at(const std::string& endpoint) {
  if (is_local(endpoint)) return endpoint;
  const std::string host = host_of(endpoint);
  return std::string("tcp://") + (host == "[::]" || host == "::" ? "[::1]" : "127.0.0.1") +
         endpoint.substr(endpoint.rfind(':'));
}

/// Writes who holds the lock, for other processes.
void write_holder(int lock, const std::string& path, const std::string& endpoint) {
  const std::string holder = "host " + host_name() + "\npid " + std::to_string(getpid()) + "\nendpoint " +
                             reached_at(endpoint) + "\n";
  if (ftruncate(lock, 0) != 0 ||
      pwrite(lock, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()))
    throw std::runtime_error(path + kLock + ": cannot be written: " + std::strerror(errno));
}

/// Returns a descriptor that holds `folder`'s lock, or -1.
int hold(const std::string& folder, bool make) {
  const std::string path = folder + kLock;
  const int fd = open(path.c_str(), (make ? O_RDWR | O_CREAT : O_RDWR) | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  struct stat held {
  }, there{};
  // Another process that cleans up may have removed the file between the two calls.
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && lstat(path.c_str(), &there) == 0 &&
      held.st_ino == there.st_ino)
    return fd;
  close(fd);
  return -1;
}

void remove_folder(const std::string& folder) {
  std::error_code ignored;
  // Renamed first, so that no process finds a partially removed folder.
  const std::string away =
      fs::path(folder).parent_path().string() + "/" + kUnfinished + std::to_string(random_id());
  fs::rename(folder, away, ignored);
  fs::remove_all(ignored ? folder : away, ignored);
}

std::string line_of(const std::string& path, const std::string& name) {
  std::ifstream in(path);
  for (std::string word, value; in >> word >> value;) {
    if (word == name) return value;
  }
  return "";
}

/// Removes folders of dead collectors in `root`, except those of other machines, which may share it.
void clean(const std::string& root) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    if (name.starts_with(kUnfinished)) {
      // A new folder is not locked for some milliseconds; an old unlocked one is of a killed process.
      struct stat info {};
      if (lstat(path.c_str(), &info) == 0 && time(nullptr) - info.st_mtim.tv_sec > kUnfinishedFor_s)
        fs::remove_all(path, error);
      continue;
    }
    if (!name.starts_with("tcp-")) continue;
    if (line_of(path + kLock, "host") != host_name() &&
        name.find("-" + place().boot + "-") == std::string::npos)
      continue;
    const int held = hold(path, false);
    if (held < 0) continue;
    remove_folder(path);
    close(held);
  }
}

std::string found_folder(const std::string& endpoint) {
  const std::string name = folder_name(endpoint);
  for (const Root& root : roots()) {
    const std::string path = root.folder + "/" + name;
    if (is_private(path) && is_private(root.folder)) return path;
  }
  return "";
}

}  // namespace

bool has_local_keys(const std::string& endpoint) {
  return endpoint.starts_with("tcp://") && is_local(endpoint) &&
         endpoint.find_first_not_of("0123456789", endpoint.rfind(':') + 1) == std::string::npos;
}

bool listens_on_loopback(const std::string& endpoint) {
  if (!endpoint.starts_with("tcp://")) return false;
  const std::string host = host_of(endpoint);
  return is_local(endpoint) || host == "*" || host == "0.0.0.0" || host == "[::]" || host == "::";
}

std::vector<LocalCollector> local_collectors() {
  std::vector<LocalCollector> out;
  const std::string suffix = "-" + place().boot + "-" + place().network;
  for (const Root& root : roots()) {
    if (!is_private(root.folder)) continue;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root.folder, error)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("tcp-") || !name.ends_with(suffix) || !is_private(entry.path().string()))
        continue;
      // The lock is not tried: a collector that starts meanwhile could not acquire it. So if a collector was
      // killed, a later process of this user with the same pid is mistaken for it.
      const std::string lock = entry.path().string() + kLock;
      const std::int64_t pid = std::atoll(line_of(lock, "pid").c_str());
      std::string endpoint = line_of(lock, "endpoint");
      if (endpoint.empty() || pid <= 0 || kill(static_cast<pid_t>(pid), 0) != 0) continue;
      out.push_back({std::move(endpoint), pid});
    }
  }
  std::ranges::sort(out, {}, &LocalCollector::endpoint);
  return out;
}

std::string local_key_folder(const std::string& endpoint) {
  return has_local_keys(endpoint) ? found_folder(endpoint) : std::string();
}

void forget_local_keys(const std::string& endpoint) {
  if (!listens_on_loopback(endpoint)) return;
  if (const std::string left = found_folder(endpoint); !left.empty()) remove_folder(left);
}

struct LocalKeys::State {
  Wanted wanted = Wanted::keys;
  std::optional<KeyFile> collector;
  std::vector<std::pair<KeyRole, KeyFile>> holders;
  std::string folder;
  int lock = -1;

  void make_keys();
  [[nodiscard]] bool take_over(const std::string& endpoint);
  void write_to(const std::string& path) const;
};

void LocalKeys::State::make_keys() {
  collector.emplace();
  collector->role = KeyRole::collector;
  collector->pair = make_key_pair();
  for (const KeyRole role : {KeyRole::publish, KeyRole::view, KeyRole::control}) {
    KeyFile key;
    key.role = role;
    key.pair = make_key_pair();
    key.collector = collector->pair.public_key;
    collector->allowed.push_back({role, key.pair.public_key, name_of(role)});
    holders.emplace_back(role, std::move(key));
  }
}

/// Takes over a dead collector's keys, so that its surviving ranks can keep using theirs.
bool LocalKeys::State::take_over(const std::string& endpoint) {
  const std::string path = found_folder(endpoint);
  if (path.empty() || access((path + kCollector).c_str(), R_OK) != 0) return false;
  lock = hold(path, false);
  if (lock < 0) return false;
  try {
    collector = collector_key(path);
    folder = path;
    return true;
  } catch (const std::runtime_error&) {  // truncated: made anew
    close(std::exchange(lock, -1));
    collector.reset();
    return false;
  }
}

void LocalKeys::State::write_to(const std::string& path) const {
  if (wanted == Wanted::nothing) {
    const int fd = open((path + kInsecure).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) throw std::runtime_error(path + kInsecure + ": cannot be written: " + std::strerror(errno));
    close(fd);
    return;
  }
  write_key_file(path + kCollector, *collector);
  for (const auto& [role, key] : holders) write_key_file(path + "/" + name_of(role) + ".key", key);
}

LocalKeys::LocalKeys(const std::string& endpoint, Wanted wanted) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.wanted = wanted;
  if (wanted == Wanted::nothing) return;
  const std::string port = endpoint.substr(endpoint.rfind(':') + 1);
  if (port == "0" || port == "*" || !s.take_over(endpoint)) s.make_keys();
}

LocalKeys::~LocalKeys() {
  State& s = *state_;
  if (s.lock < 0) return;
  if (!s.folder.empty()) remove_folder(s.folder);
  close(s.lock);
}

const std::optional<KeyFile>& LocalKeys::key() const noexcept { return state_->collector; }
const std::string& LocalKeys::folder() const noexcept { return state_->folder; }

void LocalKeys::leave_at(const std::string& endpoint) {
  State& s = *state_;
  const std::string root = make_root();
  for (const Root& each : roots()) {
    if (is_private(each.folder)) clean(each.folder);
  }
  if (s.lock >= 0) return write_holder(s.lock, s.folder, endpoint);  // taken over in its folder
  const std::string draft = root + "/" + kUnfinished + std::to_string(random_id());
  if (mkdir(draft.c_str(), 0700) != 0)
    throw std::runtime_error(draft + ": cannot be made: " + std::strerror(errno) +
                             "; give --keys DIR, or let in everybody with --insecure");
  s.lock = hold(draft, true);
  try {
    if (s.lock < 0) throw std::runtime_error(draft + kLock + ": cannot be held: " + std::strerror(errno));
    write_holder(s.lock, draft, endpoint);
    s.write_to(draft);
    // This process owns the port, so the owner of this folder is dead or about to exit.
    const std::string wanted = root + "/" + folder_name(endpoint);
    const auto end = std::chrono::steady_clock::now() + kLeaving;
    for (std::string left = found_folder(endpoint); !left.empty(); left = found_folder(endpoint)) {
      const int held = hold(left, false);
      if (held >= 0) {
        remove_folder(left);
        close(held);
      } else if (std::chrono::steady_clock::now() > end) {
        throw std::runtime_error("another collector of yours listens on port " +
                                 endpoint.substr(endpoint.rfind(':') + 1) + " of the loopback (" + left +
                                 "); choose another endpoint with --listen");
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    if (rename(draft.c_str(), wanted.c_str()) != 0)
      throw std::runtime_error(wanted + ": cannot be made: " + std::strerror(errno));
    s.folder = wanted;
  } catch (...) {
    remove_folder(draft);
    throw;
  }
}

Credentials::Credentials(std::string endpoint, const std::string& key_file, std::vector<KeyRole> roles)
    : endpoint_(std::move(endpoint)), roles_(std::move(roles)) {
  const std::string named = key_file.empty() ? variable("SHARDSCOPE_KEY") : key_file;
  if (named == kNoKey) return;
  if (!named.empty()) {
    key_ = client_key(named, roles_);
    return;
  }
  by_folder_ = has_local_keys(endpoint_);
  by_owner_ = endpoint_.starts_with("ipc://") && !endpoint_.starts_with("ipc://@");
  if (by_folder_ || by_owner_) look();
}

bool Credentials::changed(std::int64_t now_ns) {
  if ((!by_folder_ && !by_owner_) || now_ns - looked_ns_ < kLookEvery_ns) return false;
  looked_ns_ = now_ns;
  const std::string before = seen_;
  look();
  return seen_ != before;
}

void Credentials::look() {
  struct stat info {};
  const auto forget = [&] {
    known_ = false;
    key_.reset();
    seen_.clear();
  };
  if (by_owner_) {
    if (stat(endpoint_.c_str() + 6, &info) != 0 || (info.st_uid != geteuid() && info.st_uid != 0))
      return forget();
    known_ = true;
    seen_ = "owned";
    return;
  }
  const std::string folder = found_folder(endpoint_);
  if (folder.empty()) return forget();
  std::string file;
  for (const KeyRole role : roles_) {
    file = folder + "/" + name_of(role) + ".key";
    if (lstat(file.c_str(), &info) == 0) break;
    file.clear();
  }
  const bool insecure = file.empty() && lstat((folder + kInsecure).c_str(), &info) == 0;
  if (file.empty() && !insecure) return forget();
  const std::string now = std::to_string(info.st_ino) + "." + std::to_string(info.st_ctim.tv_sec) + "." +
                          std::to_string(info.st_ctim.tv_nsec);
  if (known_ && now == seen_) return;
  try {
    key_ = insecure ? std::nullopt : std::optional(client_key(file, roles_));
    known_ = true;
    seen_ = now;
  } catch (const std::runtime_error&) {  // removed meanwhile
    forget();
  }
}

std::string Credentials::what_is_missing() const {
  if (known_) return "";
  if (by_owner_) {
    return "no collector of yours listens on " + endpoint_ +
           "; give the collector's key with --key FILE, or --key none to connect to whoever listens";
  }
  return "no collector of yours listens on " + endpoint_ +
         "; through a tunnel or for another user's give its key with --key FILE (docs/security.md), or "
         "--key none where it was started with --insecure";
}

}  // namespace shardscope::instrumentation
