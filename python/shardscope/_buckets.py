"""Buckets of gradients: opened with their first gradient, flushed for a reason, numbered as they open."""
from shardscope import _core, _kinds as k
from shardscope._session import NO_ID, session

emit = _core.emit


class Buckets:
    def __init__(self):
        self.open = {}  # key (element type) -> number
        self.trigger = NO_ID  # parameter whose gradient has just come
        self.epilogue = False

    def no_trigger(self):
        self.trigger = NO_ID

    def in_epilogue(self, yes):
        self.epilogue = yes

    def of(self, key, buffer=0):
        """The open bucket of this key; a new one where there is none."""
        number = self.open.get(key)
        if number is None:
            number = self.open[key] = session.buckets
            session.buckets += 1
            emit(k.BUCKET_OPEN, k.HOST, 0, number, NO_ID, buffer, 0, 0)
        return number

    def add(self, key, param, elems, bucket_elems, buffer=0):
        emit(k.BUCKET_ADD, k.HOST, 0, self.of(key, buffer), param, NO_ID, elems, bucket_elems)

    def flush(self, key, parts, elems, too_large, reason=None):
        """Gate, reason, and what the reduction that follows is for."""
        number = self.of(key)
        _core.gate(k.GATE_BUCKET, number)
        if reason is None:
            reason = k.EPILOGUE if self.epilogue else k.EXTRA_LARGE if too_large else \
                k.BOUNDARY if self.trigger == NO_ID else k.FULL
        emit(k.BUCKET_FLUSH, k.HOST, reason, number, self.trigger, len(parts), elems, 0)
        del self.open[key]
        session.purpose = (k.REDUCE, number, parts)
        return number
