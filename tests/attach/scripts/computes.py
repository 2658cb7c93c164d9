"""Computation of a length that is given, forward and backward."""
import time

import torch


class Computes(torch.autograd.Function):
    """Computes.apply(x, seconds): as long as a layer of a large model takes."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return gradient, None
