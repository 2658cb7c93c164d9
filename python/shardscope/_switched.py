"""A flag set in Python that hooks in C++ read without calling Python."""
from shardscope import _core


class Switched:
    def __init__(self):
        self.switch = _core.Switch()  # initially off; passed to the hooks

    @property
    def on(self):
        return self.switch.on

    @on.setter
    def on(self, value):
        self.switch.on = value
