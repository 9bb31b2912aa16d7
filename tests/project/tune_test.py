#!/usr/bin/env python3
"""tune_test.py RUSSET: training on the simulated Apple GPU with tuned tiles leaves the same bits as without.

What RUSSET_TUNE=on found is kept and used again; damaged finds and those of another GPU are not; whatever tile a find
names, the weights after two steps are the same. Exit status 77 if there is no simulated GPU."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TRAIN = ["lenet5", "--width", "0.5", "--data", "shapes", "--holdout", "0", "--batch", "8", "--workers", "1", "--steps", "2",
         "--device", "mps"]
TILES = [[rows, columns, depth] for rows in (32, 64) for columns in (32, 64) for depth in (16, 32)]


class Trial:
    def __init__(self, russet, scratch):
        self.russet, self.scratch, self.count = russet, scratch, 0
        self.cache = scratch / "cache"
        self.cache.mkdir()
        home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "russet"
        compiled = pathlib.Path(os.environ.get("RUSSET_CACHE") or home) / "simulator"
        compiled.mkdir(parents=True, exist_ok=True)
        (self.cache / "simulator").symlink_to(compiled)  # what the simulator compiled before serves here, too

    def train(self, tune=""):
        """The bits of the weights, and what was said."""
        environment = dict(os.environ, RUSSET_METAL="simulator", RUSSET_SIMULATOR="unchecked", RUSSET_LOG="kernels",
                           RUSSET_CACHE=str(self.cache), RUSSET_TUNE=tune, OMP_NUM_THREADS="1")
        self.count += 1
        out = self.scratch / f"run{self.count}"
        done = subprocess.run([self.russet, "train", *TRAIN, "--out", str(out)], env=environment, capture_output=True,
                              text=True, timeout=500)
        if done.returncode != 0 and "mps is not available" in done.stderr:
            sys.exit(77)
        strange = [line for line in done.stderr.splitlines() if not line.startswith(("russet kernels: ", "russet cache: "))]
        if done.returncode != 0 or strange:
            sys.exit(f"RUSSET_TUNE={tune} ended with {done.returncode} and said:\n" + "\n".join(strange))
        return (out / "model.safetensors").read_bytes(), done.stderr

    def finds(self):
        return list((self.cache / "finds").glob("*.json"))


def tuned_in(said):
    """The contractions that took a tile that was found, and which."""
    return sorted(line for line in said.splitlines() if line.endswith(", tuned"))


def require(condition, what):
    if not condition:
        sys.exit(what)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        trial = Trial(sys.argv[1], pathlib.Path(scratch))
        wanted, said = trial.train("off")
        require(", tuned" not in said and not trial.finds(), "RUSSET_TUNE=off tunes")
        bits, said = trial.train("on")
        measured = said.count("is taken")
        require(measured >= 5 and len(trial.finds()) == 1, f"RUSSET_TUNE=on measured {measured} contractions")
        require(bits == wanted, "weights differ after RUSSET_TUNE=on")
        tuned = tuned_in(said)
        require(tuned, "the table's tiles were the best for all contractions")
        bits, said = trial.train()
        require("is taken" not in said and tuned_in(said) == tuned, "what was found is not used")
        require(bits == wanted, "weights differ with what was found")

        file = trial.finds()[0]
        whole = json.loads(file.read_text())
        used = set()
        for tile in TILES:
            for entry in whole["tiles"].values():
                entry["tile"] = tile
            file.write_text(json.dumps(whole))
            bits, said = trial.train()
            if ", tuned" in said:
                used.add(tuple(tile))
            require(bits == wanted, f"weights differ with tiles of {tile}")
        require(len(used) >= 6, f"only tiles of {used} were used")

        file.write_text(json.dumps(dict(whole, gpu="another")))
        _, said = trial.train()
        require(", tuned" not in said and "another GPU's" in said, "another GPU's finds are used")
        require(not file.exists(), "another GPU's finds are kept")
        file.write_text(json.dumps(whole)[:300])
        bits, said = trial.train("on")
        require("cannot be read" in said and said.count("is taken") == measured, "damaged finds are not made anew")
        require(bits == wanted, "weights differ after damaged finds")
        print(f"{measured} contractions, {len(used)} tiles, the same weights in {trial.count} runs")


if __name__ == "__main__":
    main()
