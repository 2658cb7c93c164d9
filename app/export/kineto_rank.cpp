#include "app/export/kineto_rank.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>
#include <tuple>

#include "app/analysis/communication.h"
#include "app/export/json_text.h"
#include "app/export/kineto_work.h"
#include "app/store/gap_text.h"
#include "app/store/lane_name.h"
#include "app/store/names.h"
#include "instrumentation/event_fields.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using analysis::StepWindow;
using ev::EventKind;
using ev::StreamId;
using store::Store;

constexpr std::size_t kRankFlushBytes = 1U << 16;
constexpr int kMainThread = 1, kNotesThread = 2;

/// Stream numbers as in PyTorch's traces: computation on 7; HTA requires numbers above 0.
int number_of(StreamId stream) noexcept {
  return stream == StreamId::compute ? 7 : 10 + static_cast<int>(stream);
}

/// Names of collectives in PyTorch's kernel arguments.
const char* torch_name(ev::CollectiveOp op) {
  switch (op) {
    case ev::CollectiveOp::all_gather:
      return "_allgather_base";
    case ev::CollectiveOp::reduce_scatter:
      return "_reduce_scatter_base";
    case ev::CollectiveOp::all_reduce:
      return "allreduce";
    case ev::CollectiveOp::all_to_all:
      return "all_to_allv";
    case ev::CollectiveOp::receive:
      return "recv";
    default:
      return store::name_of(op);
  }
}

const char* torch_type(std::uint8_t type) {
  switch (static_cast<ev::ElementType>(type)) {
    case ev::ElementType::f32:
      return "Float";
    case ev::ElementType::bf16:
      return "BFloat16";
    case ev::ElementType::f16:
      return "Half";
    case ev::ElementType::i8:
      return "Char";
    case ev::ElementType::f64:
      return "Double";
    case ev::ElementType::u8:
      return "Byte";
    case ev::ElementType::i16:
      return "Short";
    case ev::ElementType::i32:
      return "Int";
    case ev::ElementType::i64:
      return "Long";
    case ev::ElementType::boolean:
      return "Bool";
    default:
      return nullptr;
  }
}

class KinetoWriter {
 public:
  KinetoWriter(std::ostream& out, const Store& store, std::uint32_t rank)
      : out_(out), store_(store), rank_(rank) {}

  void write(const std::vector<StepWindow>& steps) {
    for (const store::RankRow& row : store_.ranks()) {
      if (row.rank == rank_) row_ = row;
    }
    // In a container a process id can equal a rank, and thus the id of a device; a simulated run has no
    // process ids.
    const std::int64_t devices = std::max<std::int64_t>(store_.tables().world, std::int64_t{rank_} + 1);
    host_ = row_.pid >= devices ? row_.pid : 100'000 + static_cast<std::int64_t>(rank_);
    header();
    name_process();
    for (const StepWindow& window : steps) step(window);
    write_messages();
    text_ += "\n]}\n";
    flush();
  }

 private:
  /// HTA searches for `"rank": N`, with a space, line by line until it finds it: it belongs at the top.
  void header() {
    const ev::RunTables& run = store_.tables();
    text_ += "{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\"backend\": \"";
    text_ += run.device == "cuda" ? "nccl" : "mpi";
    text_ +=
        "\", \"rank\": " + std::to_string(rank_) + ", \"world_size\": " + std::to_string(run.world) + "},\n";
    text_ += "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": " + std::to_string(store_.origin_ns());
    text_ += ",\n\"traceName\": ";
    append_json(text_, run.run_id);
    text_ += ",\n\"shardscope\": {\"model\": ";
    append_json(text_, run.model);
    text_ += ", \"zero_stage\": " + std::to_string(run.stage) +
             ", \"simulated\": " + (run.simulated ? "true" : "false") + ", \"emulated_link_gbps\": ";
    if (!append_json(text_, run.link_gbps)) text_ += "0";
    text_ += ", \"dropped_events\": " + std::to_string(row_.dropped) + "},\n\"traceEvents\": [";
  }

