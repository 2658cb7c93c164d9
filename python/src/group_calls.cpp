#include "group_calls.h"

#include <Python.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribute.h"
#include "collective_lane.h"
#include "parts.h"
#include "session.h"
#include "shardscope/shardscope.h"
#include "wrapper.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// First number of sends and receives, in the 24 bits of a group's numbers: they are numbered separately.
constexpr std::uint32_t kFirstTransfer = 0x800000;
/// First sequence of collectives in groups without a description.
constexpr std::uint32_t kFirstApart = 0xFF000000;

/// Collectives of one process group: before() records the issue and after() begins the span, if there is a
/// Work whose future gives its end (collectives.py). In C++ because a step of a sharded model mostly consists
/// of these; names of operations and types are Python objects, each looked up once.
class GroupCalls {
 public:
  /// `adapter`: its switch, and failed() for errors of a hook; `lanes`: number -> CollectiveLane;
  /// `op_of`(name) -> its number or None; `dtype_of`(dtype) -> its number; `capturing`() -> whether a CUDA
  /// graph is being captured; `no_future`(name): called if the exact end of such a call cannot be recorded.
  GroupCalls(SessionState& session, nb::object adapter, std::uint32_t ranks, nb::dict lanes, nb::object op_of,
             nb::object dtype_of, nb::object capturing, nb::object no_future)
      : session_(session),
        toggle_(adapter.attr("switch")),
        failed_(adapter.attr("failed")),
        ranks_(ranks),
        lanes_(std::move(lanes)),
        op_of_(std::move(op_of)),
        dtype_of_(std::move(dtype_of)),
        capturing_(std::move(capturing)),
        no_future_(std::move(no_future)) {
    shardscope_nccl_calls(SHARDSCOPE_NO_ID);  // after this call NCCL's plugin assigns no sequence numbers
  }

  /// Its id in the run's table of groups; none: all ranks, or not described.
  std::optional<std::uint32_t> number;
  /// Whether it is a group of some ranks without a description: its collectives are numbered separately,
  /// since ranks outside of it would otherwise number those of all ranks differently from then on.
  bool apart = false;
  /// The next call of after() is of a synchronous call, whatever its `async_op` is (collective_calls.py).
  bool synchronous = false;

  void before(nb::handle call) {
    shardscope_nccl_calls(SHARDSCOPE_NO_ID);  // after() does not run if a call raised
    if (!switch_is_on(toggle_.ptr()) || ranks_ < 2) return;
    if (!session_.started && !session_.keeping) return;
    guarded("register_pre_hook", [&] { issued(call); });
  }
  void after(nb::handle call) {
    const bool holds_caller = std::exchange(synchronous, false);
    const auto found = open_.find(op_id_.as<std::int64_t>(call));
    if (found == open_.end()) return;
    const Open opened = found->second;
    open_.erase(found);
    shardscope_nccl_calls(SHARDSCOPE_NO_ID);
    if (switch_is_on(toggle_.ptr()))
      guarded("register_post_hook", [&] { running(call, opened, holds_caller); });
  }

 private:
  /// State between the hook before a call and the one after it.
  struct Open {
    std::uint8_t lane;
    bool on_host;
    long name;  ///< torch's HookOpName
    Collective collective;
  };

  /// A failure turns the adapter off and is not rethrown.
  template <typename Body>
  void guarded(const char* hook, const Body& body) {
    try {
      body();
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
      (void)failed_(hook, error.value());
    } catch (const std::exception& error) {
      (void)failed_(hook, nb::borrow(PyExc_RuntimeError)(error.what()));
    }
  }

