"""Golden values of SimCLR: torchvision's augmentations with given parameters, the loss with its gradients, and the votes
of nearest neighbours.

Usage: simclr.py OUTPUT_FOLDER [--draws N]     writes simclr.json.gz; docs/golden.md describes it. With N further changes
of each kind, whose numbers are drawn.
"""

import argparse
import base64
import gzip
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision.transforms import InterpolationMode, functional

import generator

SEED = 15
HEIGHT, WIDTH = 23, 31

# Name of the change, its numbers, what torchvision makes of them.
CHANGES = [
    *[["adjust_brightness", [f], functional.adjust_brightness] for f in (0.0, 0.2, 0.7311, 1.0, 1.37, 1.8)],
    *[["adjust_contrast", [f], functional.adjust_contrast] for f in (0.0, 0.2, 0.7311, 1.0, 1.37, 1.8)],
    *[["adjust_saturation", [f], functional.adjust_saturation] for f in (0.0, 0.2, 0.7311, 1.0, 1.37, 1.8)],
    *[["adjust_hue", [f], functional.adjust_hue] for f in (-0.5, -0.2, -0.0713, 0.0, 0.1, 0.1999, 0.5)],
    ["to_grayscale", [], lambda image: functional.rgb_to_grayscale(image, num_output_channels=3)],
    *[["gaussian_blur", [k, s], functional.gaussian_blur]
      for k, s in ((3, 0.1), (3, 0.8), (5, 1.3), (9, 2.0), (23, 1.7), (1, 1.0))],
    *[["resized_crop", box, lambda image, *box: functional.resized_crop(
        image, *box[:4], [box[4], box[4]], InterpolationMode.BILINEAR)]
      for box in ([2, 3, 11, 9, 16], [0, 0, 23, 31, 8], [5, 20, 4, 11, 32], [7, 1, 16, 16, 16])],
    ["hflip", [], functional.hflip],
]


def picture():
    """Noise on a slope: flat and bright, dark and colourful places."""
    noise = generator.integer(SEED, 0, [HEIGHT, WIDTH, 3], -60, 61)
    rows, columns, channels = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), np.arange(3), indexing="ij")
    pixels = np.clip(noise + rows * 9 + columns * 4 * (channels == 1) + 40 * (channels == 2), 0, 255)
    pixels[:3] = pixels[:3, :, :1]  # grey
    return pixels.astype(np.uint8)


def text_of(pixels):
    return base64.b64encode(np.ascontiguousarray(pixels, dtype=np.uint8).tobytes()).decode()


def drawn(count):
    """Changes as in CHANGES, with numbers from SimCLR's ranges."""
    made = {name: change for name, _, change in CHANGES}
    found = []
    for draw in range(count):
        jitter = generator.real(SEED, 1000 + draw, [4], 0.2, 1.8).astype(float)
        names = ("adjust_brightness", "adjust_contrast", "adjust_saturation")
        found += [[name, [float(factor)], made[name]] for name, factor in zip(names, jitter)]
        found.append(["adjust_hue", [float(jitter[3] - 1) / 4], made["adjust_hue"]])
        sigma = float(generator.real(SEED, 2000 + draw, [1], 0.1, 2.0)[0])
        found.append(["gaussian_blur", [3 + 2 * (draw % 11), sigma], made["gaussian_blur"]])
        share = generator.uniform(SEED, 3000 + draw, 5)
        height, width = 1 + int(share[0] * HEIGHT), 1 + int(share[1] * WIDTH)
        top, left = int(share[2] * (HEIGHT - height + 1)), int(share[3] * (WIDTH - width + 1))
        found.append(["resized_crop", [top, left, height, width, 1 + int(share[4] * 40)], made["resized_crop"]])
    return found


def changes(draws):
    image = Image.fromarray(picture())
    found = []
    for name, numbers, change in CHANGES + drawn(draws):
        result = np.asarray(change(image, *numbers))
        found.append({"name": name, "numbers": numbers, "shape": list(result.shape), "pixels": text_of(result)})
    # As in ColorJitter: one after the other.
    result = functional.adjust_contrast(functional.adjust_hue(functional.adjust_brightness(image, 1.3), -0.08), 0.6)
    found.append({"name": "sequence", "numbers": [], "shape": list(picture().shape), "pixels": text_of(result)})
    return found


def nt_xent(projections, temperature):
    """Rows 2i and 2i + 1 are views of one image."""
    rows = F.normalize(projections, dim=1)
    count = rows.shape[0]
    terms = []
    for i in range(count):
        similarities = rows @ rows[i] / temperature
        others = torch.cat([similarities[:i], similarities[i + 1:]])
        terms.append(torch.logsumexp(others, 0) - similarities[i ^ 1])
    return torch.stack(terms).mean()


def losses():
    found = []
    for offset, (count, width, temperature) in enumerate([(2, 3, 0.5), (8, 16, 0.5), (12, 5, 0.07), (64, 128, 0.1)]):
        x = torch.from_numpy(generator.real(SEED, 10 + offset, [count, width])).double().requires_grad_()
        loss = nt_xent(x, temperature)
        loss.backward()
        found.append({"shape": [count, width], "offset": 10 + offset, "temperature": temperature,
                      "loss": loss.item(), "gradient": x.grad.flatten().tolist()})
    return found


def votes():
    """Wu et al. 2018, by a loop over the queries."""
    found = []
    for offset, (queries, bank, width, classes, count) in enumerate([(5, 40, 8, 3, 10), (7, 30, 4, 10, 200)]):
        x = torch.from_numpy(generator.real(SEED, 30 + offset, [queries, width])).double()
        known = torch.from_numpy(generator.real(SEED, 40 + offset, [bank, width])).double()
        labels = torch.from_numpy(generator.integer(SEED, 50 + offset, [bank], 0, classes))
        sums = torch.zeros(queries, classes, dtype=torch.float64)
        for q in range(queries):
            similarity = F.cosine_similarity(x[q][None], known)
            for place in similarity.argsort(descending=True)[:count]:
                sums[q, labels[place]] += torch.exp(similarity[place] / 0.1)
        found.append({"queries": queries, "bank": bank, "width": width, "classes": classes, "neighbours": count,
                      "offset": offset, "votes": sums.flatten().tolist()})
    return found


def write(folder, draws):
    record = {"height": HEIGHT, "width": WIDTH, "image": text_of(picture()), "changes": changes(draws),
              "losses": losses(), "votes": votes()}
    path = pathlib.Path(folder) / "simclr.json.gz"
    path.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 9, mtime=0))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--draws", type=int, default=0)
    arguments = parser.parse_args()
    path = write(arguments.folder, arguments.draws)
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