  void open(const char* phase, std::string_view name, const char* category, std::int64_t pid, int tid,
            std::int64_t ns) {
    text_ += first_ ? "\n{\"ph\": \"" : ",\n{\"ph\": \"";
    first_ = false;
    text_ += phase;
    text_ += '"';
    if (*category != '\0') {
      text_ += ", \"cat\": \"";
      text_ += category;
      text_ += '"';
    }
    text_ += ", \"name\": ";
    append_json(text_, name);
    text_ += ", \"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid) + ", \"ts\": ";
    append_us(text_, ns);
  }
  void complete(std::string_view name, const char* category, std::int64_t pid, int tid, std::int64_t begin_ns,
                std::int64_t end_ns) {
    open("X", name, category, pid, tid, begin_ns);
    text_ += ", \"dur\": ";
    append_us(text_, end_ns - begin_ns);
  }
  void close() {
    text_ += '}';
    if (text_.size() > kRankFlushBytes) flush();
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
    if (!out_) throw std::runtime_error("Kineto trace: cannot write it; the disk may be full");
  }
  void key(const char* key) {
    text_ += text_.back() == '{' ? "\"" : ", \"";
    text_ += key;
    text_ += "\": ";
  }
  void argument(const char* name, std::int64_t value) {
    key(name);
    text_ += std::to_string(value);
  }
  void argument(const char* name, std::string_view value) {
    key(name);
    append_json(text_, value);
  }

  void metadata(const char* what, std::int64_t pid, int tid, const char* argument_name,
                std::string_view value) {
    open("M", what, "", pid, tid, 0);
    text_ += ", \"args\": {";
    argument(argument_name, value);
    text_ += '}';
    close();
  }
  void sort_index(const char* what, std::int64_t pid, int tid, std::int64_t value) {
    open("M", what, "", pid, tid, 0);
    text_ += ", \"args\": {";
    argument("sort_index", value);
    text_ += '}';
    close();
  }

  void name_process() {
    const std::string where = (row_.host.empty() ? "" : " on " + row_.host) +
                              std::string(store_.tables().simulated ? " (simulated)" : "");
    metadata("process_name", host_, 0, "name", "rank " + std::to_string(rank_) + where);
    metadata("process_labels", host_, 0, "labels", "CPU");
    sort_index("process_sort_index", host_, 0, 0);
    metadata("thread_name", host_, kMainThread, "name",
             "rank's thread; modules at times of the compute stream");
    metadata("thread_name", host_, kNotesThread, "name", "pauses, missing events");
    metadata("process_name", rank_, 0, "name", "rank " + std::to_string(rank_) + where);
    metadata("process_labels", rank_, 0, "labels", "GPU " + std::to_string(rank_));
    sort_index("process_sort_index", rank_, 0, 1);
  }

  void name_stream(StreamId stream) {
    if (!named_.insert(stream).second) return;
    const int number = number_of(stream);
    const std::string name = stream == StreamId::extra_1 ? "collectives of the compute stream"
                                                         : store::lane_name(store_, {rank_, stream});
    metadata("thread_name", rank_, number, "name", "stream " + std::to_string(number) + " " + name);
    sort_index("thread_sort_index", rank_, number, number);
  }

  void step(const StepWindow& window) {
    const StepWork done = work_of_step(store_, rank_, window);
    complete("ProfilerStep#" + std::to_string(window.step), "user_annotation", host_, kMainThread,
             window.begin_ns, window.end_ns);
    text_ += ", \"args\": {";
    argument("External id", ++external_);
    if (!done.known) argument("not_recorded", "what the rank computed");
    text_ += '}';
    close();
    notes("paused by the user", done.paused);
    notes("events are missing", done.missing);
    const std::int64_t first = external_ + 1;
    for (const NamedRange& range : done.ranges) {
      complete(range.name, "cpu_op", host_, kMainThread, range.begin_ns, range.end_ns);
      text_ += ", \"args\": {";
      argument("External id", ++external_);
      if (range.module != ev::kNoId) argument("module", range.module);
      text_ += '}';
      close();
    }
    for (const DeviceWork& work : done.work) {
      const std::int64_t owner = work.within ? first + static_cast<std::int64_t>(*work.within) : first - 1;
      device_work(work, owner);
    }
    std::erase_if(sized_, [&](const auto& one) { return one.second <= window.end_ns; });
  }

  void notes(const char* name, const analysis::IntervalSet& at) {
    for (const analysis::Interval& one : at.intervals()) {
      complete(name, "user_annotation", host_, kNotesThread, one.begin, one.end);
      close();
    }
  }

  /// Gaps of the rank, and messages of rank and collectors: a reader may have only this file.
  void write_messages() {
    const auto instant = [&](const std::string& text, std::int64_t at_ns) {
      open("i", text, "message", host_, kNotesThread, at_ns);
      text_ += ", \"s\": \"t\"";
      close();
    };
    for (const store::Gap& gap : store_.gaps()) {
      if (gap.rank == rank_) instant("missing: " + store::what_is_missing(gap), gap.begin_ns);
    }
    for (const store::Message& message : store_.messages()) {
      if (message.rank == rank_) instant(message.text, message.at_ns);
    }
  }

