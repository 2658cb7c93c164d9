"""train.py as on a PyTorch that has no hooks of process groups: they are taken away before Shardscope looks for them."""
import os

import shardscope

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
shardscope.detach()  # armed again below, once they are gone

import torch  # noqa: F401  pylint: disable=wrong-import-position,unused-import
from torch._C._distributed_c10d import ProcessGroup  # pylint: disable=wrong-import-position

del ProcessGroup.register_pre_hook

from shardscope._autoload import autoload  # pylint: disable=wrong-import-position

autoload()

import train  # pylint: disable=wrong-import-position

train.main()