  void issued(nb::handle call) {
    const nb::object name = name_.of(call);
    const nb::object number_of_name = nb::steal(PyNumber_Long(name.ptr()));
    const std::optional<std::uint8_t> op = known(ops_, number_of_name, op_of_, name);
    if (!op) return;
    session_.poll();
    session_.issued();
    // The whole tensor is a gather's output, and a reduction's input.
    nb::object tensors = *op == SHARDSCOPE_ALL_GATHER ? output_tensors_.of(call) : input_tensors_.of(call);
    if (nb::len(tensors) == 0) tensors = input_tensors_.of(call);
    std::int64_t elems = 0, size = 0;
    std::uint8_t dtype = 0;
    bool on_host = true;
    bool first = true;
    for (const nb::handle tensor : tensors) {
      elems += nb::cast<std::int64_t>(numel_.call(tensor));
      if (!std::exchange(first, false)) continue;
      on_host = is_cpu_.is_true(tensor);
      if (!on_host && is_cuda_.is_true(tensor) && nb::cast<bool>(capturing_())) return;
      const ElementType& type = type_of(tensor);
      size = type.size;
      dtype = type.code;
    }
    const auto [sequence, code] = key(*op, dtype);
    auto lane = static_cast<std::uint8_t>(*op == SHARDSCOPE_ALL_GATHER || *op == SHARDSCOPE_BROADCAST
                                              ? SHARDSCOPE_LANE_GATHER
                                              : SHARDSCOPE_LANE_REDUCE);
    std::uint32_t owner = SHARDSCOPE_NO_ID;
    const Parts* parts = nullptr;
    nb::object whole;
    if (std::optional<Purpose>& purpose = session_.purpose; purpose) {
      lane = purpose->lane;
      owner = purpose->id;
      // The first collective of a gather or bucket has the parts; further ones only its id.
      whole = std::exchange(purpose->parts, nb::make_tuple());
      if (nb::len(whole) > 0) parts = &nb::cast<const Parts&>(whole);
    }
    if (*op == SHARDSCOPE_ALL_REDUCE) lane = session_.all_reduce_lane.value_or(lane);
    const std::size_t count = parts == nullptr ? 1 : parts->size();
    shardscope_collective_submitted(*op, sequence, owner, static_cast<std::uint32_t>(count), elems,
                                    elems * size);
    if (parts != nullptr) parts->in_collective(*op, sequence, size);
    open_[op_id_.as<std::int64_t>(call)] = {
        lane, on_host, nb::cast<long>(number_of_name), {*op, sequence, owner, code, elems, elems * size}};
    shardscope_nccl_calls(sequence);
  }

  void running(nb::handle call, Open opened, bool holds_caller) {
    const nb::object work = work_.of(call);
    // The call returns when the operation has ended.
    if (opened.on_host && (holds_caller || !async_op_.is_true(call)))
      opened.collective.code |= SHARDSCOPE_HOLDS_HOST;
    const nb::object future =
        opened.on_host && !without_future_.contains({opened.name, true}) ? future_of(work) : nb::none();
    if (future.is_none())
      opened.collective.code |= SHARDSCOPE_END_IS_BOUND;
    else
      opened.collective.future = future;
    const nb::object ended = nb::cast(lane_of(opened.lane).issue(opened.collective));
    if (!future.is_none()) {
      // Called by the thread that completes it; nothing waits.
      (void)add_done_callback_.call(future, ended);
    } else if (!work.is_none()) {
      // Once per name: torch's error has a backtrace, and takes longer than everything done here.
      if (without_future_.emplace(opened.name, opened.on_host).second) (void)no_future_(name_.of(call));
      // A synchronous call on host memory has returned before anything else can run.
      const bool returned = opened.on_host && !async_op_.is_true(call);
      std::shared_ptr<bool>& silent = silent_[opened.name];
      if (!silent) silent = std::make_shared<bool>(false);
      const bool known = returned && *silent && opened.collective.op == SHARDSCOPE_REDUCE_SCATTER;
      session_.wait_for({known ? nb::object(nb::none()) : work, ended, opened.on_host, returned, silent});
    }
  }

