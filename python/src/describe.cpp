#include "describe.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "abort_end.h"
#include "gpu_records.h"
#include "requests.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

void check(shardscope_status status) {
  if (status != SHARDSCOPE_OK) throw nb::value_error(shardscope_last_error());
}

/// Owns the run: destroying it ends the run.
class Run {
 public:
  Run(const std::string& run_id, const std::string& model, const std::string& device,
      const std::string& hardware, const std::string& versions, const std::string& config_json,
      std::uint32_t rank, std::uint32_t world, std::uint32_t local_world, std::int32_t stage,
      std::uint32_t param_bytes, std::uint32_t grad_bytes, std::uint32_t master_bytes,
      const std::string& framework, std::uint64_t records)
      : texts_{run_id, model, device, hardware, versions, config_json, framework} {
    info_.run_id = texts_[0].c_str();
    info_.model = texts_[1].c_str();
    info_.device = texts_[2].c_str();
    info_.hardware = texts_[3].c_str();
    info_.versions = texts_[4].c_str();
    info_.config_json = texts_[5].c_str();
    info_.framework = texts_[6].c_str();
    info_.records = records;
    info_.rank = rank;
    info_.world = world;
    info_.local_world = local_world;
    info_.stage = stage;
    info_.param_bytes = param_bytes;
    info_.grad_bytes = grad_bytes;
    info_.master_bytes = master_bytes;
    check(shardscope_run_create(&info_, &run_));
  }
  ~Run() { close(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// For a framework that shows later what it divides. Before the first status of a parameter.
  void set_stage(std::int32_t stage) {
    info_.stage = stage;
    check(shardscope_update_run(run_, &info_));
  }
  std::uint32_t add_model(const std::string& name) {
    shardscope_model model = SHARDSCOPE_MODEL_INIT;
    model.name = name.c_str();
    std::uint32_t id = 0;
    check(shardscope_add_model(run_, &model, &id));
    return id;
  }
  std::uint32_t add_module(std::uint32_t parent, const std::string& path, const std::string& type, bool hooks,
                           std::uint32_t model) {
    shardscope_module module = SHARDSCOPE_MODULE_INIT;
    module.parent = parent;
    module.path = path.c_str();
    module.type = type.c_str();
    module.hooks = hooks ? 1 : 0;
    module.model = model;
    std::uint32_t id = 0;
    check(shardscope_add_module(run_, &module, &id));
    return id;
  }
  std::uint32_t add_param(const std::string& name, const std::string& dtype,
                          const std::vector<std::int64_t>& shape, std::int64_t shard_elems,
                          std::int64_t padding_elems, bool persistent, bool trained) {
    shardscope_param param = SHARDSCOPE_PARAM_INIT;
    param.name = name.c_str();
    param.dtype = dtype.c_str();
    param.shape = shape.data();
    param.dims = shape.size();
    param.shard_elems = shard_elems;
    param.padding_elems = padding_elems;
    param.persistent = persistent ? 1 : 0;
    std::uint32_t id = 0;
    check(shardscope_add_param(run_, &param, &id));
    if (!trained) check(shardscope_freeze_param(run_, id));
    return id;
  }
  void use_param(std::uint32_t module, std::uint32_t param) {
    check(shardscope_use_param(run_, module, param));
  }
  void add_slice(std::uint32_t param, std::uint32_t rank, std::int64_t param_offset,
                 std::int64_t shard_offset, std::int64_t elems, std::int64_t padding_elems,
                 std::int64_t block_elems, std::int64_t stride_elems) {
    shardscope_slice slice = SHARDSCOPE_SLICE_INIT;
    slice.param = param;
    slice.rank = rank;
    slice.param_offset = param_offset;
    slice.shard_offset = shard_offset;
    slice.elems = elems;
    slice.padding_elems = padding_elems;
    slice.block_elems = block_elems;
    slice.stride_elems = stride_elems;
    check(shardscope_add_slice(run_, &slice));
  }
  std::uint32_t add_group(const std::string& name, std::int32_t purpose,
                          const std::vector<std::uint32_t>& ranks) {
    shardscope_group group = SHARDSCOPE_GROUP_INIT;
    group.name = name.c_str();
    group.purpose = purpose;
    group.ranks = ranks.data();
    group.count = ranks.size();
    std::uint32_t id = 0;
    check(shardscope_add_group(run_, &group, &id));
    return id;
  }
  void add_param_group(const std::string& name, double lr, double beta1, double beta2, double eps,
                       double weight_decay, const std::vector<std::uint32_t>& params) {
    shardscope_param_group group = SHARDSCOPE_PARAM_GROUP_INIT;
    group.name = name.c_str();
    group.lr = lr;
    group.beta1 = beta1;
    group.beta2 = beta2;
    group.eps = eps;
    group.weight_decay = weight_decay;
    group.params = params.data();
    group.count = params.size();
    check(shardscope_add_param_group(run_, &group));
  }
  void not_recorded(std::uint64_t what, const std::string& why) {
    info_.records &= ~what;
    check(shardscope_not_recorded(run_, what, why.c_str()));
  }
  void name_lane(std::uint8_t lane, const std::string& name) {
    check(shardscope_name_lane(run_, lane, name.c_str()));
  }
  std::uint32_t name_id(const std::string& name) {
    std::uint32_t id = 0;
    check(shardscope_name_id(run_, name.c_str(), &id));
    return id;
  }
  /// `wait`() is called at a gate that holds, on its thread. It must not raise and not call this library.
  void call_on_hold(nb::object wait) {
    static nb::object* waits = new nb::object;  // never destroyed: a gate may hold at the end of the process
    *waits = std::move(wait);
    check(shardscope_set_on_hold(
        run_,
        [](void* of) {
          const nb::gil_scoped_acquire held;
          try {
            (*static_cast<nb::object*>(of))();
          } catch (nb::python_error& error) {
            error.discard_as_unraisable("shardscope: waiting for the device");
          }
        },
        waits));
  }
  void answer_requests() { answer_requests_of(run_); }
  void record_gpu(std::uintptr_t compute) { record_gpu_of(run_, compute); }
  void sample_gpu(const std::string& pci_bus_id) { check(shardscope_set_gpu(run_, pci_bus_id.c_str())); }
  void publish() { check(shardscope_publish(run_)); }
  void start(const std::string& endpoint, std::int32_t detail, const std::string& key_file, double linger_s) {
    shardscope_options options = SHARDSCOPE_OPTIONS_INIT;
    options.endpoint = endpoint.c_str();
    options.detail = detail;
    options.key_file = key_file.c_str();
    options.linger_s = linger_s;
    check(shardscope_start(run_, &options));
    end_on_abort(run_);
  }
  void message(std::int32_t severity, const std::string& text) {
    check(shardscope_message(run_, severity, text.c_str()));
  }
  void finish(std::int32_t exit_code, const std::string& text) {
    check(shardscope_finish(run_, exit_code, text.c_str()));
  }
  /// Sends the remaining events and frees the run; further calls raise.
  void close() {
    shardscope_run* run = std::exchange(run_, nullptr);
    const nb::gil_scoped_release others_run;
    if (run != nullptr) end_no_more_on_abort();
    shardscope_run_destroy(run);
  }
  /// In a forked child: its threads do not exist there, and nothing may be joined or freed.
  void abandon() { run_ = nullptr; }
  std::uint64_t dropped() {
    shardscope_counts counts = SHARDSCOPE_COUNTS_INIT;
    check(shardscope_get_counts(run_, &counts));
    return counts.dropped;
  }
  std::uint64_t invalid() {
    shardscope_counts counts = SHARDSCOPE_COUNTS_INIT;
    check(shardscope_get_counts(run_, &counts));
    return counts.invalid;
  }

 private:
  std::array<std::string, 7> texts_;  ///< of info_
  shardscope_run_info info_ = SHARDSCOPE_RUN_INFO_INIT;
  shardscope_run* run_ = nullptr;
};

}  // namespace

void add_run(nb::module_& module) {
  using namespace nb::literals;
  module.def("keep", [](std::int32_t detail) { check(shardscope_keep(detail, 0)); });
  nb::class_<Run>(module, "Run")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&,
                    const std::string&, const std::string&, std::uint32_t, std::uint32_t, std::uint32_t,
                    std::int32_t, std::uint32_t, std::uint32_t, std::uint32_t, const std::string&,
                    std::uint64_t>(),
           "run_id"_a, "model"_a, "device"_a, "hardware"_a, "versions"_a, "config_json"_a, "rank"_a,
           "world"_a, "local_world"_a, "stage"_a, "param_bytes"_a, "grad_bytes"_a, "master_bytes"_a,
           "framework"_a, "records"_a)
      .def("set_stage", &Run::set_stage)
      .def("add_model", &Run::add_model)
      .def("add_module", &Run::add_module, "parent"_a, "path"_a, "type"_a, "hooks"_a, "model"_a = 0)
      .def("add_param", &Run::add_param, "name"_a, "dtype"_a, "shape"_a, "shard_elems"_a, "padding_elems"_a,
           "persistent"_a, "trained"_a)
      .def("use_param", &Run::use_param)
      .def("add_slice", &Run::add_slice, "param"_a, "rank"_a, "param_offset"_a, "shard_offset"_a, "elems"_a,
           "padding_elems"_a, "block_elems"_a = 0, "stride_elems"_a = 0)
      .def("add_group", &Run::add_group)
      .def("add_param_group", &Run::add_param_group, "name"_a, "lr"_a, "beta1"_a, "beta2"_a, "eps"_a,
           "weight_decay"_a, "params"_a)
      .def("not_recorded", &Run::not_recorded)
      .def("call_on_hold", &Run::call_on_hold)
      .def("answer_requests", &Run::answer_requests)
      .def("record_gpu", &Run::record_gpu)
      .def("sample_gpu", &Run::sample_gpu)
      .def("name_lane", &Run::name_lane)
      .def("name_id", &Run::name_id)
      .def("publish", &Run::publish)
      .def("start", &Run::start, "endpoint"_a, "detail"_a, "key_file"_a, "linger_s"_a)
      .def("message", &Run::message)
      .def("finish", &Run::finish)
      .def("close", &Run::close)
      .def("abandon", &Run::abandon)
      .def_prop_ro("dropped", &Run::dropped)
      .def_prop_ro("invalid", &Run::invalid);
}

}  // namespace shardscope::python
