"""Values of a step: loss, gradient norm, learning rate, loss scale, skipped or not. Base of Session (_session.py)."""
from shardscope import _core, _kinds as k, _values

NO_ID = k.NO_ID
events = _core.events


class StepValues(_core.SessionState):
    """Values may be tensors. A tensor on a device is copied to the host and emitted for its step when the copy has
    arrived: nothing waits for it (_values.py)."""

    def loss(self, tensor):
        _values.take(tensor, lambda value, step=self.step, micro=self.micro_step: events.loss(step, micro, value))

    def grad_norm(self, value, scale=None, step=None):
        """`scale`: the loss scale, if `value` is the norm of scaled gradients; `step`: if it is not the current one."""
        step = self.step if step is None else step

        def known(norm):
            if scale is None:
                events.grad_norm(step, norm)
            else:
                _values.take(scale, lambda of: events.grad_norm(step, norm / of))
        _values.take(value, known)

    def learning_rate(self, value):
        """Of the first parameter group: a number, or a tensor, which is read without waiting for a device."""
        _values.take(value, lambda rate, step=self.step: events.learning_rate(step, rate))

    def overflow(self, skipped):
        """For runs with loss scaling: whether this step was skipped because of an overflow."""
        events.overflow(int(skipped), self.step)

    def gradient_not_finite(self, param, infinite, nan, other_params):
        """After an overflow: the parameter's number, its infinite and NaN elements in this rank's partition, and how many
        further parameters of the partition are not finite. The order of backward is not known."""
        events.gradient_not_finite(int(infinite > 0), int(nan > 0), self.step, param, NO_ID, infinite + nan, other_params)

    def loss_scale(self, value, hysteresis=NO_ID):
        """The scale of this step's gradients. `hysteresis`: further overflows before the scale is lowered."""
        _values.take(value, lambda scale, step=self.step: events.loss_scale(step, hysteresis, scale))
