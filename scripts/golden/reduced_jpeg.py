"""Golden values of JPEG files that are decoded to a part of their size: what Pillow makes of them (Image.draft), and
torchvision's crops of the whole files, which crops of reduced ones stand for.

Usage: reduced_jpeg.py OUTPUT_FOLDER     writes reduced_jpeg.json.gz; docs/golden.md describes it.
"""

import gzip
import io
import json
import pathlib
import sys

import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode, functional

import generator

SEED = 23
HEIGHT, WIDTH = 91, 118
# Pillow's options of a file.
FILES = [{"quality": 92, "subsampling": 0}, {"quality": 75, "subsampling": 2}, {"quality": 85, "subsampling": 2,
                                                                               "progressive": True}]
# top, left, height, width, size: of crops at least 2, 4 and 8 times as large as what becomes of them.
CROPS = [[0, 0, HEIGHT, WIDTH, 40], [11, 7, 53, 61, 25], [17, 33, 67, 83, 16], [1, 2, 89, 103, 11]]


def picture():
    """As photographs are: noise of all scales, the larger the stronger, and edges."""
    total = np.zeros([HEIGHT, WIDTH, 3])
    for octave in range(6):
        side = 2 << octave
        noise = generator.real(SEED, octave, [side, side, 3], 0.0, 255.0).astype(np.float32)
        planes = [Image.fromarray(noise[..., c]).resize((WIDTH, HEIGHT), Image.BICUBIC) for c in range(3)]
        total += np.stack([np.asarray(plane) for plane in planes], -1) * 0.5 ** octave
    pixels = np.clip(total / total.max() * 255, 0, 255)
    pixels[30:60, 40:80, 1] = 255 - pixels[30:60, 40:80, 1]
    return pixels.astype(np.uint8)


def flat(image):
    return np.asarray(image).flatten().tolist()


def record(options):
    file = io.BytesIO()
    Image.fromarray(picture()).save(file, "JPEG", **options)
    reduced = []
    for n in (2, 4, 8):
        image = Image.open(io.BytesIO(file.getvalue()))
        image.draft("RGB", (WIDTH // n, HEIGHT // n))
        reduced.append({"n": n, "height": image.height, "width": image.width, "pixels": flat(image)})
    whole = Image.open(io.BytesIO(file.getvalue())).convert("RGB")
    crops = [{"box": box, "pixels": flat(functional.resized_crop(whole, *box[:4], [box[4], box[4]],
                                                                InterpolationMode.BILINEAR))} for box in CROPS]
    return {"file": list(file.getvalue()), "height": HEIGHT, "width": WIDTH, "reduced": reduced, "crops": crops}


def main():
    path = pathlib.Path(sys.argv[1]) / "reduced_jpeg.json.gz"
    text = json.dumps([record(options) for options in FILES], separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