  /// The future of a Work on host memory. A device's Work is done when the operation has been queued: that is
  /// not its end.
  [[nodiscard]] nb::object future_of(nb::handle work) const {
    try {
      return get_future_.call(work);
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_AttributeError) || error.matches(PyExc_RuntimeError)) return nb::none();
      throw;
    }
  }

  /// (sequence, code) of the next operation: shardscope_group_sequence(), shardscope_group_code(). Sends and
  /// receives are numbered separately: only two ranks take part, and later collectives keep the same number
  /// on all ranks.
  std::pair<std::uint32_t, std::uint32_t> key(std::uint8_t op, std::uint8_t dtype) {
    std::uint32_t next = 0;
    if (op == SHARDSCOPE_SEND || op == SHARDSCOPE_RECEIVE)
      next = kFirstTransfer | (transfers_++ & (kFirstTransfer - 1));
    else if (number)
      next = collectives_++ & 0xFFFFFF;
    else
      next = apart ? kFirstApart | (session_.apart++ & 0xFFFFFF) : session_.sequence++;
    if (!number) return {next, shardscope_collective_code(dtype, SHARDSCOPE_SCOPE_WORLD, ranks_)};
    return {shardscope_group_sequence(*number, next), shardscope_group_code(dtype, *number)};
  }

  struct ElementType {
    nb::object dtype;
    std::uint8_t code;
    std::int64_t size;  ///< bytes
  };
  const ElementType& type_of(nb::handle tensor) {
    nb::object dtype = dtype_.of(tensor);
    for (const ElementType& known : types_)
      if (dtype.is(known.dtype)) return known;
    const nb::object code = dtype_of_(dtype);
    return types_.emplace_back(ElementType{
        std::move(dtype), code.is_none() ? std::uint8_t{SHARDSCOPE_OTHER_TYPE} : nb::cast<std::uint8_t>(code),
        nb::cast<std::int64_t>(element_size_.call(tensor))});
  }

  const CollectiveLane& lane_of(std::uint8_t number) {
    if (lane_ == nullptr || lane_->lane->number() != number)
      lane_ = &nb::cast<const CollectiveLane&>(lanes_[nb::int_(number)]);
    return *lane_;
  }

  /// Cached result of `ask`(thing) for this key.
  std::optional<std::uint8_t> known(nb::dict& table, nb::handle key, const nb::object& ask,
                                    nb::handle thing) {
    if (!key.is_valid()) throw nb::python_error();
    PyObject* found = PyDict_GetItemWithError(table.ptr(), key.ptr());
    if (found == nullptr) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      const nb::object answer = ask(thing);
      table[key] = answer;
      found = answer.ptr();
    }
    return found == Py_None ? std::nullopt : std::optional(nb::cast<std::uint8_t>(nb::handle(found)));
  }

  SessionState& session_;
  nb::object toggle_, failed_;
  std::uint32_t ranks_;
  nb::dict lanes_;
  nb::object op_of_, dtype_of_, capturing_, no_future_;
  nb::dict ops_;
  std::vector<ElementType> types_;               ///< that were seen: a few
  const CollectiveLane* lane_ = nullptr;         ///< of lanes_, the last one
  std::unordered_map<std::int64_t, Open> open_;  ///< by the operation's id
  /// (HookOpName, on the host) whose Work has no future in this group: its backends are consistent per name.
  std::set<std::pair<long, bool>> without_future_;
  std::unordered_map<long, std::shared_ptr<bool>> silent_;  ///< by HookOpName: Unfinished::silent
  std::uint32_t collectives_ = 0, transfers_ = 0;
  Attribute name_{"name"}, op_id_{"op_id"}, input_tensors_{"input_tensors"},
      output_tensors_{"output_tensors"}, async_op_{"async_op"}, work_{"work"}, numel_{"numel"},
      element_size_{"element_size"}, is_cpu_{"is_cpu"}, is_cuda_{"is_cuda"}, dtype_{"dtype"},
      get_future_{"get_future"}, add_done_callback_{"add_done_callback"};
};

}  // namespace

void add_group_calls(nb::module_& module) {
  nb::class_<GroupCalls>(module, "GroupCalls")
      .def(nb::init<SessionState&, nb::object, std::uint32_t, nb::dict, nb::object, nb::object, nb::object,
                    nb::object>())
      .def_rw("number", &GroupCalls::number, nb::arg().none())
      .def_rw("apart", &GroupCalls::apart)
      .def_rw("synchronous", &GroupCalls::synchronous)
      .def("before", &GroupCalls::before)
      .def("after", &GroupCalls::after);
}

}  // namespace shardscope::python
