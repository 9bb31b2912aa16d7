"""Lines that a tokenizer finds hard, from a seed: all of Unicode, marks in any order, white space and controls of every
kind, tokens inside words, words at the limit of length, and bytes that are no UTF-8.

Usage: hostile_text.py [COUNT [SEED]] > FILE
"""

import random
import sys
import unicodedata

SPACES = "\t\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000\u200b\ufeff"
ODD_CASES = "İıſßẞΣςσǅǆŉΐᾈᾳϴΩKÅꭰᏸႠⴀꙀꟄꟆℵⅧⅷⓐⒶ🄰ﬁＡａѢѣ\ua7cb\ua7ce\u1c89\U00010d50\U00016ea0\U0001e900"
DECOMPOSED = "ÀÇÑÖÜàéîõůẬấǖṩ\u0344\u0374\u037e\u0387\u0958\u09cb\u0f73\u0f81\u1b06\u1e9b\u212b\u2adc\uf900\ufb1d\ufb2c각힣\U0001109a\U00011938\U0001d15e\U0002f800"
ODD = "\0\x07\x7f\x80\x9f\xad\u0600\u061c\u070f\u180e\u200c\u200d\u200e\u202e\u2060\u2066\ufdd0\ufffd\ufffe\U000110bd\U0001bca0\U000e0001\U000e0041\U000e0100\U0010ffff"
CJK = "㐀䶿一鿿豈﫿\U00020000\U0002a6df\U0002a6e0\U0002b81f\U0002b820\U0002b91f\U0002b920\U0002ceaf\U0002ceb0\U0002f800\U0002fa1f\U00030000ひらカナ한글々〇"
PUNCTUATION = "$+<=>^`|~.,;:!?-_'\"()[]{}@#%&*/\\¡§«¿‐–—‘’“”…‰′⁂₍∑−€±×÷«»、。「」！？～､؟।॥\u166d\u1bfc\u2e43\u2e52\U000111c9\U00010f55"
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "1️⃣", "☃️", "🏴\U000e0067\U000e0062\U000e007f", "🫠", "\U0001fae9"]
DIGITS = "0123456789²³¼½Ⅷ٠٩०९௧๑༡①⑳㊿𝟘𝟿\U00010d40\U00011bf0\U0001ccf0"
TOKENS = ["[MASK]", "[CLS]", "[SEP]", "[mask]", "[MASK", "MASK]", "<|endoftext|>", "<|end", "<s>", "</s>", "wörd", "WÖRD",
          "yes", "Yes", "##ing", "[UNK]", "  ", "'s", "'re", "'LL", " 've", "don't", "I'm", "''ll"]
WORDS = "what is the capital of Kentucky who invented telephone When Was THE first Naïve café résumé straße".split()
BROKEN = [b"\x80", b"\xbf\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe0\x80\x80", b"\xe2\x82", b"\xed\xa0\x80",
          b"\xed\xbf\xbf", b"\xf0\x9f\x98", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xff\xfe", b"\xe2\x28\xa1"]
MARKS = [chr(c) for c in range(0x20000) if unicodedata.combining(chr(c))] + ["\u0903", "\u1734", "\u20dd", "\u0488"]
PLANES = [(0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000), (0x20000, 0x33480), (0xE0000, 0xE01F0),
          (0xF0000, 0x110000)]


class Lines:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.next_code = 0

    def some(self, characters, most):
        return "".join(self.random.choice(characters) for _ in range(self.random.randint(1, most)))

    def any_character(self):
        low, high = self.random.choice(PLANES)
        return chr(self.random.randrange(low, high))

    def marked(self):
        base = self.random.choice([self.some(DECOMPOSED, 2), self.any_character(), "a", "I", "", ".", "'"])
        return base + self.some(MARKS, 6)

    def piece(self):
        choose = self.random.choice
        return choose([
            lambda: choose(WORDS), lambda: choose(WORDS), lambda: choose(TOKENS), lambda: self.some(SPACES, 3),
            lambda: self.some(ODD_CASES, 4), lambda: self.some(DECOMPOSED, 3), lambda: self.some(ODD, 2),
            lambda: self.some(CJK, 4), lambda: self.some(PUNCTUATION, 4), lambda: choose(EMOJI),
            lambda: self.some(DIGITS, 5), self.marked, self.any_character,
            lambda: " " * self.random.randint(1, 4)])()

    def sweep(self):
        """Characters that follow each other: some thousand lines go through all that is assigned, and more."""
        start = self.next_code
        self.next_code = (start + 64) % 0x33480
        codes = [c for c in range(start, start + 64) if not 0xD800 <= c <= 0xDFFF]
        return self.random.choice(["", " ", "a", "1", "."]).join(map(chr, codes))

    def long_word(self):
        length = self.random.choice([1, 31, 32, 33, 63, 64, 65, 98, 99, 100, 101, 102, 300, 2000])
        return self.some("abcxyzé中", 1) * length + self.random.choice(["", "s", "é", ".", " a"])

    def broken(self):
        parts = [self.piece().encode("utf-8", "surrogatepass") for _ in range(self.random.randint(1, 8))]
        for _ in range(self.random.randint(1, 4)):
            parts.insert(self.random.randint(0, len(parts)), self.random.choice(BROKEN))
        return b"".join(parts)

    def line(self):
        kind = self.random.random()
        if kind < 0.1:
            return self.broken()
        if kind < 0.12:
            return self.random.randbytes(self.random.randint(0, 40))
        if kind < 0.45:
            text = self.sweep()
        elif kind < 0.5:
            text = self.long_word()
        else:
            text = self.random.choice(["", "", " "]).join(self.piece() for _ in range(self.random.randint(0, 14)))
        return text.encode()


def hostile_lines(count, seed=2026):
    lines = Lines(seed)
    return [lines.line().replace(b"\n", b" ") for _ in range(count)]


def main():
    numbers = [int(word) for word in sys.argv[1:]]
    sys.stdout.buffer.write(b"".join(line + b"\n" for line in hostile_lines(*(numbers or [10_000]))))


if __name__ == "__main__":
    main()
