"""What Hugging Face's tokenizers take each character for: writes src/text/character_table.h.

Usage: characters.py OUTPUT_FILE        (needs the packages of text_requirements.txt)

The crates behind `tokenizers` follow Unicode 8 here, 12 there, and 16 elsewhere, so its own answers are the table: each
character is shown to the normalizer, the pre-tokenizers and an added token, and what becomes of it is noted.
"""

import pathlib
import sys

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

BERT = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
IOTA, COMMA = "\u0345", "\u0315"  # marks of the classes 240, which is the highest, and 232
HEADER = """#pragma once
// Written by scripts/golden/characters.py from the answers of Hugging Face's tokenizers {version}: the characters of each
// class, as first and last of a range.
#include "text/characters.h"

namespace russet::text {{

// clang-format off
"""


def clean(character):
    return normalizers.BertNormalizer(**BERT | {"clean_text": True}).normalize_str(character)


def matches_alone(character):
    """Whether a token that must be a word of its own is found before the character."""
    return len(matches_alone.tokenizer.encode("x" + character).ids) == 1


matches_alone.tokenizer = Tokenizer(models.BPE())
matches_alone.tokenizer.add_tokens([AddedToken("x", single_word=True, normalized=False)])
strip = normalizers.BertNormalizer(**BERT | {"strip_accents": True}).normalize_str
nfd = normalizers.NFD().normalize_str
bert = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str


def is_reordered(c):
    return nfd(c) == c and (nfd(IOTA + c) == c + IOTA != IOTA + c or nfd(c + COMMA) == COMMA + c != c + COMMA)


CLASSES = {
    "removed": lambda c: clean(c) == "",
    "mark": lambda c: strip(c) == "",
    "punctuation": lambda c: len(bert("a" + c + "a")) == 3,
    "letter": lambda c: len(byte_level("a" + c)) == 1,
    "number": lambda c: len(byte_level("1" + c)) == 1,
    "decomposed": lambda c: nfd(c) != c,
    "reordered": is_reordered,
    "word": lambda c: not matches_alone(c),
}


def ranges(characters):
    found = []
    for code in map(ord, characters):
        # Nothing asks for the class of a surrogate, so ranges may go across them.
        if found and (code == found[-1][1] + 1 or (code, found[-1][1]) == (0xE000, 0xD7FF)):
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def rows(cells):
    line = "   "
    for cell in cells:
        if len(line) + len(cell) > 118:
            yield line
            line = "   "
        line += " " + cell
    yield line


def main():
    text = HEADER.format(version=tokenizers.__version__)
    for name, holds in CLASSES.items():
        cells = [f"{{0x{first:X},0x{last:X}}}," for first, last in ranges(filter(holds, CHARACTERS))]
        text += f"inline constexpr CharacterRange {name}_characters[] = {{\n" + "\n".join(rows(cells)) + "\n};\n"
        print(f"{name}: {len(cells)} ranges")
    pathlib.Path(sys.argv[1]).write_text(text + "// clang-format on\n\n}  // namespace russet::text\n")


if __name__ == "__main__":
    main()