  /// The launch, its kernel or copy, and the flow between them. HTA ignores kernels without a launch in a
  /// step: an unrecorded launch is written at the kernel's begin, with an argument that states this.
  void device_work(const DeviceWork& work, std::int64_t owner) {
    name_stream(work.stream);
    const std::int64_t correlation = ++correlation_;
    const int stream = number_of(work.stream);
    const std::int64_t launch = work.launch_ns.value_or(work.begin_ns);
    const bool copies = work.kind == WorkClass::copy;
    complete(copies ? "cudaMemcpyAsync" : "cudaLaunchKernel", "cuda_runtime", host_, kMainThread, launch,
             launch);
    text_ += ", \"args\": {";
    argument("External id", owner);
    argument("correlation", correlation);
    if (!work.launch_ns) argument("launch", "not recorded: at the begin of what it launched");
    text_ += '}';
    close();
    complete(work.name, copies ? "gpu_memcpy" : "kernel", rank_, stream, work.begin_ns, work.end_ns);
    text_ += ", \"args\": {";
    argument("External id", owner);
    argument("correlation", correlation);
    argument("device", rank_);
    argument("context", 1);
    argument("stream", stream);
    span_arguments(work);
    text_ += '}';
    close();
    for (const bool begins : {true, false}) {
      open(begins ? "s" : "f", "ac2g", "ac2g", begins ? host_ : rank_, begins ? kMainThread : stream,
           begins ? launch : work.begin_ns);
      text_ += ", \"id\": " + std::to_string(correlation);
      if (!begins) text_ += ", \"bp\": \"e\"";
      close();
    }
  }

  void span_arguments(const DeviceWork& work) {
    if (!work.span) return;
    const store::Span& span = *work.span;
    switch (span.kind) {
      case EventKind::collective_begin:
        collective_arguments(work.stream, span);
        break;
      case EventKind::transfer_begin: {
        const std::int64_t bytes = ev::as<EventKind::transfer_begin>(span).bytes;
        argument("bytes", bytes);
        const bool whole = span.begin_ns == work.begin_ns && span.end_ns == work.end_ns;
        if (!whole) break;  // `bytes` are those of the whole copy
        key("memory bandwidth (GB/s)");
        if (!append_json(text_,
                         static_cast<double>(bytes) / static_cast<double>(work.end_ns - work.begin_ns)))
          text_ += "0";
        break;
      }
      case EventKind::gpu_begin: {
        const auto fields = ev::as<EventKind::gpu_begin>(span);
        argument("cuda_stream", fields.cuda_stream);
        argument(fields.work == ev::GpuWork::kernel ? "threads" : "bytes", fields.amount);
        break;
      }
      default:
        break;
    }
  }

  /// A pause or the end of a step splits a collective into several kernels: the first one has its elements.
  void collective_arguments(StreamId stream, const store::Span& span) {
    const auto fields = ev::as<EventKind::collective_begin>(span);
    const std::int64_t ranks = std::max<std::uint32_t>(analysis::ranks_of(store_, rank_, span), 1);
    const bool first = sized_.try_emplace({stream, span.begin_ns, fields.sequence}, span.end_ns).second;
    const std::int64_t elems = first ? fields.elems : 0, share = elems / ranks;
    argument("Collective name", torch_name(fields.op));
    argument("In msg nelems", fields.op == ev::CollectiveOp::all_gather ? share : elems);
    argument("Out msg nelems", fields.op == ev::CollectiveOp::reduce_scatter ? share : elems);
    if (!first) argument("continues", "elements are with its first part");
    argument("Group size", ranks);
    if (fields.code.known()) {
      if (const char* type = torch_type(fields.code.dtype())) argument("dtype", type);
    }
    const ev::GroupInfo* group = analysis::group_of(store_, rank_, span);
    argument("Process Group Name", group != nullptr ? std::to_string(group->id) : "0");
    argument("Process Group Description", group != nullptr ? std::string_view(group->name) : "default_pg");
    argument("Seq", fields.sequence);
    if (span.mark_ns != 0) {
      key("all_ranks_arrived_us");
      append_us(text_, span.mark_ns);
    }
  }

  std::ostream& out_;
  const Store& store_;
  std::uint32_t rank_;
  store::RankRow row_;
  std::int64_t host_ = 0;  ///< pid of the rank's process; the device's pid is the rank
  std::string text_;
  bool first_ = true;
  std::int64_t external_ = 0, correlation_ = 0;
  std::set<StreamId> named_;
  /// Collectives that continue in the next step and whose elements are written, with their ends: by stream,
  /// begin and sequence number.
  std::map<std::tuple<StreamId, std::int64_t, std::uint32_t>, std::int64_t> sized_;
};

}  // namespace

void write_kineto_steps(std::ostream& out, const Store& store, std::uint32_t rank,
                        const std::vector<StepWindow>& steps) {
  KinetoWriter(out, store, rank).write(steps);
}

}  // namespace shardscope::exporter
