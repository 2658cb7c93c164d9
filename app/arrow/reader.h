// What a recording holds, for programs of other languages: figures as JSON, tables as streams of Arrow record
// batches. A C interface, so that the Python module that links it (python/src/recording.cpp) knows nothing of
// the store; it is the package's own and may change with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/arrow/c_data.h"

extern "C" {

struct shardscope_recording;

/// What is 0 or null restricts nothing, but for the times: INT64_MIN and INT64_MAX.
struct shardscope_filter {
  const std::uint32_t* ranks;
  std::size_t rank_count;
  const char* const* kinds;
  std::size_t kind_count;
  const std::uint32_t* steps;
  std::size_t step_count;
  std::int64_t begin_ns, end_ns;
};

/// What failed: every function below that can sets it, for the calling thread.
const char* shardscope_reader_error();

/// Null where nothing can be read. `check` 0: checksums of what is read, when it is; else of everything now.
shardscope_recording* shardscope_reader_open(const char* path, int check);
/// Streams that are open keep what they need.
void shardscope_reader_close(shardscope_recording* recording);

/// "summary", "findings": as `shardscope summary --json`, `findings --json`; "info": path, version,
/// completeness, problems. To be freed by shardscope_reader_free(); null: an error.
char* shardscope_reader_json(shardscope_recording* recording, const char* what);
void shardscope_reader_free(char* text);

/// A table as a stream; 0, or 1 with an error. `batch_rows`: about how many rows of a batch.
int shardscope_reader_stream(shardscope_recording* recording, const char* table,
                             const shardscope_filter* filter, std::size_t batch_rows, ArrowArrayStream* out);

}  // extern "C"
