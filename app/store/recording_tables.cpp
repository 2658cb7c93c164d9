#include "app/store/recording_tables.h"

#include <algorithm>
#include <span>
#include <utility>

#include "app/store/crc32.h"
#include "app/store/recording_rows.h"
#include "app/store/run_tables_codec.h"
#include "instrumentation/possible_time.h"

namespace shardscope::store {

void read_tables(Database& database, Store& store, Problems& problems) {
  Statement rows = database.prepare("SELECT rank, bytes, crc FROM tables ORDER BY rank");
  while (rows.step()) {
    const auto rank = static_cast<std::uint32_t>(rows.integer(0));
    const std::span<const std::byte> bytes = rows.bytes(1);
    try {
      if (crc32c(bytes.data(), bytes.size()) != rows.integer(2))
        throw std::runtime_error("checksum does not match");
      store.set_tables(rank, decode_tables(bytes.data(), bytes.size()));
    } catch (const std::runtime_error& error) {
      problems.add("static tables of rank " + std::to_string(rank) + ": " + error.what());
    }
  }
}

void read_names(Database& database, Store& store, Problems& problems) {
  Statement rows = database.prepare("SELECT rank, id, name, crc FROM names");
  while (rows.step()) {
    const auto rank = static_cast<std::uint32_t>(rows.integer(0));
    const auto id = static_cast<std::uint32_t>(rows.integer(1));
    std::string name = rows.text(2);
    if (row_crc(rank, id, name) != rows.integer(3)) {
      problems.add("name " + std::to_string(id) + " of rank " + std::to_string(rank) +
                   ": checksum does not match");
    } else {
      store.add_name(rank, id, std::move(name));
    }
  }
}

void read_ranks(Database& database, Store& store, Problems& problems) {
  Statement rows = database.prepare(
      "SELECT rank, host, pid, connected, finished, exit_code, exit_message, events, dropped, "
      "lost_messages, "
      "clock_offset_ns, clock_residual_ns, gate_number, gate_kind, gate_id, holding, crc FROM ranks ORDER "
      "BY rank");
  while (rows.step()) {
    RankRow row;
    row.rank = static_cast<std::uint32_t>(rows.integer(0));
    row.host = rows.text(1);
    row.pid = static_cast<std::int32_t>(rows.integer(2));
    row.connected = rows.integer(3) != 0;
    row.finished = rows.integer(4) != 0;
    row.exit_code = static_cast<std::int32_t>(rows.integer(5));
    row.exit_message = rows.text(6);
    row.events = static_cast<std::uint64_t>(rows.integer(7));
    row.dropped = static_cast<std::uint64_t>(rows.integer(8));
    row.lost_messages = static_cast<std::uint64_t>(rows.integer(9));
    row.clock_offset_ns = rows.integer(10);
    row.clock_residual_ns = rows.integer(11);
    row.gate.number = static_cast<std::uint64_t>(rows.integer(12));
    row.gate.kind = static_cast<ev::GateKind>(rows.integer(13));
    row.gate.id = static_cast<std::uint32_t>(rows.integer(14));
    row.gate.holding = rows.integer(15) != 0;
    if (row_crc(row) != rows.integer(16)) {
      problems.add("row of rank " + std::to_string(row.rank) + ": checksum does not match");
      continue;
    }
    row.outlived_recording = row.connected && !row.finished;
    row.connected = false;  // no rank is connected to a file
    store.set_rank(row);
  }
}

void read_messages(Database& database, Store& store, Problems& problems) {
  Statement rows = database.prepare("SELECT id, rank, at_ns, severity, text, crc FROM messages ORDER BY id");
  while (rows.step()) {
    Message message;
    message.rank = static_cast<std::uint32_t>(rows.integer(1));
    const std::int64_t at = rows.integer(2);
    message.severity = static_cast<ev::Severity>(rows.integer(3));
    message.text = rows.text(4);
    if (!instrumentation::is_time(at) || row_crc(message, at) != rows.integer(5)) {
      problems.add("message " + std::to_string(rows.integer(0)) + ": checksum does not match");
      continue;
    }
    message.at_ns = std::max<std::int64_t>(at - store.origin_ns(), 0);
    store.add_message(std::move(message));
  }
}

}  // namespace shardscope::store
