"""russet and PyTorch side by side: alternating processes, medians of the ratios, raw pairs kept.

Usage: compare_torch.py [MODEL...] [--device cpu|cuda] [--phase train|eval] [--precision fp32|bf16] [--pairs 7]
                        [--seconds 3] [--modes MODE,...] [--together N] [--out FILE]
Each case: PyTorch runs once in each of its modes (eager, compiled, on a GPU compiled to graphs as well); the fastest,
and what is within 15 % of it, then run against `russet bench` in pairs, the order swapped from pair to pair, with a
probe of the machine before each pair. They are processes of their own, which start side by side, one at work at a
time afterwards; PyTorch's wait between pairs, compiled and warm, russet's start anew.
With --together N the processes of N cases start side by side, before the first of these is measured: all of them need
room in memory. With --modes PyTorch runs in the modes that are named alone, such as graph.
A ratio is PyTorch's time over russet's: above 1 russet is the faster one. Measure on an otherwise idle machine.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ["mlp", "lenet5", "resnet18_cifar", "resnet50", "vit_b_16", "bert_base"]
CLOSE = 1.15


def last_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    return json.loads(lines[-1])


class Peer:
    """A process of torch_peer.py that measures whenever it is asked; it is ready() after its first step."""

    def __init__(self, python, *options):
        self.command = list(map(str, [python, ROOT / "bench" / "torch_peer.py", *options, "--serve"]))
        # One pipe for both: an unread one would fill up with warnings and stop the process.
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

    def ready(self):
        self.answer()
        return self

    def answer(self):
        words = ""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
            words += line
        raise RuntimeError(f"{' '.join(self.command)} failed:\n{words[-1500:]}")

    def measure(self):
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()


class Case:
    def __init__(self, model, phase, precision, arguments, probe):
        self.probe = probe
        self.model, self.phase, self.precision, self.arguments = model, phase, precision, arguments
        self.options = ["--phase", phase, "--precision", precision, "--seconds", str(arguments.seconds),
                        "--device", arguments.device]
        self.batch = arguments.batch

    def russet(self):
        batch = ["--batch", str(self.batch)]
        return last_json([self.arguments.russet, "bench", self.model, *self.options, *batch, "--json"])

    def modes(self):
        if self.arguments.modes:
            return self.arguments.modes.split(",")
        return ("eager", "compile", "graph") if self.arguments.device == "cuda" else ("eager", "compile")

    def peer(self, mode):
        batch = ["--batch", self.batch] if self.batch else []
        return Peer(self.arguments.python, self.model, *self.options, *batch, "--mode", mode)

    def start(self):
        self.started = {mode: self.peer(mode) for mode in self.modes()}

    def wait(self):
        """Until PyTorch has taken a first step in each of its modes."""
        self.ready = {}
        for mode, peer in self.started.items():
            try:
                self.ready[mode] = peer.ready()
            except RuntimeError as error:
                print(f"  PyTorch, {self.model}, {mode}: {str(error).splitlines()[-1]}", file=sys.stderr)

    def peers(self):
        """The fastest of PyTorch's modes, and what is close; and what they took once."""
        peers, trial = self.ready, {}
        for mode, peer in peers.items():
            first = peer.measure()
            trial[mode], self.batch = first["ms"], first["batch"]
        if not trial:
            raise RuntimeError(f"PyTorch runs {self.model} in no mode")
        best = min(trial.values())
        for mode in [mode for mode, ms in trial.items() if ms > CLOSE * best]:
            peers.pop(mode).end()
        return peers, trial

    def pair(self, peers, torch_first):
        record = {"probe": self.probe.measure()}
        for side in ("torch", "russet") if torch_first else ("russet", "torch"):
            if side == "torch":
                record[side] = {mode: peer.measure() for mode, peer in peers.items()}
            else:
                record[side] = self.russet()
        record["torch_ms"] = min(run["ms"] for run in record["torch"].values())
        record["ratio"] = record["torch_ms"] / record["russet"]["ms"]
        return record

    def run(self):
        peers, trial = self.peers()
        pairs = []
        for number in range(self.arguments.pairs):
            pairs.append(self.pair(peers, number % 2 == 0))
            now = pairs[-1]
            print(f"  {number + 1}: torch {now['torch_ms']:.3f} ms, russet {now['russet']['ms']:.3f} ms, ratio "
                  f"{now['ratio']:.3f}; machine {now['probe']}", file=sys.stderr, flush=True)
        for peer in peers.values():
            peer.end()
        ratios = [pair["ratio"] for pair in pairs]
        return {
            "model": self.model, "phase": self.phase, "precision": self.precision,
            "batch": pairs[0]["russet"]["batch"], "modes": sorted(peers), "trial_ms": trial,
            "ratio": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios),
            "torch_ms": statistics.median(pair["torch_ms"] for pair in pairs),
            "russet_ms": statistics.median(pair["russet"]["ms"] for pair in pairs),
            "probe": {key: statistics.median(pair["probe"][key] for pair in pairs) for key in pairs[0]["probe"]},
            "pairs": pairs,
        }


def print_row(result):
    probe = result["probe"]
    print(f"{result['model']:<15} {result['phase']:<6} {result['precision']:<5} {result['batch']:>5} "
          f"{result['torch_ms']:>10.3f} {'/'.join(result['modes']):<14} {result['russet_ms']:>10.3f} "
          f"{result['ratio']:>7.3f} {result['lowest']:>7.3f} {result['highest']:>7.3f}   "
          f"{probe['gflops_' + result['precision']]:>8.1f} {probe['gbytes']:>7.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--phase", choices=["train", "eval"])
    parser.add_argument("--precision", choices=["fp32", "bf16"])
    parser.add_argument("--batch", type=int)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--modes", help="eager, compile, graph: those that PyTorch runs in")
    parser.add_argument("--together", type=int, default=1, metavar="N")
    parser.add_argument("--python", default=ROOT / "build" / "torch-venv" / "bin" / "python")
    parser.add_argument("--russet", default=ROOT / "build" / "bin" / "russet")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "compare_torch.json")
    arguments = parser.parse_args()
    results = []
    print(f"{'model':<15} {'phase':<6} {'type':<5} {'batch':>5} {'torch ms':>10} {'mode':<14} {'russet ms':>10} "
          f"{'ratio':>7} {'lowest':>7} {'highest':>7}   {'GFLOP/s':>8} {'GB/s':>7}", flush=True)
    probe = Peer(arguments.python, "--probe", "--device", arguments.device).ready()
    cases = [Case(model, phase, precision, arguments, probe)
             for model in arguments.models or MODELS
             for precision in ([arguments.precision] if arguments.precision else ["fp32", "bf16"])
             for phase in ([arguments.phase] if arguments.phase else ["train", "eval"])]
    for first in range(0, len(cases), arguments.together):
        group = cases[first:first + arguments.together]
        for case in group:
            case.start()
        for case in group:
            case.wait()
        for case in group:
            results.append(case.run())
            print_row(results[-1])
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    probe.end()
    print(f"raw pairs: {arguments.out}")


if __name__ == "__main__":
    main()
