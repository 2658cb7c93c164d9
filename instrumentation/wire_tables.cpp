// Decodes the tables of a run: each list is bounded before it is read; the result is checked as a whole.
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "instrumentation/table_checks.h"
#include "instrumentation/wire_bodies.h"
#include "instrumentation/wire_values.h"

namespace shardscope::instrumentation::wire {

namespace {

/// Decodes the fields of a rank that are not lists common to all ranks.
void take_own(const fb::Tables& t, RunTables& r) {
  // A text that is too long is an error and is not cut, so that what is shown is what was sent.
  r.framework = text_of(t.framework(), kMaxText, "framework");
  r.records = t.records();
  // Each list is bounded before it is read: a decoded entry takes much more memory than its few bytes in the
  // frame.
  if (t.not_recorded() != nullptr) {
    require(t.not_recorded()->size() <= kMaxNotRecorded, "more reasons than supported");
    for (const fb::NotRecorded* lack : *t.not_recorded())
      r.not_recorded.push_back({lack->what(), text_of(lack->why(), kMaxText, "reason")});
  }
  // A list that is absent is empty.
  if (t.models() != nullptr) {
    require(t.models()->size() <= kMaxModels, "more models than supported");
    for (const fb::Model* m : *t.models()) {
      r.models.push_back(
          {m->id(), text_of(m->name(), kMaxText, "model"), text_of(m->role(), kMaxName, "role")});
    }
  }
  if (t.groups() != nullptr) {
    require(t.groups()->size() <= kMaxGroups, "more groups than supported");
    for (const fb::Group* g : *t.groups()) {
      r.groups.push_back({g->id(), text_of(g->name(), kMaxText, "group"),
                          enum_of(g->purpose(), GroupPurpose::expert, "purpose of a group out of range"),
                          ids_of(g->ranks())});
    }
  }
  if (t.lanes() != nullptr) {
    require(t.lanes()->size() <= kStreamCount, "more lanes than there are");
    for (const fb::LaneName* lane : *t.lanes()) {
      // Before the cast to StreamId, which is an index into arrays of this length.
      require(lane->lane() < kStreamCount, "lane out of range");
      r.lanes.push_back({static_cast<StreamId>(lane->lane()), text_of(lane->name(), kMaxName, "lane")});
    }
  }
  if (t.param_groups() != nullptr) {
    require(t.param_groups()->size() <= kMaxParamGroups, "more parameter groups than supported");
    for (const fb::ParamGroup* g : *t.param_groups()) {
      r.param_groups.push_back({text_of(g->name(), kMaxName, "parameter group"), g->lr(), g->beta1(),
                                g->beta2(), g->eps(), g->weight_decay(), ids_of(g->params())});
    }
  }
  // After the slices, to which they refer. Several for one slice are harmless: the last one counts.
  if (t.strides() != nullptr) {
    for (std::size_t i = 0; i < t.strides()->size(); ++i) {
      fb::Stride s;
      std::memcpy(static_cast<void*>(&s), t.strides()->Data() + i * sizeof s, sizeof s);
      require(s.slice() < r.slices.size(), "a stride is of no slice");
      r.slices[s.slice()].block_elems = s.block_elems();
      r.slices[s.slice()].stride_elems = s.stride_elems();
    }
  }
}

}  // namespace

// Order matters only where a list refers to an earlier one (strides to slices). References by id between
// lists are checked at the end, when all of them are there.
Tables tables_of(const fb::Tables& t, const Header& header) {
  Tables out;
  RunTables& r = out.tables;
  // A frame has one run and one rank, those of its header.
  r.run_id = header.run_id;
  r.rank = header.rank;
  r.world = t.world();
  r.local_world = t.local_world();
  r.stage = t.stage();
  r.pid = t.pid();
  r.elems = t.elems();
  r.param_bytes = t.param_bytes();
  r.grad_bytes = t.grad_bytes();
  r.master_bytes = t.master_bytes();
  // Numbers are copied as they are and checked together by validate(), which the reader of recordings
  // shares.
  r.link_gbps = t.link_gbps();
  r.link_latency_us = t.link_latency_us();
  r.simulated = t.simulated();
  r.model = text_of(t.model(), kMaxText, "model");
  r.device = text_of(t.device(), kMaxText, "device");
  r.hardware = text_of(t.hardware(), kMaxText, "hardware");
  r.versions = text_of(t.versions(), kMaxText, "versions");
  r.config_json = text_of(t.config_json(), kMaxConfig, "configuration");
  r.host = text_of(t.host(), kMaxName, "host");
  const std::size_t modules = t.modules() != nullptr ? t.modules()->size() : 0;
  const std::size_t params = t.params() != nullptr ? t.params()->size() : 0;
  // Before reserve(), which would otherwise allocate for a false count.
  require(modules <= kMaxModules, "more modules than supported");
  require(params <= kMaxParams, "more parameters than supported");
  // Ids are the positions in the lists; validate() checks that.
  r.modules.reserve(modules);
  for (std::size_t i = 0; i < modules; ++i) {
    const fb::Module* m = t.modules()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ModuleInfo info{m->id(),
                    m->parent(),
                    text_of(m->path(), kMaxText, "module path"),
                    text_of(m->type(), kMaxName, "module type"),
                    ids_of(m->params()),
                    m->hooks(),
                    m->model()};
    r.modules.push_back(std::move(info));
  }
  r.params.reserve(params);
  for (std::size_t i = 0; i < params; ++i) {
    const fb::Param* p = t.params()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ParamInfo info;
    info.id = p->id();
    info.name = text_of(p->name(), kMaxText, "parameter name");
    info.dtype = text_of(p->dtype(), kMaxName, "dtype");
    if (p->shape() != nullptr && p->shape()->size() != 0) {
      require(p->shape()->size() <= 16, "a parameter has more than 16 dimensions");
      // The verifier checks the size, not the alignment, of a vector's elements. At most 16 numbers: not
      // charged to the budget.
      info.shape.resize(p->shape()->size());
      std::memcpy(info.shape.data(), p->shape()->Data(), info.shape.size() * sizeof(std::int64_t));
    }
    info.elems = p->elems();
    info.shard_elems = p->shard_elems();
    info.padding_elems = p->padding_elems();
    info.modules = ids_of(p->modules());
    info.persistent = p->persistent();
    info.frozen = p->frozen();
    r.params.push_back(std::move(info));
  }
  if (t.slices() != nullptr) {
    // The verifier has checked that this number of structs is in the frame: 40 bytes each there, 56
    // here.
    r.slices.reserve(t.slices()->size());
    for (std::size_t i = 0; i < t.slices()->size(); ++i) {
      // Copied because of alignment, as the shapes above.
      fb::Slice s;
      std::memcpy(static_cast<void*>(&s), t.slices()->Data() + i * sizeof s, sizeof s);
      r.slices.push_back(
          {s.param(), s.rank(), s.param_offset(), s.shard_offset(), s.elems(), s.padding_elems(), 0, 0});
    }
  }
  take_own(t, r);
  // Last: it compares lists with each other.
  if (const char* wrong = validate(r)) throw BadValue(wrong);
  return out;
}

}  // namespace shardscope::instrumentation::wire
