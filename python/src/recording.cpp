// The extension `shardscope._reader`: recordings, their figures and their tables. Separate from `_core`, so
// that a process that only emits does not load it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/arrow/reader.h"

namespace nb = nanobind;

namespace {

/// Raises ValueError with the library's last error on this thread.
[[noreturn]] void raise() { throw nb::value_error(shardscope_reader_error()); }

/// An Arrow array read from a stream, kept while any of its buffers is referenced.
struct HeldArray {
  ArrowArray array{};
  ~HeldArray() {
    if (array.release != nullptr) array.release(&array);
  }
};

/// A column's bytes, by Python's buffer protocol: memoryview() and numpy.frombuffer() copy nothing.
struct Buffer {
  std::shared_ptr<HeldArray> of;
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* buffer = nb::inst_ptr<Buffer>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, const_cast<void*>(buffer->data),
                           static_cast<Py_ssize_t>(buffer->bytes), 1, flags);
}
PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

std::int64_t bytes_of(char format, std::int64_t rows) {
  switch (format) {
    case 'l':
    case 'g':
      return 8 * rows;
    case 'I':
    case 'i':
      return 4 * rows;
    default:  // 'b': bits
      return (rows + 7) / 8;
  }
}

class Stream {
 public:
  Stream() = default;
  ~Stream() {
    if (stream_.release != nullptr) stream_.release(&stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] ArrowArrayStream* get() { return &stream_; }

  /// [(name, format, words or None)]; formats are those of the Arrow C data interface.
  nb::list schema() {
    ArrowSchema schema{};
    check(stream_.get_schema(&stream_, &schema));
    nb::list columns;
    formats_.clear();
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
      const ArrowSchema& child = *schema.children[i];
      formats_ += child.format[0];
      columns.append(nb::make_tuple(child.name, child.format, child.dictionary != nullptr));
    }
    schema.release(&schema);
    return columns;
  }

  /// (rows, [(values, offsets, validity, words)]) of the next batch; None at the end.
  nb::object next() {
    if (formats_.empty()) schema();
    auto held = std::make_shared<HeldArray>();
    int failed = 0;
    {
      const nb::gil_scoped_release others_run;
      failed = stream_.get_next(&stream_, &held->array);
    }
    check(failed);
    if (held->array.release == nullptr) return nb::none();
    const std::int64_t rows = held->array.length;
    nb::list columns;
    for (std::int64_t i = 0; i < held->array.n_children; ++i)
      columns.append(column(held, *held->array.children[i], formats_[static_cast<std::size_t>(i)], rows));
    return nb::make_tuple(rows, columns);
  }

  /// Transfers the stream to a capsule of the Arrow PyCapsule interface.
  nb::object capsule() {
    auto* moved = new ArrowArrayStream(stream_);
    stream_.release = nullptr;
    PyObject* made = PyCapsule_New(moved, "arrow_array_stream", [](PyObject* capsule) {
      auto* held = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
      if (held->release != nullptr) held->release(held);
      delete held;
    });
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  }

  nb::object schema_capsule() {
    auto* schema = new ArrowSchema{};
    if (stream_.get_schema(&stream_, schema) != 0) {
      delete schema;
      check(1);
    }
    PyObject* made = PyCapsule_New(schema, "arrow_schema", [](PyObject* capsule) {
      auto* held = static_cast<ArrowSchema*>(PyCapsule_GetPointer(capsule, "arrow_schema"));
      if (held->release != nullptr) held->release(held);
      delete held;
    });
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  }

 private:
  void check(int failed) {
    if (failed == 0) return;
    const char* text = stream_.get_last_error(&stream_);
    throw std::runtime_error(text != nullptr ? text : "the recording cannot be read");
  }

