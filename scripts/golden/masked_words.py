"""Golden values of BERT with a head for masked words: logits, and ten steps of training as training.py makes them.

Usage: masked_words.py OUTPUT_FOLDER     writes masked_words.json.gz; docs/golden.md describes it.
"""

import pathlib
import sys

import torch

import generator
import reference_models
import training

CONFIG = {key: value for key, value in training.BERT.items() if key != "num_labels"}
UNMASKED = -100
STRIDE = 997  # of the logits that are kept


def batch(step, kind):
    """The tokens of training.py's batches, of which one in seven has a word to be told."""
    inputs, _ = training.token_batch(step, kind)
    words = torch.from_numpy(generator.integer(training.SEED, 2_000_000 + step, [8, 32], 0, 1000))
    chosen = torch.from_numpy(generator.integer(training.SEED, 5_000_000 + step, [8, 32], 0, 7))
    return inputs, torch.where(chosen == 0, words, torch.full_like(words, UNMASKED))


def logits():
    model = reference_models.bert_mlm(**CONFIG).eval()
    reference_models.fill(model, training.SEED)
    with torch.no_grad():
        found = model.double()(**batch(0, torch.float64)[0]).logits
    return found.flatten()[::STRIDE].tolist()


def main():
    record = training.record("bert_mlm", lambda: reference_models.bert_mlm(**CONFIG), batch,
                             lambda p: torch.optim.AdamW(p, lr=1e-3), {"optimizer": "adamw", "lr": 1e-3, "config": CONFIG})
    training.write(pathlib.Path(sys.argv[1]) / "masked_words.json.gz", record | {"logits": logits(), "stride": STRIDE})


if __name__ == "__main__":
    main()
