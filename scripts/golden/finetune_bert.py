"""Fine-tunes a small BERT on TREC's questions, with Hugging Face's transformers and with russet, from the same weights and
in the same order, without dropout: the whole model, and the classifier alone.

Usage: finetune_bert.py TREC [--build build] [--steps 20]
TREC is the file train_5500.label, on which the vocabulary is trained. Run it with the Python of scripts/golden/setup.sh.
Exits with 1 if the losses of a step differ by more than 1e-3.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import tokenizers
import torch
import transformers
from safetensors.torch import save_file

from table import row

LIMIT = 1e-3
ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES = ["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"]
BATCH = 16
MAX_LENGTH = 32
LEARNING_RATE = 5e-4


def questions(trec):
    lines = pathlib.Path(trec).read_bytes().decode("utf-8", "replace").splitlines()
    pairs = [line.split(" ", 1) for line in lines]
    return [text for _, text in pairs], [CLASSES.index(label.split(":")[0]) for label, _ in pairs]


def train_vocabulary(texts, folder):
    tokenizer = tokenizers.BertWordPieceTokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=4000, show_progress=False)
    tokenizer.save_model(str(folder))
    return folder / "vocab.txt"


def small_bert(vocabulary, folder):
    config = transformers.BertConfig(vocab_size=len(vocabulary.read_text(encoding="utf-8").splitlines()), hidden_size=128,
                                     num_hidden_layers=3, num_attention_heads=4, intermediate_size=256,
                                     max_position_embeddings=64, num_labels=len(CLASSES), hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    config.save_pretrained(folder)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / "bert.safetensors")
    return model.train()


def expected_losses(model, vocabulary, texts, labels, steps, frozen):
    tokenizer = transformers.BertTokenizerFast(vocab_file=str(vocabulary))
    model.bert.requires_grad_(not frozen)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=LEARNING_RATE, weight_decay=0.01)
    losses = []
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        batch = tokenizer(texts[part], padding="longest", truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
        loss = model(**batch, labels=torch.tensor(labels[part])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def russet_losses(russet, trec, vocabulary, folder, steps, frozen):
    subprocess.run([russet, "train", "bert_base", "--config", folder / "config.json", "--weights",
                    folder / "bert.safetensors", "--data", f"trec:{trec}", "--vocab", vocabulary, "--max-length",
                    str(MAX_LENGTH), "--batch", str(BATCH), "--no-shuffle", "--dropout", "0", "--optimizer", "adamw", "--lr",
                    str(LEARNING_RATE), "--weight-decay", "0.01", "--schedule", "none", "--warmup", "0", "--steps",
                    str(steps), "--out", folder / "run", *(["--freeze", "encoder"] if frozen else [])],
                   check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "step" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trec")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    texts, labels = questions(arguments.trec)
    failed = False
    for frozen in (False, True):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            vocabulary = train_vocabulary(texts, folder)
            model = small_bert(vocabulary, folder)
            expected = expected_losses(model, vocabulary, texts, labels, arguments.steps, frozen)
            found = russet_losses(arguments.build / "bin/russet", arguments.trec, vocabulary, folder, arguments.steps, frozen)
        assert len(found) == len(expected)
        difference = max(abs(a - b) for a, b in zip(expected, found))
        failed |= not row(f"BERT on TREC, {'classifier alone' if frozen else 'whole'}: losses of {len(expected)} steps",
                          difference, LIMIT, f"from {expected[0]:.3f} to {expected[-1]:.3f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
