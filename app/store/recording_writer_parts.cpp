#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "app/store/database.h"
#include "app/store/recording_place.h"
#include "app/store/recording_writer_state.h"

namespace shardscope::store {

namespace {

/// Delay before the next attempt if the next part could not be begun: a full disk seldom has room again soon.
constexpr std::chrono::seconds kTryAgain{60};

}  // namespace

std::uint64_t RecordingWriter::State::bytes() const {
  Database& database = out->database();
  return static_cast<std::uint64_t>(database.integer("PRAGMA page_count")) *
         static_cast<std::uint64_t>(database.integer("PRAGMA page_size"));
}

void RecordingWriter::State::count_block(const Block& block) {
  PartRow& row = blocks_of_part;
  row.begin_ns = row.events == 0 ? block.begin_ns : std::min(row.begin_ns, block.begin_ns);
  row.end_ns = row.events == 0 ? block.end_ns : std::max(row.end_ns, block.end_ns);
  row.events += block.events;
}

PartRow RecordingWriter::State::row_of_part(PartEnd why) const {
  PartRow row = blocks_of_part;
  row.part = part.part;
  row.file = std::filesystem::path(out->path()).filename().string();
  row.bytes = bytes();
  row.ended = name_of(why);
  return row;
}

/// Why the part ends now; nullopt: it does not. A part without blocks does not end: the next part would have
/// the same events.
std::optional<PartEnd> RecordingWriter::State::part_ends(std::int64_t now_ns) {
  if (!rotation.on() || !out || !error.empty() || blocks_of_part.events == 0) return std::nullopt;
  if (std::chrono::steady_clock::now() < next_try) return std::nullopt;
  fill.bytes = bytes();
  PartFill until_now = fill;
  // Event times after the collector's current time count as that time.
  until_now.last_ns = std::min(until_now.last_ns, std::max(now_ns, until_now.first_ns));
  return end_of_part(rotation, until_now);
}

/// [Note: a change of parts]
/// If the recorder is killed between any two of these steps, no committed event is lost or read twice:
/// 1. All events received are committed to the part that ends.
/// 2. The next part is written completely, under a name that readers ignore. If this fails, recording
///    continues in the current part.
/// 3. The part that ends is completed in one transaction, and marked as followed.
/// 4. The next part is renamed to its final name. Readers use it from now on.
/// 5. The link is moved to the next part.
/// 6. Events are written to the next part. Parts beyond the limit are deleted.
/// The log of the part that has ended is folded in by a separate thread, because that waits for the disk.
void RecordingWriter::State::change_part(const Store& store, PartEnd why) {
  wait_for_closing();
  guarded([&] { sums->finish(out->database(), store); });
  if (!commit()) return;
  const PartRow ended = row_of_part(why);
  const std::vector<Block> tails = blocks.tails();
  PartIdentity next = part;
  ++next.part;
  next.first_part = std::max(part.first_part, first_kept(rotation, next.part));
  next.first_chunk = last_id + 1;
  const std::string made = unfinished_part_path(place, next.part);
  std::error_code ignored;
  try {
    std::filesystem::remove(made, ignored);
    make_next_part(made, {.before = out->path(), .identity = next, .ended = ended, .tails = tails}, *sums,
                   store);
  } catch (const std::exception& failure) {
    std::filesystem::remove(made, ignored);
    next_try = std::chrono::steady_clock::now() + kTryAgain;
    Message note;
    note.at_ns = early_stop.reached_ns() - origin_ns.value_or(0);
    note.severity = ev::Severity::warning;
    note.text = "part " + std::to_string(next.part) + " of the recording could not be begun (" +
                failure.what() + "): part " + std::to_string(part.part) + " goes on";
    message(note);
    return;
  }
  guarded([&] {
    out->check_place();
    end_part(out->database(), ended, tails);
    write_end(store);
    out->commit();
  });
  if (!error.empty()) {
    std::filesystem::remove(made, ignored);
    return;
  }
  guarded([&] { go_on_in(next); });
  if (!error.empty()) return;
  std::int64_t deleted_until_ns = INT64_MIN;
  guarded([&] {
    for (const PartRow& row : part_rows(out->database())) {
      if (row.part < part.first_part) deleted_until_ns = std::max(deleted_until_ns, row.end_ns);
    }
  });
  sums->part_has_begun(deleted_until_ns);
  blocks_of_part = {};
  fill = {.begun_with = bytes()};
  tails_of_part.clear();
  for (const Block& tail : tails) tails_of_part.insert(tail.rank);
}

/// Steps 4 to 6 of [Note: a change of parts].
void RecordingWriter::State::go_on_in(const PartIdentity& next) {
  const std::string file = part_path(place, next.part);
  if (out->database().in_transaction()) out->commit();
  std::filesystem::rename(unfinished_part_path(place, next.part), file);
  auto opened = std::make_unique<WrittenFile>(file);
  link_to_part(place, file);
  early_stop.goes_on_in(file);
  closing = std::thread([ended = std::exchange(out, std::move(opened))] {
    try {
      ended->close();
    } catch (const std::exception&) {  // the log stays beside the file, and readers read both
    }
  });
  for (std::uint32_t gone = part.first_part; gone < next.first_part; ++gone)
    remove_recording(part_path(place, gone));
  part = next;
}

}  // namespace shardscope::store
