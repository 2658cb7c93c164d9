"""Hooks of Megatron-Core's data parallelism and optimizers, one file per part of its table."""