  static nb::object column(const std::shared_ptr<HeldArray>& held, const ArrowArray& array, char format,
                           std::int64_t rows) {
    const auto buffer = [&](const void* data, std::int64_t bytes) {
      return data == nullptr ? nb::object(nb::none()) : nb::cast(Buffer{held, data, bytes});
    };
    const nb::object validity = buffer(array.null_count == 0 ? nullptr : array.buffers[0], (rows + 7) / 8);
    if (format == 'u')
      return nb::make_tuple(characters(held, array, rows), offsets(held, array, rows), validity, nb::none());
    nb::object words = nb::none();
    if (array.dictionary != nullptr) {
      const std::int64_t count = array.dictionary->length;
      words =
          nb::make_tuple(characters(held, *array.dictionary, count), offsets(held, *array.dictionary, count));
    }
    return nb::make_tuple(buffer(array.buffers[1], bytes_of(format, rows)), nb::none(), validity, words);
  }
  static nb::object offsets(const std::shared_ptr<HeldArray>& held, const ArrowArray& array,
                            std::int64_t rows) {
    return nb::cast(Buffer{held, array.buffers[1], 4 * (rows + 1)});
  }
  static nb::object characters(const std::shared_ptr<HeldArray>& held, const ArrowArray& array,
                               std::int64_t rows) {
    return nb::cast(Buffer{held, array.buffers[2], static_cast<const std::int32_t*>(array.buffers[1])[rows]});
  }

  ArrowArrayStream stream_{};
  std::string formats_;  ///< the first character of each column's
};

class Recording {
 public:
  Recording(const std::string& path, bool check) {
    const nb::gil_scoped_release others_run;
    recording_ = shardscope_reader_open(path.c_str(), check ? 1 : 0);
    if (recording_ == nullptr) failed_ = shardscope_reader_error();
  }
  ~Recording() { close(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] std::string failed() const { return failed_; }
  [[nodiscard]] bool is_open() const { return recording_ != nullptr; }
  void close() { shardscope_reader_close(std::exchange(recording_, nullptr)); }

  std::string json(const std::string& what) {
    char* text = nullptr;
    {
      const nb::gil_scoped_release others_run;
      text = shardscope_reader_json(opened(), what.c_str());
    }
    if (text == nullptr) raise();
    std::string out = text;
    shardscope_reader_free(text);
    return out;
  }

  Stream* stream(const std::string& table, const std::vector<std::uint32_t>& ranks,
                 const std::vector<std::string>& kinds, const std::vector<std::uint32_t>& steps,
                 std::optional<std::int64_t> begin_ns, std::optional<std::int64_t> end_ns,
                 std::size_t batch_rows) {
    std::vector<const char*> names;
    for (const std::string& kind : kinds) names.push_back(kind.c_str());
    const shardscope_filter filter{ranks.data(),
                                   ranks.size(),
                                   names.data(),
                                   names.size(),
                                   steps.data(),
                                   steps.size(),
                                   begin_ns.value_or(std::numeric_limits<std::int64_t>::min()),
                                   end_ns.value_or(std::numeric_limits<std::int64_t>::max())};
    auto made = std::make_unique<Stream>();
    int failed = 0;
    {
      const nb::gil_scoped_release others_run;
      failed = shardscope_reader_stream(opened(), table.c_str(), &filter, batch_rows, made->get());
    }
    if (failed != 0) raise();
    return made.release();
  }

 private:
  shardscope_recording* opened() const {
    if (recording_ == nullptr) throw std::runtime_error("the recording is closed; open it again");
    return recording_;
  }
  shardscope_recording* recording_ = nullptr;
  std::string failed_;
};

}  // namespace

NB_MODULE(_reader, module) {
  nb::set_leak_warnings(false);  // a recording may be open when the process ends
  using namespace nb::literals;
  nb::class_<Buffer>(module, "Buffer", nb::type_slots(buffer_slots));
  nb::class_<Stream>(module, "Stream")
      .def("schema", &Stream::schema)
      .def("next", &Stream::next)
      .def("capsule", &Stream::capsule)
      .def("schema_capsule", &Stream::schema_capsule);
  nb::class_<Recording>(module, "Recording")
      .def(nb::init<const std::string&, bool>(), "path"_a, "check"_a)
      .def_prop_ro("failed", &Recording::failed)
      .def_prop_ro("is_open", &Recording::is_open)
      .def("close", &Recording::close)
      .def("json", &Recording::json)
      .def("stream", &Recording::stream, "table"_a, "ranks"_a, "kinds"_a, "steps"_a, "begin_ns"_a.none(),
           "end_ns"_a.none(), "batch_rows"_a);
}
