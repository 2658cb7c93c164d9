#include "app/cli/build_facts.h"

#include <flatbuffers/base.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <zmq.h>
#include <zstd.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "runtime/base/build_facts.h"

namespace shardscope::cli {

std::string version_text() {
  int zmq_major = 0, zmq_minor = 0, zmq_patch = 0;
  zmq_version(&zmq_major, &zmq_minor, &zmq_patch);
  // Shared libraries return the loaded version; header-only ones have the compiled version.
  return fmt::format(
      "{}\n"
      "libraries  ZeroMQ {}.{}.{}, SQLite {}, zstd {}, FlatBuffers {}.{}.{}, fmt {}.{}.{}, CLI11 {}, "
      "nlohmann-json {}.{}.{}",
      base::build_facts("shardscope"), zmq_major, zmq_minor, zmq_patch, sqlite3_libversion(),
      ZSTD_versionString(), FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR,
      FLATBUFFERS_VERSION_REVISION, FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100,
      CLI11_VERSION, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
}

}  // namespace shardscope::cli
