"""The Qwen3.5 text model in float64 numpy, token by token from the definition: the truth for models of any shape.

Source of the formulas: the GGUF conventions (norm weights hold their +1, ssm_a = -exp(A_log), value heads tiled over key heads) and the
reference implementation's forms (l2 norm x * rsqrt(sum x^2 + 1e-6), interleaved rope sections). No blocks, no chunks, no caches.
With `int8` the same with the two roundings of the int8 path and nothing else: activations before a Q8_0 matrix in blocks of 32, K and V to half.
"""
import numpy as np


def round_int8(x):
    """Blocks of 32: d = max|x| / 127, x -> d * round(x / d)."""
    b = x.reshape(-1, 32)
    d = np.abs(b).max(-1, keepdims=True) / 127
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(d > 0, np.rint(b / d) * d, 0).reshape(x.shape)


class Weights:
    """The tensors of one layer; product(x, name) is x times a matrix."""
    def __init__(self, get, prefix, int8):
        self.get, self.prefix, self.int8 = get, prefix, int8

    def __call__(self, n):
        return self.get(f"{self.prefix}{n}" if n in ("ssm_a", "ssm_dt.bias") else f"{self.prefix}{n}.weight")

    def product(self, x, n):
        return (round_int8(x) if self.int8 and self.int8(f"{self.prefix}{n}.weight") else x) @ self(n).T

    def stored(self, kv):
        return kv.astype(np.float16).astype(np.float64) if self.int8 else kv


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def yarn(freq, s):
    """YaRN's frequencies (arXiv 2309.00071): between the pairs that turn beta_fast and beta_slow times in the original context, a ramp."""
    factor, original, fast, slow = s.yarn
    pair = lambda turns: s.rope_dims * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(s.rope_base))
    low, high = max(np.floor(pair(fast)), 0), min(np.ceil(pair(slow)), s.rope_dims - 1)
    ramp = np.clip((np.arange(len(freq)) - low) / max(high - low, 0.001), 0, 1)
    return freq * (1 - ramp) + freq / factor * ramp


def rope(x, positions, s):
    """x [T, heads, head_dim]; pairs (i, i + rope_dims/2). Text positions, so the sections do not matter."""
    half = s.rope_dims // 2
    freq, scale = np.float32(1) / np.float64(s.rope_base) ** (2 * np.arange(half) / s.rope_dims), 1
    if s.yarn:
        freq, scale = yarn(freq, s), 0.1 * np.log(s.yarn[0]) + 1
    angle = (positions.astype(np.float32)[:, None] * freq.astype(np.float32)).astype(np.float64)[:, None, :]
    a, b, cos, sin = x[..., :half], x[..., half:2 * half], scale * np.cos(angle), scale * np.sin(angle)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half:]], -1)


def attention(h, w, s):
    T, group = len(h), s.n_head // s.n_head_kv
    qg = w.product(h, "attn_q").reshape(T, s.n_head, 2, s.head_dim)
    q, gate = qg[:, :, 0], qg[:, :, 1]
    k = w.product(h, "attn_k").reshape(T, s.n_head_kv, s.head_dim)
    v = w.product(h, "attn_v").reshape(T, s.n_head_kv, s.head_dim)
    at = np.arange(T)
    q = rope(rms(q, w("attn_q_norm"), s.eps), at, s)
    k, v = w.stored(rope(rms(k, w("attn_k_norm"), s.eps), at, s)), w.stored(v)
    out = np.empty_like(q)
    for i in range(s.n_head):
        z = q[:, i] @ k[:, i // group].T / np.sqrt(s.head_dim)
        z[np.triu_indices(T, 1)] = -np.inf
        p = np.exp(z - z.max(-1, keepdims=True))
        out[:, i] = p / p.sum(-1, keepdims=True) @ v[:, i // group]
    return w.product((out * sigmoid(gate)).reshape(T, -1), "attn_output")


def delta_net(h, w, s):
    T, D, k_dim = len(h), s.state_dim, s.n_k_heads * s.state_dim
    u = np.concatenate([np.zeros((s.conv_taps - 1, 2 * k_dim + s.n_v_heads * D)), w.product(h, "attn_qkv")])
    c = silu(sum(u[j:j + T] * w("ssm_conv1d")[:, j] for j in range(s.conv_taps)))
    q, k, v = c[:, :k_dim].reshape(T, -1, D), c[:, k_dim:2 * k_dim].reshape(T, -1, D), c[:, 2 * k_dim:].reshape(T, -1, D)
    l2 = lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)
    q, k = l2(q) / np.sqrt(D), l2(k)
    g = w("ssm_a") * np.logaddexp(0, w.product(h, "ssm_alpha") + w("ssm_dt.bias"))
    beta = sigmoid(w.product(h, "ssm_beta"))
    S, o = np.zeros((s.n_v_heads, D, D)), np.empty((T, s.n_v_heads, D))
    of_value_head = np.arange(s.n_v_heads) % s.n_k_heads
    for t in range(T):
        kt, qt = k[t, of_value_head], q[t, of_value_head]
        S *= np.exp(g[t])[:, None, None]
        d = beta[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", S, kt))
        S += kt[:, :, None] * d[:, None, :]
        o[t] = np.einsum("hkv,hk->hv", S, qt)
    z = w.product(h, "attn_gate").reshape(T, s.n_v_heads, D)
    return w.product((rms(o, w("ssm_norm"), s.eps) * silu(z)).reshape(T, -1), "ssm_out")


def logits(values, s, ids, int8=None):
    """values: tensor name -> array (gguf_build.write_random); s: gguf_build.Shape; int8(name): a matrix that meets int8 activations.
    Returns [len(ids), vocabulary] float64."""
    get = lambda name: np.asarray(values[name], np.float64)
    x = get("token_embd.weight")[list(ids)]
    for i, kind in enumerate(s.kinds()):
        w = Weights(get, f"blk.{i}.", int8)
        h = rms(x, w("attn_norm"), s.eps)
        x = x + (attention if kind == "a" else delta_net)(h, w, s)
        h = rms(x, w("post_attention_norm"), s.eps)
        x = x + w.product(silu(w.product(h, "ffn_gate")) * w.product(h, "ffn_up"), "ffn_down")
    return Weights(get, "", int8).product(rms(x, get("output_norm.weight"), s.eps), "token_embd" if s.tied else "output")


def kld(want, got):
    """Mean KL(want || got) over rows."""
    def log_softmax(z):
        z = z - z.max(-1, keepdims=True)
        return z - np.log(np.exp(z).sum(-1, keepdims=True))
    a, b = log_softmax(want), log_softmax(np.asarray(got, np.float64))
    return float((np.exp(a) * (a - b)).sum(-1).mean())


def cosine(want, got):
    """Smallest cosine over rows."""
    got = np.asarray(got, np.float64)
    return float(((want * got).sum(-1) / np.sqrt((want * want).sum(-1) * (got * got).sum(-1))).min())
