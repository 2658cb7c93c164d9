/* The events of Shardscope's C interface: one inline function per kind, on top of shardscope_emit().
 * docs/events.md describes each event and when a runtime emits it. Included by shardscope.h; include that. */
#ifndef SHARDSCOPE_EVENTS_H
#define SHARDSCOPE_EVENTS_H

#include <string.h>

#ifndef SHARDSCOPE_SHARDSCOPE_H
#include "shardscope/shardscope.h"
#endif

#include "shardscope/event_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* event_functions.h has one function for each kind and is generated from the library's table of kinds; this
 * file has what they call, and shorter forms. The kinds gate, paused_begin, paused_end, message and
 * detail_changed have none: the library emits them itself (shardscope_gate, shardscope_message). For
 * timestamps taken elsewhere fill in a shardscope_event and call shardscope_emit_at(), as the functions of
 * GPU records do. */

static inline void shardscope_record_(uint16_t kind, uint8_t lane, uint8_t code, uint32_t a, uint32_t b,
                                      uint32_t c, int64_t v0, int64_t v1) {
  shardscope_event event;
  event.kind = kind;
  event.lane = lane;
  event.code = code;
  event.a = a;
  event.b = b;
  event.c = c;
  event.v0 = v0;
  event.v1 = v1;
  shardscope_emit(&event);
}
static inline void shardscope_record_at_(int64_t monotonic_ns, uint16_t kind, uint8_t lane, uint8_t code,
                                         uint32_t a, uint32_t b, uint32_t c, int64_t v0, int64_t v1) {
  const shardscope_event event = {kind, lane, code, a, b, c, v0, v1};
  shardscope_emit_at(monotonic_ns, &event);
}
static inline int64_t shardscope_bits_(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#include "shardscope/event_functions.h"

/* ---- shorter forms ------------------------------------------------------------------------------------ */

/* A collective among all ranks. `parts` is recorded by shardscope_collective_submitted(), not here. */
static inline void shardscope_collective_begin(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                               uint32_t parts, int64_t elems, int64_t bytes) {
  (void)parts;
  shardscope_collective_begin_among(lane, op, sequence, group, SHARDSCOPE_NO_ID, elems, bytes);
}
static inline void shardscope_collective_end(uint8_t lane, uint8_t op, uint32_t sequence, uint32_t group,
                                             uint32_t dtype, int64_t elems, int64_t bytes) {
  shardscope_collective_end_among(lane, op, sequence, group,
                                  shardscope_collective_code((uint8_t)dtype, SHARDSCOPE_SCOPE_WORLD, 0),
                                  elems, bytes);
}
/* The same without the trace's length; if no module was expected, the trace was too short. */
static inline void shardscope_trace_invalidated(uint32_t expected_module, uint32_t got_module,
                                                uint32_t trace_step) {
  shardscope_trace_invalidated_by(expected_module == SHARDSCOPE_NO_ID ? SHARDSCOPE_INVALIDATED_TRACE_TOO_SHORT
                                                                      : SHARDSCOPE_INVALIDATED_MODULE_DIFFERS,
                                  expected_module, got_module, trace_step, 0);
}
/* The same if the cause is unknown. */
static inline void shardscope_columns_selected(uint32_t param, uint32_t step, uint32_t columns,
                                               int64_t elems_chosen, int64_t elems_of_rank) {
  shardscope_columns_selected_because(SHARDSCOPE_SELECTION_NOT_RECORDED, param, step, columns, elems_chosen,
                                      elems_of_rank);
}
/* The same if the cause is unknown. */
static inline void shardscope_deferred_update(uint8_t state, uint32_t step, uint32_t steps_summed,
                                              int64_t elems) {
  shardscope_deferred_update_because(state, SHARDSCOPE_NO_ID, step, steps_summed, elems);
}

#ifdef __cplusplus
}
#endif

#endif
