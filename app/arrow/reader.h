// Reads a recording for programs in other languages: figures as JSON, tables as streams of Arrow record
// batches. A C interface, so that the Python module (python/src/recording.cpp) does not depend on the store;
// it is internal to the package and may change with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/arrow/c_data.h"

extern "C" {

struct shardscope_recording;

/// Empty lists restrict nothing; for times INT64_MIN and INT64_MAX restrict nothing.
struct shardscope_filter {
  const std::uint32_t* ranks;
  std::size_t rank_count;
  const char* const* kinds;
  std::size_t kind_count;
  const std::uint32_t* steps;
  std::size_t step_count;
  std::int64_t begin_ns, end_ns;
};

/// The error of the last call that failed in the calling thread; every function below may set it.
const char* shardscope_reader_error();

/// Null on an error. `check` 0: checksums are verified as blocks are read; otherwise all of them now.
shardscope_recording* shardscope_reader_open(const char* path, int check);
/// Open streams stay valid: they share ownership of the recording.
void shardscope_reader_close(shardscope_recording* recording);

/// `what`: "summary", "findings" (as `shardscope summary --json`, `findings --json`), "info": path, version,
/// completeness, problems. Null on an error. The caller frees the text with shardscope_reader_free().
char* shardscope_reader_json(shardscope_recording* recording, const char* what);
void shardscope_reader_free(char* text);

/// Opens a table as a stream. Returns 0, or 1 on an error. `batch_rows`: approximate rows per batch.
int shardscope_reader_stream(shardscope_recording* recording, const char* table,
                             const shardscope_filter* filter, std::size_t batch_rows, ArrowArrayStream* out);

}  // extern "C"
