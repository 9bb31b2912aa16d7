"""Loading images side by side: JPEG files to two augmented views each, as SimCLR takes them, by russet's loader and by
PyTorch's DataLoader with torchvision's transforms. Alternating processes, medians of the ratios.

Usage: compare_loading.py FOLDER [--size 32] [--images 2000] [--workers N] [--pairs 7] [--montage HEIGHTxWIDTH]
FOLDER has a subfolder of JPEG files for each class. Both sides take the same files, views of --size pixels and as many
workers (threads here, processes there; all cores are the usual). --montage makes larger files of those of FOLDER, since
photographs are: tiles of twice their sizes. Run it with the Python of scripts/golden/setup.sh.
A ratio is russet's rate over PyTorch's, by the clock and by the time of the processor, which other programs' load leaves
alone.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 64
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def views(size):
    """What apps/russet/run/task.cpp's views_of makes, two of each image."""
    from torchvision import transforms

    small = size < 64
    strength = 0.5 if small else 1.0
    jitter = transforms.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    steps = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(),
             transforms.RandomApply([jitter], 0.8), transforms.RandomGrayscale(0.2)]
    if not small:
        steps.append(transforms.RandomApply([transforms.GaussianBlur(size // 20 * 2 + 1, (0.1, 2.0))], 0.5))
    one = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    return lambda image: (one(image), one(image))


def processor_seconds():
    """Of this process and its workers."""
    used = time.process_time()
    for child in multiprocessing.active_children():
        fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def torch_side(folder, size, images, workers):
    import torch
    import torchvision

    torch.manual_seed(0)
    dataset = torchvision.datasets.ImageFolder(folder, views(size))
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=images)
    loader = torch.utils.data.DataLoader(dataset, BATCH, sampler=sampler, num_workers=workers,
                                         persistent_workers=workers > 0)
    for _ in loader:  # files are in the system's cache, workers are there
        pass
    start, used = time.perf_counter(), processor_seconds()
    count = sum(len(labels) for _, labels in loader)
    seconds = time.perf_counter() - start
    print(json.dumps({"images": count, "seconds": seconds, "processor_seconds": processor_seconds() - used}))


def last_json(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return json.loads(lines[-1])


def make_montages(source, target, height, width, count=128):
    """JPEG files of tiles: images of `source`, twice as large."""
    from PIL import Image

    paths, draw = sorted(source.rglob("*.jpg")), random.Random(0)
    with Image.open(paths[0]) as first:
        tile = (2 * first.width, 2 * first.height)
    for number in range(count):
        montage = Image.new("RGB", (width, height))
        for top in range(0, height, tile[1]):
            for left in range(0, width, tile[0]):
                with Image.open(draw.choice(paths)) as image:
                    montage.paste(image.convert("RGB").resize(tile, Image.Resampling.BICUBIC), (left, top))
        place = target / f"class{number % 4}"
        place.mkdir(parents=True, exist_ok=True)
        montage.save(place / f"{number:03}.jpg", quality=90)


def compare(arguments, folder):
    common = [folder, arguments.size, arguments.images, arguments.workers]
    commands = {"torch": [sys.executable, __file__, "--peer", *common], "russet": [arguments.bench, *common]}
    pairs = []
    for number in range(arguments.pairs):
        order = ("torch", "russet") if number % 2 == 0 else ("russet", "torch")
        pairs.append({side: last_json(commands[side]) for side in order})
        print(json.dumps(pairs[-1]), file=sys.stderr, flush=True)
    print(f"{'':<12}{'PyTorch':>12}{'russet':>12}{'ratio':>8}{'lowest':>8}{'highest':>8}   images a second")
    for what, key in (("clock", "seconds"), ("processor", "processor_seconds")):
        rates = [{side: run["images"] / run[key] for side, run in pair.items()} for pair in pairs]
        ratios = [rate["russet"] / rate["torch"] for rate in rates]
        middle = {side: statistics.median(rate[side] for rate in rates) for side in ("torch", "russet")}
        print(f"{what:<12}{middle['torch']:>12.1f}{middle['russet']:>12.1f}{statistics.median(ratios):>8.2f}"
              f"{min(ratios):>8.2f}{max(ratios):>8.2f}")


def main():
    if sys.argv[1:2] == ["--peer"]:
        return torch_side(sys.argv[2], *map(int, sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--montage")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build" / "bench" / "loader_bench")
    arguments = parser.parse_args()
    if not arguments.montage:
        return compare(arguments, arguments.folder)
    with tempfile.TemporaryDirectory() as folder:
        make_montages(arguments.folder, pathlib.Path(folder), *map(int, arguments.montage.split("x")))
        return compare(arguments, folder)


if __name__ == "__main__":
    sys.exit(main())
