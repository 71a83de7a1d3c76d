#!/usr/bin/env python3
"""Makes the two models that the tests run: an encoder and a reranker of a few words.

    python3 -m venv venv && venv/bin/pip install onnx==1.23.2 && venv/bin/python tests/onnx/make.py

Run by hand; what it writes is committed beside it, and is the same each time. Every word that is known has a vector by hand, so
that what is like what can be told by reading WORDS:

- encoder: the vectors of a text's words. In a text with the word `passage`, as e5's prefix has it, money and plants change
  places: whoever reads what was found knows whether prefixes were put before queries and passages.
- reranker: the product of the sums of both texts' vectors.
- flat: the same, but not in the shape that is asked for.

The word `abyss` has no row in the table, so that a text with it fails at run time.
"""

import json
from pathlib import Path

import numpy
from onnx import TensorProto, checker, helper, numpy_helper

HERE = Path(__file__).resolve().parent

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
NOTHING, MONEY, PLANTS, SEA = [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]
WORDS = {
    "passage": NOTHING,
    "coins": MONEY, "dollars": MONEY, "euro": MONEY,
    "tulips": PLANTS, "roses": PLANTS, "fern": PLANTS,
    "boats": SEA, "ships": SEA,
}
VOCABULARY = {word: number for number, word in enumerate([*SPECIAL, *WORDS, "abyss"])}


def constant(name, values, kind):
    return numpy_helper.from_array(numpy.array(values, dtype=kind), name)


def table():
    return constant("table", [*([NOTHING] * len(SPECIAL)), *WORDS.values()], numpy.float32)


def of_tokens(name):
    return helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])


def write(name, nodes, inputs, output, constants):
    graph = helper.make_graph(nodes, name, [of_tokens(name) for name in inputs], [output], [table(), *constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="make.py")
    checker.check_model(model, full_check=True)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))


def encoder():
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["plain"]),
        helper.make_node("MatMul", ["plain", "exchange"], ["exchanged"]),
        # 1 where any token of the text is `passage`.
        helper.make_node("Equal", ["input_ids", "passage"], ["is_passage"]),
        helper.make_node("Cast", ["is_passage"], ["marks"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["marks"], ["mark"], axes=[1], keepdims=1),
        helper.make_node("Unsqueeze", ["mark", "last"], ["mark_3"]),
        helper.make_node("Sub", ["exchanged", "plain"], ["difference"]),
        helper.make_node("Mul", ["difference", "mark_3"], ["change"]),
        helper.make_node("Add", ["plain", "change"], ["states"]),
        # The mask is an input of every such model; its mean is taken outside.
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask_3"]),
        helper.make_node("Mul", ["states", "mask_3"], ["last_hidden_state"]),
    ]
    exchange = [PLANTS, MONEY, SEA, [0, 0, 0, 1]]
    constants = [
        constant("exchange", exchange, numpy.float32),
        constant("passage", [VOCABULARY["passage"]], numpy.int64),
        constant("last", [2], numpy.int64),
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", 4])
    write("encoder", nodes, ["input_ids", "attention_mask"], output, constants)


def reranker(name, is_flat):
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["mask", "types"], ["of_query"]),
        helper.make_node("Unsqueeze", ["of_query", "last"], ["of_query_3"]),
        helper.make_node("Unsqueeze", ["types", "last"], ["of_text_3"]),
        helper.make_node("Mul", ["states", "of_query_3"], ["query_states"]),
        helper.make_node("Mul", ["states", "of_text_3"], ["text_states"]),
        helper.make_node("ReduceSum", ["query_states", "tokens"], ["query"], keepdims=0),
        helper.make_node("ReduceSum", ["text_states", "tokens"], ["text"], keepdims=0),
        helper.make_node("Mul", ["query", "text"], ["products"]),
        helper.make_node("ReduceSum", ["products", "tokens"], ["logits"], keepdims=0 if is_flat else 1),
    ]
    constants = [constant("last", [2], numpy.int64), constant("tokens", [1], numpy.int64)]
    shape = ["texts"] if is_flat else ["texts", 1]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
    write(name, nodes, ["input_ids", "attention_mask", "token_type_ids"], output, constants)


def tokenizer():
    """What all of them share."""
    token = lambda name, kind: {"SpecialToken": {"id": name, "type_id": kind}}
    text = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    special = lambda name: {"id": name, "ids": [VOCABULARY[name]], "tokens": [name]}
    one = [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    shape = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": VOCABULARY[name], "content": name, **added} for name in SPECIAL],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": one,
            "pair": [*one, text("B", 1), token("[SEP]", 1)],
            "special_tokens": {name: special(name) for name in ("[CLS]", "[SEP]")},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": VOCABULARY, "unk_token": "[UNK]"},
    }
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    files = {
        "tokenizer.json": shape,
        "config.json": {"pad_token_id": 0},
        "special_tokens_map.json": names,
        "tokenizer_config.json": {"model_max_length": 512, **names},
    }
    folder = HERE / "tokenizer"
    folder.mkdir(exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    encoder()
    reranker("reranker", False)
    reranker("flat", True)
    tokenizer()
