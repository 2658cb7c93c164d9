// Peers that write to a collector's ports byte by byte, without libzmq.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shardscope::collector {

/// A connection to the port of `endpoint` on this machine, or to its socket file; -1 where none came about.
/// The caller closes it.
inline int connect_raw(const std::string& endpoint) {
  if (constexpr std::string_view kIpc = "ipc://"; endpoint.starts_with(kIpc)) {
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    endpoint.copy(path.sun_path, sizeof path.sun_path - 1, kIpc.size());
    if (connect(file, reinterpret_cast<const sockaddr*>(&path), sizeof path) == 0) return file;
    close(file);
    return -1;
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

/// Reads what `fd` gets until it is closed or `quiet` passes without a byte.
inline std::string read_all(int fd, std::chrono::milliseconds quiet) {
  std::string got;
  for (;;) {
    pollfd item{fd, POLLIN, 0};
    if (poll(&item, 1, static_cast<int>(quiet.count())) <= 0) return got;
    std::array<char, 4096> bytes{};
    const ssize_t n = read(fd, bytes.data(), bytes.size());
    if (n <= 0) return got;
    got.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

/// Greeting of ZMTP 3.0 (RFC 23) with the mechanism NULL: 64 bytes.
inline std::string null_greeting() {
  std::string greeting(64, '\0');
  greeting[0] = static_cast<char>(0xFF);
  greeting[9] = 0x7F;
  greeting[10] = 3;
  greeting.replace(12, 4, "NULL");
  return greeting;
}

/// READY command of ZMTP 3.0 with its frame's head.
inline std::string ready_command(const std::string& socket_type) {
  std::string command("\x05READY\x0bSocket-Type\0\0\0", 21);
  command += static_cast<char>(socket_type.size());
  command += socket_type;
  return std::string("\x04") + static_cast<char>(command.size()) + command;
}

}  // namespace shardscope::collector
