"""Hugging Face's tokenizers beside russet's.

Usage:
  text.py golden FOLDER                      writes text.json.gz; docs/golden.md describes it
  text.py compare RUSSET TREC FOLDER         ids of TREC's questions and of 10,000 hostile lines, by many tokenizers
  text.py speed BENCH TREC FOLDER             tokens a second of both, in one thread

RUSSET is the program, BENCH is build/bench/tokenizer_bench, TREC the file train_5500.label; vocabularies are trained on it and kept in FOLDER.
"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from hostile_text import hostile_lines

BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GPT_TOKENS = ["<s>", "</s>", "<|endoftext|>"]
ADDED = [
    AddedToken("[MASK]", lstrip=True, special=True, normalized=False),
    AddedToken("<s>", rstrip=True, special=True, normalized=False),
    AddedToken("<|endoftext|>", lstrip=True, rstrip=True, special=True, normalized=False),
    AddedToken("yes", single_word=True, normalized=False),
    AddedToken("Wörd", normalized=True),
    AddedToken("  ", normalized=False),
    AddedToken("the c", single_word=True, normalized=True),
]
# Of our own, so that a vocabulary made from it may be kept with the tests.
TEXT = """A tensor is a handle on a cell, and a cell holds the value of a node. Recording a node runs nothing: what is
pending is compiled and started when somebody reads. Why is that? One path is one thing to test, and a plan that is kept
needs no compiling again. What doesn't fit into memory is said before the first step, isn't it? We're told that 1 + 1 = 2,
they've counted 4,096 kernels, and I'll believe it. Größe, naïve, déjà vu: words with accents lose them, or they don't.
Questions end with a question mark? Prices in $ or €, 100 % of them. The quick brown fox jumps over the lazy dog.
tokenizing, tokenized, tokens; training, trained, trains; reading, reads, reader; 東京 and Москва and Αθήνα.
""" * 4


def word_piece(lines, size, normalizer=normalizers.BertNormalizer()):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        lines, trainers.WordPieceTrainer(vocab_size=size, special_tokens=BERT_TOKENS, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def byte_level(lines, size, alphabet=pre_tokenizers.ByteLevel.alphabet(), regex=True, prefix=False, unknown=None):
    tokenizer = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=unknown is not None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)
    special = GPT_TOKENS + ([unknown] if unknown else [])
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_tokens(ADDED)
    return tokenizer


def roberta(tokenizer):
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


def bert(**changes):
    return normalizers.BertNormalizer(**dict(lowercase=True) | changes)


def make_tokenizers(lines, size):
    return {
        "bert_uncased": word_piece(lines, size),
        "bert_cased": word_piece(lines, size, bert(lowercase=False)),
        "bert_accents": word_piece(lines, size, bert(strip_accents=False, clean_text=False)),
        "bert_plain": word_piece(lines, size, None),
        "bert_added": with_added(word_piece(lines, size)),
        "gpt2": byte_level(lines, size),
        "gpt2_added": with_added(byte_level(lines, size)),
        "gpt2_no_regex": byte_level(lines, size, regex=False),
        "gpt2_unknown": byte_level(lines, size, alphabet=[], unknown="<unk>"),
        "gpt2_dropped": byte_level(lines, size, alphabet=[]),
        "roberta": roberta(byte_level(lines, size, prefix=True)),
    }


def golden(folder):
    found = {"version": tokenizers.__version__, "tokenizers": {}}
    lines = hostile_lines(60, seed=7) + [line.encode() for line in TEXT.splitlines()[:7]]
    for name, tokenizer in make_tokenizers(TEXT.splitlines(), 420).items():
        cases = []
        for line, pair in zip(lines, lines[1:]):
            a, b = line.decode("utf-8", "replace"), pair.decode("utf-8", "replace")
            single, both = tokenizer.encode(a), tokenizer.encode(a, b)
            cases.append({"ids": single.ids, "pair_ids": both.ids, "pair_types": both.type_ids,
                          "text": tokenizer.decode(single.ids),
                          "special": tokenizer.decode(single.ids, skip_special_tokens=False)})
        truncated = []
        for length in (4, 7, 12):
            for strategy in ("longest_first", "only_first"):
                for direction in ("right", "left"):
                    tokenizer.enable_truncation(length, strategy=strategy, direction=direction)
                    single = tokenizer.encode(TEXT.splitlines()[0]).ids
                    pair = None
                    if strategy == "longest_first":
                        pair = tokenizer.encode("one two three four five six", "seven eight nine").ids
                    truncated.append([length, strategy, direction, single, pair])
        tokenizer.no_truncation()
        found["tokenizers"][name] = {"file": json.loads(tokenizer.to_str()), "cases": cases, "truncated": truncated}
    found["lines"] = [line.decode("latin-1") for line in lines]  # a character for each byte
    found["truncated_text"] = TEXT.splitlines()[0]
    path = pathlib.Path(folder) / "text.json.gz"
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


def every_character(normalizer):
    """A WordPiece that has each character as a token: its ids show all that normalization and splitting did."""
    codes = [c for c in [*range(0x21, 0x33480), *range(0xE0000, 0xE0200)] if not 0xD800 <= c <= 0xDFFF]
    names = BERT_TOKENS + [prefix + chr(c) for prefix in ("", "##") for c in codes]
    vocabulary = {name: i for i, name in enumerate(dict.fromkeys(names))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=5000))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def questions(trec):
    return [line.split(b" ", 1)[1] for line in pathlib.Path(trec).read_bytes().splitlines()]


def save_tokenizers(trec, folder):
    """{name: (Hugging Face's tokenizer, the file that russet reads, its other arguments)}."""
    folder = pathlib.Path(folder)
    found = {}
    texts = [line.decode("utf-8", "replace") for line in questions(trec)]
    made = make_tokenizers(texts, 4000)
    for name, normalizer in {"": bert(), ", accents": bert(strip_accents=False), ", cased": bert(lowercase=False),
                             ", not cleaned": bert(clean_text=False), ", plain": None}.items():
        made["every character" + name] = every_character(normalizer)
    for name, tokenizer in made.items():
        path = folder / f"{name}.json"
        tokenizer.save(str(path))
        found[name] = (Tokenizer.from_file(str(path)), path, [])
    for name, lower in (("uncased", True), ("cased", False)):
        vocab = folder / name / "vocab.txt"
        vocab.parent.mkdir(exist_ok=True)
        found[f"bert_{name}"][0].model.save(str(vocab.parent))
        peer = tokenizers.BertWordPieceTokenizer.from_file(str(vocab), lowercase=lower)
        found[f"vocab.txt {name}"] = (peer, vocab, [] if lower else ["--no-lowercase"])
    (folder / "gpt2").mkdir(exist_ok=True)
    found["gpt2"][0].model.save(str(folder / "gpt2"))
    vocab, merges = (str(folder / "gpt2" / name) for name in ("vocab.json", "merges.txt"))
    found["vocab.json"] = (tokenizers.ByteLevelBPETokenizer.from_file(vocab, merges), vocab, [])
    return found


def tokenize(russet, arguments, path, lines):
    run = subprocess.run([russet, "tokenize", "--vocab", path, *arguments], input=b"".join(l + b"\n" for l in lines),
                         stdout=subprocess.PIPE, check=True)
    return [[int(word) for word in line.split()] for line in run.stdout.split(b"\n")[:-1]]


def compare(russet, trec, folder):
    differing = 0
    texts = {"TREC": questions(trec), "hostile": hostile_lines(10_000)}
    for name, (peer, path, arguments) in save_tokenizers(trec, folder).items():
        for kind, lines in texts.items():
            ours = tokenize(russet, arguments, path, lines)
            theirs = [peer.encode(line.decode("utf-8", "replace")).ids for line in lines]
            assert len(ours) == len(theirs)
            wrong = [i for i in range(len(lines)) if ours[i] != theirs[i]]
            differing += len(wrong)
            print(f"{name:28} {kind:8} {len(lines)} lines, {sum(map(len, theirs))} ids, {len(wrong)} lines differ")
            for i in wrong[:3]:
                print(f"  {lines[i]!r}\n  Hugging Face {theirs[i]}\n  russet       {ours[i]}")
    return 1 if differing else 0


def best_time(work):
    """Of the processor: both sides have one thread, and others may want the machine."""
    times = []
    for _ in range(5):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def speed(bench, trec, folder):
    made = save_tokenizers(trec, folder)
    short = [line.decode() for line in questions(trec)]
    texts = {"TREC's questions": short * 10, "long text": [" ".join(short)] * 10,
             "hostile lines": [line.decode("utf-8", "replace").replace("\n", " ") for line in hostile_lines(10_000)]}
    for name in ("bert_uncased", "gpt2"):
        peer, path, _ = made[name]
        for kind, lines in texts.items():
            count = sum(len(encoding.ids) for encoding in peer.encode_batch(lines))
            seconds = best_time(lambda: peer.encode_batch(lines))
            fast = best_time(lambda: peer.encode_batch_fast(lines))
            file = pathlib.Path(folder) / "lines.txt"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            run = subprocess.run([bench, path, file], capture_output=True, text=True, check=True)
            tokens, ours = run.stdout.split()
            assert int(tokens) == count, (tokens, count)
            print(f"{name:14} {kind:17} {count:8} tokens: Hugging Face {count / seconds / 1e6:6.2f} M a second "
                  f"(encode_batch_fast {count / fast / 1e6:6.2f}), russet {count / float(ours) / 1e6:6.2f}: "
                  f"{seconds / float(ours):.1f} times")


COMMANDS = {"golden": golden, "compare": compare, "speed": speed}

if __name__ == "__main__":
    pathlib.Path(sys.argv[-1]).mkdir(parents=True, exist_ok=True)
    sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
