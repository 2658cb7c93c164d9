// Follows the plans of the stage-3 scheduler as an engine would, with an account of its own of what memory
// holds, and asserts what must hold at every step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/plan/forward_stack.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::plan::testing_support {

class Account {
 public:
  Account(const ModelPlan& model, const SchedulerConfig& config, std::uint32_t world)
      : model_(model), config_(config), scheduler_(model, world, config) {}

  FetchScheduler& scheduler() { return scheduler_; }
  [[nodiscard]] std::string log() const { return log_.str(); }

  void begin() {
    const TraceMode mode = scheduler_.begin_iteration();
    log_ << "begin " << static_cast<int>(mode);
    const Drain& drain = scheduler_.drained();
    drained(drain.wait_for, drain.released);
    in_use_.clear();
  }

  void fetch(ModuleId module, Direction direction) {
    const FetchPlan plan =
        recomputes_ ? scheduler_.fetch_recomputed(module) : scheduler_.fetch(module, direction);
    if (plan.stop == PrefetchStop::offloaded) ++waiting_for_nvme_;
    if (plan.invalidated) {
      log_ << " invalidated@" << plan.invalidated->trace_step;
      ++invalidations_;
      drained(plan.invalidated->wait_for, plan.invalidated->released);
    }
    by_coordinator_ = true;
    take(plan);
    by_coordinator_ = false;
    in_use_[module] = scheduler_.params_of(module);
    for (const ParamId id : in_use_[module]) {
      EXPECT_TRUE(resident_.count(id) != 0 && waited_.count(gather_of_.at(id)) != 0)
          << model_.params[raw(id)].name << " is used before it is available";
      EXPECT_EQ(scheduler_.status(id), ParamStatus::available);
    }
    check_limit();
  }

  void use_external(ParamId param, ModuleId module) {
    take(scheduler_.fetch_external(param, module));
    EXPECT_TRUE(resident_.count(param) != 0 && waited_.count(gather_of_.at(param)) != 0);
    if (config_.compat == Compat::shardscope) in_use_[module].push_back(param);
    check_limit();
  }

  void return_param(ParamId param, ModuleId module) {
    const ReturnPlan plan = scheduler_.return_param(param, module, stack_.around());
    take(plan.fetch);
    const bool default_recompute = config_.compat == Compat::shardscope && stack_.around().empty();
    EXPECT_EQ(plan.holder == kNone<ModuleId>, default_recompute);
    if (plan.holder == kNone<ModuleId>) return;
    EXPECT_EQ(scheduler_.status(param), ParamStatus::available);
    if (stack_.around().empty()) return;
    in_use_[module].erase(std::remove(in_use_[module].begin(), in_use_[module].end(), param),
                          in_use_[module].end());
    in_use_[plan.holder].push_back(param);  // until that module's release, whatever the one inside does
    check_limit();
  }

  void release(ModuleId module, Direction direction) {
    in_use_.erase(module);
    const ReleasePlan plan =
        recomputes_ ? scheduler_.release_recomputed(module) : scheduler_.release(module, direction);
    freed(plan.released);
    std::set<ParamId> decided(plan.released.begin(), plan.released.end());
    for (const Kept& kept : plan.kept) EXPECT_TRUE(decided.insert(kept.param).second) << "decided twice";
    for (const ParamId id : scheduler_.params_of(module)) EXPECT_EQ(decided.count(id), 1U);
    log_ << " available " << plan.available_elems;
  }

  void end_backward() {
    in_use_.clear();
    freed(scheduler_.release_leftovers());
  }

  void step(WeightChange change = WeightChange::trainable) {
    in_use_.clear();
    const bool exact = config_.compat != Compat::shardscope;
    for (const GatherId id : scheduler_.in_flight_gathers()) waited_.insert(id);
    freed(scheduler_.begin_update());
    EXPECT_EQ(issued_, waited_) << "a gather without a wait";
    buffered_.clear();  // the optimizer makes every copy out of date
    for (const ParamId id : resident_) {
      EXPECT_TRUE(!exact && scheduler_.persistent(id)) << "the optimizer step needs it partitioned";
    }
    freed(scheduler_.end_update(change));
    for (const ParamId id : resident_) {
      const bool changed = change == WeightChange::all ||
                           (change == WeightChange::trainable && model_.params[raw(id)].trainable);
      EXPECT_FALSE(changed) << model_.params[raw(id)].name << " is whole with old values";
    }
    if (exact && change == WeightChange::none) return;  // DeepSpeed's skipped step
    const Gather gather = scheduler_.gather_persistent();
    issue(gather);
    if (gather.id != kNone<GatherId>) waited_.insert(gather.id);
    for (const ParamPlan& param : model_.params) {
      EXPECT_EQ(scheduler_.status(param.id) == ParamStatus::available, scheduler_.persistent(param.id));
    }
  }

