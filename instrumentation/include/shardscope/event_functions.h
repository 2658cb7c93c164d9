/* The events of Shardscope's C interface: one inline function for each kind, over shardscope_emit(). What
 * each event means, and when a runtime emits it, is in docs/events.md. Included by shardscope.h; include
 * that. */
#ifndef SHARDSCOPE_EVENT_FUNCTIONS_H
#define SHARDSCOPE_EVENT_FUNCTIONS_H

/* clang-format off */
/* written from event_kinds.def */
/* end of what is written */
/* clang-format on */

#endif
