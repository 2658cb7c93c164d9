"""Weights and data that a formula gives, so that every peer trains on the same numbers without exchanging files.

The formulas are those of tests/golden/losses.json ("hash", "init hash", "data mlp", "data gpt"); zero_train has them as
--data golden:mlp and golden:gpt.
"""
import numpy as np

_MASK = (1 << 64) - 1


def hash64(x):
    """splitmix64's output function, of an array of unsigned 64-bit numbers or of one."""
    with np.errstate(over="ignore"):
        z = np.asarray(x, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(stream, count):
    """The first `count` numbers in [-1, 1) of a stream, exact in fp32, as float64."""
    at = np.uint64((stream << 32) & _MASK) + np.arange(count, dtype=np.uint64)
    return ((hash64(at) >> np.uint64(40)).astype(np.float64) - 2.0**23) / 2.0**23


def initial_weight(name, index, shape):
    """fp32 values of parameter number `index` (in the order of the model)."""
    values = uniform(index + 1, int(np.prod(shape)))
    if len(shape) == 2:
        embedding = name.rsplit(".", 2)[-2] in ("wte", "wpe")
        values = values * (0.5 if embedding else np.sqrt(3.0 / shape[1]))
    elif name.endswith(".weight"):
        values = 1.0 + 0.1 * values
    else:
        values = 0.05 * values
    return values.astype(np.float32).reshape(shape)


def sine_weight(name, index, shape):
    """The same by the other formula ("init sin")."""
    wave = 0.02 * np.sin(0.37 * np.arange(int(np.prod(shape))) + 0.11 * index)
    one = 1.0 if len(shape) == 1 and name.endswith(".weight") else 0.0
    return (one + wave).astype(np.float32).reshape(shape)


def mlp_batch(micro, rank, rows):
    """x [rows, 10] and y [rows, 1], fp32."""
    x = uniform(1_000_000 + 1000 * micro + rank, rows * 10).reshape(rows, 10)
    return x.astype(np.float32), x.sum(axis=1, keepdims=True).astype(np.float32)


def gpt_batch(micro, rank, rows, context):
    """Input and target tokens [rows, context], int64."""
    stream = 2_000_000 + 1000 * micro + rank
    draws = hash64(np.uint64(stream << 32) + np.arange(2 * rows, dtype=np.uint64)).reshape(rows, 2)
    start = (draws[:, :1] % np.uint64(59)).astype(np.int64)
    stride = 1 + (draws[:, 1:] % np.uint64(3)).astype(np.int64)
    tokens = (start + stride * np.arange(context + 1)) % 59
    return tokens[:, :-1], tokens[:, 1:]
