"""Hooks of Megatron-Core's data parallelism and optimizers, one file for each part of its table."""
