"""The generator that both sides draw inputs and weights from: Philox4x32-10, indexed by position.

The twin of src/base/philox.h. docs/golden.md says how golden tests use it.
"""

import numpy as np

_MULTIPLIER0 = np.uint64(0xD2511F53)
_MULTIPLIER1 = np.uint64(0xCD9E8D57)
_WEYL0 = 0x9E3779B9
_WEYL1 = 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(seed, offset, blocks):
    """The four words of counters (block, offset) under key `seed`: an array [len(blocks), 4] of uint32."""
    blocks = np.asarray(blocks, dtype=np.uint64)
    counter = [
        blocks & _LOW,
        blocks >> _HALF,
        np.full_like(blocks, offset & 0xFFFFFFFF),
        np.full_like(blocks, offset >> 32),
    ]
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        product0 = _MULTIPLIER0 * counter[0]
        product1 = _MULTIPLIER1 * counter[2]
        counter = [
            (product1 >> _HALF) ^ counter[1] ^ np.uint64(key0),
            product1 & _LOW,
            (product0 >> _HALF) ^ counter[3] ^ np.uint64(key1),
            product0 & _LOW,
        ]
        key0 = (key0 + _WEYL0) & 0xFFFFFFFF
        key1 = (key1 + _WEYL1) & 0xFFFFFFFF
    return np.stack(counter, axis=-1).astype(np.uint32)


def uniform(seed, offset, count):
    """Positions 0 to count - 1 of the uniform numbers in [0, 1): float64 with 24 bits each."""
    words = philox(seed, offset, np.arange((count + 3) // 4, dtype=np.uint64)).reshape(-1)[:count]
    return (words >> np.uint32(8)).astype(np.float64) * 2.0**-24


def real(seed, offset, shape, low=-1.0, high=1.0):
    """Numbers in [low, high): low + (high - low) * uniform, rounded to float32."""
    values = low + (high - low) * uniform(seed, offset, int(np.prod(shape, dtype=np.int64)))
    return values.astype(np.float32).reshape(shape)


def integer(seed, offset, shape, low, high):
    """Integers in [low, high): low + floor((high - low) * uniform)."""
    values = low + np.floor((high - low) * uniform(seed, offset, int(np.prod(shape, dtype=np.int64))))
    return values.astype(np.int64).reshape(shape)


def boolean(seed, offset, shape):
    """True where uniform is below a half."""
    return (uniform(seed, offset, int(np.prod(shape, dtype=np.int64))) < 0.5).reshape(shape)


# The range of a parameter by its kind. Matrices and kernels: sqrt(3 / fan_in), fan_in being the product of all sizes
# but the first, which gives variance 1 / fan_in.
_KINDS = {
    "norm.weight": (0.8, 1.2),
    "norm.bias": (-0.1, 0.1),
    "running_mean": (-0.1, 0.1),
    "running_var": (0.8, 1.2),
    "bias": (-0.05, 0.05),
    "embedding": (-0.05, 0.05),
}


def kind_of(name, shape):
    """norm.weight, norm.bias, running_mean, running_var, bias, embedding, matrix or counter, by name and rank."""
    last = name.rsplit(".", 1)[-1]
    if last in ("running_mean", "running_var"):
        return last
    if last in ("num_batches_tracked", "position_ids", "token_type_ids"):
        return "counter"
    if "embedding" in name and last != "bias" and len(shape) >= 2 or last == "class_token":
        return "embedding"
    owner = name.rsplit(".", 1)[0].rsplit(".", 1)[-1]
    is_norm = last == "weight" and len(shape) == 1
    if is_norm:
        return "norm.weight"
    if last == "bias" and (owner.startswith(("bn", "ln", "LayerNorm")) or owner == "1" and "downsample" in name):
        return "norm.bias"
    return "bias" if last.endswith("bias") else "matrix"


def bounds(name, shape):
    """The range [low, high] of a parameter; [0, 0] for counters."""
    kind = kind_of(name, shape)
    if kind == "counter":
        return [0.0, 0.0]
    if kind == "matrix":
        bound = float(np.sqrt(3.0 / max(1, int(np.prod(shape[1:], dtype=np.int64)))))
        return [-bound, bound]
    return list(_KINDS[kind])


def parameter(seed, index, name, shape):
    """Entry `index` of a state dict: offset = index, range by kind."""
    return real(seed, index, shape, *bounds(name, shape))


if __name__ == "__main__":
    # Known answers of the Random123 distribution for Philox4x32-10.
    assert philox(0, 0, [0])[0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    full = philox(2**64 - 1, 2**64 - 1, np.array([2**64 - 1], dtype=np.uint64))[0].tolist()
    assert full == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], [hex(w) for w in full]
    print("philox agrees with the known answers")