  void run(const std::vector<Visit>& visits) {
    for (const Visit& visit : visits) {
      switch (visit.kind) {
        case VisitKind::pre_forward:
          stack_.enter(visit.module);
          fetch(visit.module, Direction::forward);
          break;
        case VisitKind::return_param:
          return_param(visit.param, visit.module);
          break;
        case VisitKind::post_forward:
          stack_.leave();
          release(visit.module, Direction::forward);
          break;
        case VisitKind::pre_backward:
          fetch(visit.module, Direction::backward);
          break;
        case VisitKind::post_backward:
          release(visit.module, Direction::backward);
          break;
        case VisitKind::use_external:
          use_external(visit.param, visit.module);
          break;
        case VisitKind::begin_recompute:
        case VisitKind::end_recompute:
          recomputes_ = visit.kind == VisitKind::begin_recompute;
          break;
      }
    }
  }

  [[nodiscard]] int invalidations() const { return invalidations_; }
  [[nodiscard]] int on_demand() const { return on_demand_; }
  [[nodiscard]] int prefetched() const { return prefetched_; }
  [[nodiscard]] int read_ahead() const { return read_ahead_; }
  [[nodiscard]] int waiting_for_nvme() const { return waiting_for_nvme_; }
  [[nodiscard]] int prefetched_from_nvme() const { return prefetched_from_nvme_; }
  /// Shards of `params` that are on NVMe and in no host buffer.
  [[nodiscard]] std::size_t unbuffered(const std::vector<ParamId>& params) const {
    return static_cast<std::size_t>(std::count_if(params.begin(), params.end(), [this](ParamId id) {
      return on_nvme(id) && buffered_.count(id) == 0;
    }));
  }
  [[nodiscard]] std::size_t free_buffers() const { return config_.swap_buffers - buffered_.size(); }
  [[nodiscard]] std::string take_log() {
    std::string text = log_.str();
    log_.str("");
    return text;
  }

 private:
  [[nodiscard]] std::int64_t sum(const std::vector<ParamId>& params) const {
    std::int64_t elems = 0;
    for (const ParamId id : params) elems += model_.params[raw(id)].elems;
    return elems;
  }

  void issue(const Gather& gather) {
    if (gather.id == kNone<GatherId>) {
      EXPECT_TRUE(gather.params.empty());
      return;
    }
    EXPECT_FALSE(gather.params.empty());
    EXPECT_TRUE(issued_.insert(gather.id).second) << "two gathers with one id";
    EXPECT_TRUE(std::is_sorted(gather.params.begin(), gather.params.end()));
    EXPECT_EQ(gather.elems, sum(gather.params));
    log_ << " gather";
    for (const ParamId id : gather.params) {
      EXPECT_TRUE(resident_.insert(id).second) << "gathered although it is there";
      gather_of_[id] = gather.id;
      log_ << ' ' << raw(id);
      if (!on_nvme(id)) continue;
      if (config_.compat == Compat::shardscope) {
        buffered_.erase(id);  // copied to the device; what was not read ahead takes the reserved buffer
      } else {
        buffered_.insert(id);
        EXPECT_LE(buffered_.size(), config_.swap_buffers) << "more buffers than there are";
      }
    }
    // Only DeepSpeed's coordinator returns the buffers of persistent parameters.
    for (const ParamId id : gather.params) {
      if (by_coordinator_ && scheduler_.persistent(id)) buffered_.erase(id);
    }
  }

  [[nodiscard]] bool on_nvme(ParamId id) const {
    return !config_.on_nvme.empty() && config_.on_nvme[raw(id)];
  }

  /// C8, C12: a prefetch takes no shard that is on NVMe alone; what is read ahead is there and in no buffer
  /// yet, and finds one free, with the default one less for what a gather misses. The default reads nothing
  /// that is gathered, so that every buffer ends in a gather.
  void check_read_ahead(const FetchPlan& plan) {
    const std::uint32_t reserved = config_.compat == Compat::shardscope ? 1 : 0;
    if (scheduler_.mode() != TraceMode::complete || config_.prefetch_bucket_elems == 0) {
      EXPECT_TRUE(plan.read_ahead.empty());
    }
    std::set<ParamId> used_later;
    for (auto step = static_cast<std::size_t>(plan.trace_step); step < scheduler_.trace().size(); ++step) {
      const std::vector<ParamId>& params = scheduler_.params_of(scheduler_.trace()[step]);
      used_later.insert(params.begin(), params.end());
    }
    for (const ParamId id : plan.read_ahead) {
      EXPECT_TRUE(on_nvme(id));
      EXPECT_TRUE(buffered_.insert(id).second) << "read ahead although it is in a buffer";
      EXPECT_EQ(used_later.count(id), 1U) << "read ahead without a later use";
      if (config_.compat == Compat::shardscope) {
        EXPECT_EQ(resident_.count(id), 0U) << "read ahead although it is gathered";
      }
      log_ << " read " << raw(id);
    }
    if (!plan.read_ahead.empty()) {
      EXPECT_LE(buffered_.size() + reserved, config_.swap_buffers);
    }
    read_ahead_ += static_cast<int>(plan.read_ahead.size());
  }

