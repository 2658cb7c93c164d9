"""What a step gives: loss, gradient norm, learning rate, loss scale, whether it was skipped. The session's (_session.py)."""
import struct

from shardscope import _core, _kinds as k, _values

NO_ID = k.NO_ID
emit = _core.emit


def bits(value):
    return struct.unpack("<q", struct.pack("<d", value))[0]


class StepValues(_core.SessionState):
    """Values may be tensors. One on a device is copied to the host and emitted when it has arrived, for the step that it is of:
    nothing waits for it (_values.py)."""

    def loss(self, tensor):
        _values.take(tensor, lambda value, step=self.step, micro=self.micro_step:
                     emit(k.LOSS, k.HOST, 0, step, micro, NO_ID, bits(value), 0))

    def grad_norm(self, value, scale=None, step=None):
        """`scale`: the loss scale, where `value` is the norm of scaled gradients; `step`: where it is not the one that runs."""
        step = self.step if step is None else step

        def known(norm):
            if scale is None:
                emit(k.GRAD_NORM, k.HOST, 0, step, NO_ID, NO_ID, bits(norm), 0)
            else:
                _values.take(scale, lambda of: emit(k.GRAD_NORM, k.HOST, 0, step, NO_ID, NO_ID, bits(norm / of), 0))
        _values.take(value, known)

    def learning_rate(self, value):
        """Of the first parameter group: a number, or a tensor, which is read without waiting for a device."""
        _values.take(value, lambda rate, step=self.step:
                     emit(k.LEARNING_RATE, k.HOST, 0, step, NO_ID, NO_ID, bits(rate), 0))

    def overflow(self, skipped):
        """Of a run that scales its loss: whether this step was skipped for it."""
        emit(k.OVERFLOW, k.HOST, int(skipped), self.step, NO_ID, NO_ID, 0, 0)

    def gradient_not_finite(self, param, infinite, nan, other_params):
        """Of an overflow: the parameter's number, elements of it in this rank's partition that are infinite and that are NaN, and how
        many further parameters of the partition are not finite. The order of backward is not known."""
        emit(k.GRADIENT_NOT_FINITE, k.HOST, int(infinite > 0) | int(nan > 0) << 1, self.step, param, NO_ID, infinite + nan,
             other_params)

    def loss_scale(self, value, hysteresis=NO_ID):
        """That this step's gradients were computed with. `hysteresis`: overflows that it still bears before it is lowered."""
        _values.take(value, lambda scale, step=self.step:
                     emit(k.LOSS_SCALE, k.HOST, 0, step, hysteresis, NO_ID, bits(scale), 0))