  void take(const FetchPlan& plan) {
    issue(plan.gather);
    on_demand_ += plan.gather.id != kNone<GatherId> ? 1 : 0;
    for (const GatherId id : plan.wait_for) {
      EXPECT_TRUE(issued_.count(id) != 0);
      EXPECT_TRUE(waited_.insert(id).second) << "waited for twice";
    }
    for (const ParamId id : plan.completed) EXPECT_TRUE(waited_.count(gather_of_.at(id)) != 0);
    if (plan.prefetch.id != kNone<GatherId>) check_prefetch(plan);
    EXPECT_EQ(unbuffered(plan.prefetch.params), 0U) << "prefetched from NVMe without a buffer";
    for (const ParamId id : plan.prefetch.params) prefetched_from_nvme_ += on_nvme(id) ? 1 : 0;
    issue(plan.prefetch);
    check_read_ahead(plan);
    prefetched_ += plan.prefetch.id != kNone<GatherId> ? 1 : 0;
    if (plan.stop == PrefetchStop::no_trace || plan.stop == PrefetchStop::disabled) {
      EXPECT_EQ(plan.prefetch.id, kNone<GatherId>);
    }
    log_ << " stop " << static_cast<int>(plan.stop) << " available " << plan.available_elems << '\n';
  }

  void freed(const std::vector<ParamId>& params) {
    for (const ParamId id : params) {
      EXPECT_EQ(resident_.erase(id), 1U) << "freed although it is not there";
      if (config_.compat != Compat::shardscope) buffered_.erase(id);
      EXPECT_TRUE(waited_.count(gather_of_.at(id)) != 0) << "freed while its gather is under way";
      for (const auto& [module, used] : in_use_) {
        EXPECT_TRUE(std::find(used.begin(), used.end(), id) == used.end())
            << model_.params[raw(id)].name << " is freed while module " << raw(module) << " uses it";
      }
      log_ << " free " << raw(id);
    }
  }

  void drained(const std::vector<GatherId>& wait_for, const std::vector<ParamId>& released) {
    for (const GatherId id : wait_for) EXPECT_TRUE(waited_.insert(id).second);
    freed(released);
  }

  /// Ours stays within the limit. DeepSpeed's may pass the limit, or its bucket, by its last parameter (C8).
  void check_prefetch(const FetchPlan& plan) {
    std::int64_t largest = 0;
    std::int64_t counted = 0;
    for (const ParamId id : plan.prefetch.params) {
      const std::int64_t elems = model_.params[raw(id)].elems;
      largest = std::max(largest, elems);
      counted += scheduler_.persistent(id) ? 0 : elems;
    }
    EXPECT_LT(plan.prefetch.elems - largest, config_.prefetch_bucket_elems);
    if (config_.compat != Compat::shardscope) {
      EXPECT_LT(plan.available_elems - largest, config_.max_live_elems);
    } else if (counted > 0) {
      EXPECT_LE(plan.available_elems, config_.max_live_elems);
    }
  }

  /// The documented bound of the default: the limit and what running modules need.
  void check_limit() {
    std::int64_t resident = 0;
    std::int64_t counted = 0;
    for (const ParamId id : resident_) {
      const std::int64_t elems = model_.params[raw(id)].elems;
      resident += elems;
      counted += scheduler_.persistent(id) ? 0 : elems;
    }
    EXPECT_EQ(scheduler_.resident_elems(), resident);
    if (config_.compat != Compat::shardscope) return;
    EXPECT_EQ(scheduler_.available_elems(), counted) << "the counter is not the truth";
    std::set<ParamId> running;
    for (const auto& [module, used] : in_use_) running.insert(used.begin(), used.end());
    EXPECT_LE(counted, config_.max_live_elems + sum({running.begin(), running.end()}));
  }

  const ModelPlan& model_;
  SchedulerConfig config_;
  FetchScheduler scheduler_;
  ForwardStack stack_;
  std::set<ParamId> resident_;
  std::map<ParamId, GatherId> gather_of_;
  std::set<GatherId> issued_;
  std::set<GatherId> waited_;
  std::map<ModuleId, std::vector<ParamId>> in_use_;
  std::ostringstream log_;
  bool recomputes_ = false, by_coordinator_ = false;
  int invalidations_ = 0;
  int on_demand_ = 0;
  int prefetched_ = 0;
  std::set<ParamId> buffered_;  ///< shards on NVMe with a copy in a host buffer
  int read_ahead_ = 0;
  int waiting_for_nvme_ = 0;
  int prefetched_from_nvme_ = 0;
};

}  // namespace shardscope::plan::testing_support
