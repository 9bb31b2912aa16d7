"""Random programs of views, in-place writes, no_grad regions and backward passes, and what PyTorch made of each step.

Usage: random_programs.py OUTPUT_FOLDER [COUNT]     writes random_programs.txt.gz; docs/golden.md describes the format.

A value that the tape saved counts as it was when it was saved: PyTorch would refuse to differentiate once such a value
was written to, russet's values cannot be written to. So every saved tensor is copied as it is packed.
"""

import gzip
import pathlib
import random
import re
import sys

import torch

import generator

ERRORS = [
    ("view-of-leaf", r"a view of a leaf Variable that requires grad"),
    ("leaf", r"a leaf Variable that requires grad"),
    ("view-without-grad", r"A view was created in no_grad mode"),
    ("freed", r"backward through the graph a second time"),
    ("no-graph", r"does not require grad"),
    ("not-scalar", r"grad can be implicitly created only for scalar outputs"),
    ("unused", r"appears to not have been used in the graph"),
    ("overlap", r"more than one element of the written-to tensor"),
    ("flag", r"you can only change requires_grad flags of leaf"),
    ("index", r"index out of range"),
    ("division", r"ZeroDivisionError"),
]
LARGEST = 1e4  # of values that are multiplied


def kind_of(error):
    for kind, pattern in ERRORS:
        if re.search(pattern, str(error)):
            return kind
    return "shape"


def join(numbers):
    return ",".join(str(n) for n in numbers) or "-"


def is_leaf(tensor):
    """None for a view made under no_grad whose base was written to since: PyTorch will not say."""
    try:
        return tensor.is_leaf
    except RuntimeError:
        return None


def values_text(tensor):
    values = tensor.detach().flatten().tolist()
    return " ".join(f"{v:.13g}" for v in values) or "-"


class Program:
    """Makes one program step by step, as it runs it."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        self.handles, self.lines, self.leaves = [], [f"P {seed}"], 0
        self.no_grad, self.over = None, False
        self.viewed = set()  # handles that views were taken of, or that are views
        # Views made under no_grad. In grad mode PyTorch calls them leaves that require a gradient and drops what
        # arrives, so there they are only written to, which it refuses.
        self.hidden = set()
        self.views = set()  # handles that view operations made
        self.gradients_seen = set()  # storages of .grad: their versions count how PyTorch's engine adds up
        self.gaps = set()  # storages with lost writes, which russet's versions count
        self.freed, self.freed_by_write, self.detached = False, False, set()

    # What is known of the handles.
    def pick(self, wanted=lambda t: True, hidden=False):
        found = [i for i, t in enumerate(self.handles)
                 if (self.no_grad or hidden or (i not in self.hidden and is_leaf(t) is not None)) and wanted(t)]
        if not found:
            return None
        return found[-1] if self.random.random() < 0.3 else self.random.choice(found)

    def storage(self, tensor):
        return tensor.untyped_storage()._cdata

    def meta(self, index):
        t = self.handles[index]
        alias = next(i for i, other in enumerate(self.handles) if self.storage(other) == self.storage(t))
        flags = ("r" if t.requires_grad else "-") + {True: "l", False: "-", None: "?"}[is_leaf(t)]
        flags = "??" if index in self.hidden or is_leaf(t) is None else flags
        version = "*" if self.storage(t) in self.gradients_seen | self.gaps else t._version
        strides = join(t.stride()) if t.numel() else "?"  # what PyTorch gives empty results follows no rule
        return f"{join(t.shape)};{strides};{t.storage_offset()};{flags};{version};{alias}"

    def largest(self, *indices):
        return max((float(self.handles[i].detach().abs().max()) for i in indices if self.handles[i].numel()), default=0)

    def overlaps(self, tensor):
        """Whether two indices address one element."""
        places = torch.arange(max(tensor.untyped_storage().nbytes() // 8, 1))
        mine = places.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return mine.unique().numel() < mine.numel()

    def clashes(self, target, source):
        """Whether a write reads what it overwrites at another place: PyTorch's result is then undefined."""
        a, b = self.handles[target], self.handles[source]
        if self.storage(a) != self.storage(b):
            return False
        count = a.untyped_storage().nbytes() // 8
        places = torch.arange(max(count, 1))
        mine = places.as_strided(a.shape, a.stride(), a.storage_offset()).flatten().tolist()
        others = places.as_strided(b.shape, b.stride(), b.storage_offset()).flatten().tolist()
        return bool(set(mine) & set(others)) and not (a.shape == b.shape and a.stride() == b.stride())

    # Steps.
    def make(self, text, function):
        """A step whose result is a new handle."""
        try:
            result = function()
        except (RuntimeError, IndexError, ValueError) as error:
            self.lines.append(f"{text} !{kind_of(error)}")
            return None
        made, source = len(self.handles), next((i for i, t in enumerate(self.handles) if t is result), None)
        if source is None and not text.startswith("detach") and result._is_view():
            self.views.add(made)
            if self.no_grad:
                self.hidden.add(made)
        for known in (self.views, self.hidden):
            if source in known:
                known.add(made)
        if text.startswith("grad "):
            self.gradients_seen.add(self.storage(result))
        self.handles.append(result)
        self.lines.append(f"{text} = {self.meta(len(self.handles) - 1)}")
        return len(self.handles) - 1

    def write(self, text, target, function, fits=True):
        """A step that writes in place; without `fits` the shapes are wrong, and so may be other things."""
        try:
            function()
        except (RuntimeError, IndexError, ValueError) as error:
            kind = kind_of(error) if fits or kind_of(error) == "shape" else "any"
            self.lines.append(f"{text} !{kind}")
            return
        self.lines.append(f"{text} = {self.meta(target)}")

    def leaf(self):
        shape = [self.random.choice([1, 2, 2, 3, 3, 4]) for _ in range(self.random.choice([0, 1, 2, 2, 2, 3]))]
        if shape and self.random.random() < 0.04:
            shape[self.random.randrange(len(shape))] = 0
        needs = self.random.random() < 0.65
        values = generator.integer(self.seed, self.leaves, shape, -4, 5)
        self.leaves += 1
        tensor = torch.from_numpy(values).double().clone(memory_format=torch.contiguous_format).requires_grad_(needs)
        self.make(f"leaf {join(shape)} {int(needs)}", lambda: tensor)

    def view(self):
        index = self.pick()
        t, r = self.handles[index], self.random
        rank = t.dim()
        axis = r.randrange(rank) if rank and r.random() > 0.03 else rank
        size = t.shape[axis] if axis < rank else 1
        kind = r.choice(["select", "slice", "slice", "transpose", "permute", "view", "reshape", "reshape", "expand",
                         "squeeze", "squeeze_axis", "unsqueeze", "diagonal", "detach", "t", "narrow", "flatten"])
        made = None
        if kind == "select":
            at = r.randrange(-size, size) if size and r.random() > 0.03 else size
            made = self.make(f"select {index} {axis} {at}", lambda: t.select(axis, at))
        elif kind == "slice":
            start, stop, step = r.randrange(0, size + 1), r.randrange(0, size + 2), r.choice([1, 1, 2, 3])
            if r.random() < 0.3:
                start -= size
            if rank == 0:
                return
            axis = min(axis, rank - 1)
            made = self.make(f"slice {index} {axis} {start} {stop} {step}",
                             lambda: t[(slice(None),) * axis + (slice(start, stop, step),)])
        elif kind == "transpose" and rank:
            other = r.randrange(rank)
            made = self.make(f"transpose {index} {axis} {other}", lambda: t.transpose(axis, other))
        elif kind == "permute":
            order = r.sample(range(rank), rank)
            made = self.make(f"permute {index} {join(order)}", lambda: t.permute(order))
        elif kind in ("view", "reshape"):
            shape = self.other_shape(t)
            made = self.make(f"{kind} {index} {join(shape)}", lambda: getattr(t, kind)(shape))
        elif kind == "expand" and t.numel() < 20:
            shape = [r.choice([2, 3]) if s == 1 and r.random() < 0.7 else s for s in t.shape]
            shape = ([r.choice([1, 2])] if r.random() < 0.4 and rank < 3 else []) + shape
            if r.random() < 0.05:
                shape = [s + 1 for s in shape]
            made = self.make(f"expand {index} {join(shape)}", lambda: t.expand(shape))
        elif kind == "squeeze":
            made = self.make(f"squeeze {index}", t.squeeze)
        elif kind == "squeeze_axis" and rank:
            made = self.make(f"squeeze_axis {index} {axis}", lambda: t.squeeze(axis))
        elif kind == "unsqueeze" and rank < 4:
            at = r.randrange(-rank - 1, rank + 1)
            made = self.make(f"unsqueeze {index} {at}", lambda: t.unsqueeze(at))
        elif kind == "diagonal" and rank >= 2:
            a, b = r.sample(range(rank), 2) if r.random() > 0.03 else (0, 0)
            offset = r.choice([0, 0, 1, -1])
            made = self.make(f"diagonal {index} {offset} {a} {b}", lambda: t.diagonal(offset, a, b))
        elif kind == "detach":
            made = self.make(f"detach {index}", t.detach)
        elif kind == "t":
            made = self.make(f"t {index}", t.t)
        elif kind == "narrow" and rank and axis < rank:
            start = r.randrange(0, size + 1)
            length = r.randrange(0, size - start + 1) + (r.random() < 0.03)
            made = self.make(f"narrow {index} {axis} {start} {length}", lambda: t.narrow(axis, start, length))
        elif kind == "flatten":
            made = self.make(f"flatten {index}", t.flatten)
        if made is not None and self.storage(self.handles[made]) == self.storage(t):
            self.viewed.add(index)
            if kind == "detach":
                self.detached.add(made)

    def other_shape(self, t):
        count, r = t.numel(), self.random
        if r.random() < 0.04:
            return [count + 1]
        splits = [[count], [-1], [1, count], [count, 1]]
        splits += [[d, count // d] for d in (2, 3, 4, 6) if count and count % d == 0]
        splits += [[2, -1, d] for d in (2, 3) if count and count % (2 * d) == 0]
        if count == 0:
            splits = [[0], [0, 2]]
        if count == 1:
            splits.append([])
        return r.choice(splits)

    def arithmetic(self):
        r = self.random
        a = self.pick()
        x = self.handles[a]
        kind = r.choice(["add", "add", "sub", "mul", "mul", "mul", "neg", "mul_number", "add_number", "square", "sum_axis",
                         "sin", "tanh", "relu", "matmul", "clone", "contiguous", "cat", "div_number"])
        if kind in ("add", "sub", "mul"):
            fits = r.random() > 0.04
            b = self.pick(lambda t: not fits or broadcasts(t.shape, x.shape))
            if b is None or (kind == "mul" and self.largest(a) * self.largest(b) > LARGEST):
                return
            self.make(f"{kind} {a} {b}", lambda: getattr(torch, kind)(x, self.handles[b]))
        elif kind == "matmul":
            b = self.pick(lambda t: t.dim() == 2 and x.dim() == 2 and t.shape[0] == x.shape[1])
            if b is None or self.largest(a) * self.largest(b) > LARGEST:
                return
            self.make(f"matmul {a} {b}", lambda: torch.matmul(x, self.handles[b]))
        elif kind == "cat":
            b = self.pick(lambda t: t.dim() == x.dim() > 0 and t.shape[1:] == x.shape[1:] and (t.dim() > 1 or t.numel() * x.numel()))
            if b is not None:
                self.make(f"cat {a} {b}", lambda: torch.cat([x, self.handles[b]]))
        elif kind in ("neg", "sin", "tanh", "relu"):
            self.make(f"{kind} {a}", lambda: getattr(torch, kind)(x))
        elif kind == "square":
            if self.largest(a) ** 2 <= LARGEST:
                self.make(f"square {a}", lambda: torch.square(x))
        elif kind.endswith("number"):
            n = r.choice([2, 3, -1]) if kind != "div_number" else r.choice([2, 4])
            if self.largest(a) > LARGEST:
                return
            function = {"mul_number": torch.mul, "add_number": torch.add, "div_number": torch.div}[kind]
            self.make(f"{kind} {a} {n}", lambda: function(x, n))
        elif kind == "sum_axis":
            if x.dim():
                axis = r.randrange(x.dim()) if r.random() > 0.03 else x.dim()
                self.make(f"sum_axis {a} {axis}", lambda: x.sum(axis))
        elif kind == "clone":
            self.make(f"clone {a}", x.clone)
        else:
            self.make(f"contiguous {a}", x.contiguous)

    def shared(self):
        """Two tensors used up to 100 times."""
        a, count = self.pick(), self.random.choice([2, 3, 5, 10, 34, 50, 100])
        x = self.handles[a]
        b = self.pick(lambda t: t.shape == x.shape)
        if b is None or not x.numel() or self.largest(a) * self.largest(b) > 100:
            return
        self.make(f"shared {a} {b} {count}", lambda: use_often(x, self.handles[b], count))

    def index(self):
        """Rows by numbers that are computed. Where one names nothing, what depends on it has not happened."""
        a, r = self.pick(lambda t: t.dim() and t.numel()), self.random
        if a is None:
            return
        x = self.handles[a]
        axis = r.randrange(x.dim())
        numbers = [r.randrange(x.shape[axis]) for _ in range(r.randrange(1, 4))]
        select = lambda: torch.index_select(x, axis, torch.tensor(numbers))
        text = f"{a} {axis} "
        if r.random() < 0.5:
            self.make(f"index_select {text}{join(numbers)}", select)
            return
        numbers[r.randrange(len(numbers))] = r.choice([x.shape[axis], x.shape[axis] + 2, -1])
        text += join(numbers)
        kind = r.choice(["lost_select", "lost_write", "lost_backward"])
        if kind == "lost_select":
            self.fail(f"lost_select {text}", select)
        elif kind == "lost_write":
            if not x.requires_grad and not self.overlaps(x) and a not in self.hidden:
                self.fail(f"lost_write {text}", lambda: x.add_(select().sum()))
                self.gaps.add(self.storage(x))
        elif x.requires_grad and not self.no_grad and not self.freed:
            self.fail(f"lost_backward {text}", lambda: select().square().sum().backward(retain_graph=True))

    def divide(self):
        a = self.pick(lambda t: t.numel())
        x = self.handles[a]
        self.fail(f"lost_quotient {a}", lambda: x.detach().long() // torch.zeros_like(x, dtype=torch.int64))

    def fail(self, text, call):
        try:
            call()
        except (IndexError, RuntimeError) as error:
            self.lines.append(f"{text} !{kind_of(error)}")
        else:
            raise AssertionError(text)

    def in_place(self):
        r = self.random
        careful = r.random() > 0.08 and not self.no_grad
        a = self.pick(lambda t: not careful or not (is_leaf(t) and t.requires_grad))
        if self.hidden and not self.no_grad and r.random() < 0.2:
            a = r.choice(sorted(self.hidden))
        if a is None:
            return
        x = self.handles[a]
        if is_leaf(x) is None and not self.no_grad:
            return
        kind = r.choice(["add_", "add_", "sub_", "mul_", "mul_", "copy_", "copy_", "zero_", "fill_", "add_number_",
                         "mul_number_", "div_number_"])
        if self.overlaps(x) and (kind == "copy_" or (kind in ("zero_", "fill_") and x.requires_grad)):
            return
        if kind == "zero_":
            self.write(f"zero_ {a}", a, x.zero_)
        elif kind == "fill_" or kind.endswith("number_"):
            n = r.choice([2, 3, -1]) if kind != "div_number_" else r.choice([2, 4])
            if self.largest(a) > LARGEST:
                return
            function = {"fill_": x.fill_, "add_number_": x.add_, "mul_number_": x.mul_, "div_number_": x.div_}[kind]
            self.write(f"{kind} {a} {n}", a, lambda: function(n))
        else:
            fits = r.random() > 0.05
            b = self.pick(lambda t: not fits or expands(t.shape, x.shape))
            if b is None or self.clashes(a, b) or (kind == "mul_" and self.largest(a) * self.largest(b) > LARGEST):
                return
            other = self.handles[b]
            if self.storage(x) in self.gradients_seen and other.requires_grad:
                return
            self.write(f"{kind} {a} {b}", a, lambda: getattr(x, kind)(other), expands(other.shape, x.shape))

    def mode(self):
        if self.no_grad:
            self.no_grad.__exit__(None, None, None)
            self.no_grad = None
            self.lines.append("grad_mode")
        else:
            self.no_grad = torch.no_grad()
            self.no_grad.__enter__()
            self.lines.append("no_grad")

    def require(self):
        a = self.pick(lambda t: is_leaf(t) and not t.requires_grad)
        if a is None or a in self.viewed | self.views or self.storage(self.handles[a]) in self.gradients_seen:
            return
        shared = [t for t in self.handles if t is not self.handles[a] and self.storage(t) == self.storage(self.handles[a])]
        if not shared or a in self.detached:
            self.write(f"requires_grad_ {a}", a, lambda: self.handles[a].requires_grad_())

    def backward(self):
        r = self.random
        fits = r.random() > 0.06
        a = self.pick(lambda t: (t.requires_grad or not fits) and is_leaf(t) is not None)
        if a is None or a in self.hidden:
            return
        x, retain = self.handles[a], r.random() < 0.4
        if x.numel() != 1 and r.random() < 0.7:
            a = self.make(f"sum {a}", lambda: x.sum())
            x = self.handles[a]
        text, gradient = f"backward {a} {int(retain)}", None
        if x.numel() != 1 and r.random() < 0.9 or r.random() < 0.1:
            offset = 1000 + len(self.lines)
            gradient = torch.from_numpy(generator.integer(self.seed, offset, list(x.shape), -3, 4)).double()
            text += f" {offset}"
        else:
            text += " -"
        try:
            x.backward(gradient, retain_graph=retain)
            self.lines.append(f"{text} = ok")
            self.freed |= not retain
            self.freed_by_write |= not retain and meets_write(x.grad_fn)
        except RuntimeError as error:
            kind = kind_of(error)
            self.over = kind == "freed"  # gradients may have been accumulated in part
            if kind == "freed" and (self.freed_by_write or meets_write(x.grad_fn)):
                kind = "freed-write"
            self.lines.append(f"{text} !{kind}")

    def gradients(self):
        """autograd.grad, with the graph retained."""
        plain = lambda t: t.requires_grad and is_leaf(t) is not None
        out = self.pick(plain)
        if out is None or self.freed:
            return
        chosen = sorted({self.pick(plain) for _ in range(self.random.choice([1, 2]))})
        if self.hidden & {out, *chosen} or not all(is_leaf(self.handles[i]) for i in chosen):
            return
        unused = self.random.random() < 0.8
        x = self.handles[out]
        offset = 1000 + len(self.lines)
        text = f"gradients {out} {offset} {int(unused)} {join(chosen)}"
        gradient = torch.from_numpy(generator.integer(self.seed, offset, list(x.shape), -3, 4)).double()
        try:
            found = torch.autograd.grad([x], [self.handles[i] for i in chosen], [gradient], retain_graph=True,
                                        allow_unused=unused)
        except RuntimeError as error:
            self.lines.append(f"{text} !{kind_of(error)}")
            return
        self.lines.append(f"{text} = " + " | ".join("none" if g is None else values_text(g) for g in found))

    def take_grad(self):
        a = self.pick(lambda t: is_leaf(t) and t.requires_grad)
        if a is None:
            return
        gradient = self.handles[a].grad
        if gradient is None:
            self.lines.append(f"grad {a} = none")
        elif gradient.stride() in (torch.empty(gradient.shape).stride(), self.handles[a].stride()) and gradient.count_nonzero():
            self.make(f"grad {a}", lambda: gradient)

    def drop_grad(self):
        a = self.pick(lambda t: is_leaf(t) and t.requires_grad and t.grad is not None)
        if a is not None:
            self.handles[a].grad = None
            self.lines.append(f"drop_grad {a}")

    def read(self):
        a = self.pick()
        self.lines.append(f"read {a} = {values_text(self.handles[a])}")

    def finish(self):
        if self.no_grad:
            self.mode()
        for index, t in enumerate(self.handles):
            self.lines.append(f"meta {index} = {self.meta(index)}")
            if not (self.over and self.storage(t) in self.gradients_seen):
                self.lines.append(f"read {index} = {values_text(t)}")
            if is_leaf(t) and t.requires_grad and not self.over and index not in self.hidden:
                self.lines.append(f"grad_is {index} = " + ("none" if t.grad is None else values_text(t.grad)))

    def build(self):
        self.leaf()
        self.leaf()
        steps = [(self.leaf, 4), (self.view, 26), (self.arithmetic, 22), (self.in_place, 24), (self.mode, 5),
                 (self.require, 3), (self.backward, 12), (self.gradients, 4), (self.take_grad, 4), (self.drop_grad, 1),
                 (self.read, 4), (self.shared, 3), (self.index, 8), (self.divide, 1)]
        for _ in range(self.random.randrange(8, 26)):
            if not self.over:
                self.random.choices([s for s, _ in steps], [w for _, w in steps])[0]()
        self.finish()
        return self.lines


def meets_write(function):
    """Whether a backward pass from here meets a write that replaces values: PyTorch's node for a write through a view
    cannot run twice, and it goes on behind a write with gradients of zero, even if russet needs nothing there."""
    found, waiting = set(), [function]
    while waiting:
        node = waiting.pop()
        if node is None or node in found:
            continue
        if re.search("CopySlices|Zero|Fill|CopyBackwards", node.name()):
            return True
        found.add(node)
        waiting += [next_node for next_node, _ in node.next_functions]
    return False


def use_often(a, b, count):
    """Products by element and by row, numbers that stay exact: every use counts in the gradients of a and b."""
    result = a * b
    for i in range(1, count):
        result = result + (a * b) * (1 + i % 2) + torch.matmul(a.reshape(1, -1), b.reshape(-1, 1)).reshape(()) * 0.5
    return result


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


def expands(a, b):
    return len(a) <= len(b) and all(x == y or x == 1 for x, y in zip(reversed(a), reversed(b)))


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    torch.set_num_threads(1)
    lines, errors = [], {}
    for seed in range(count):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            made = Program(seed).build()
        if any(bad in line for line in made for bad in ("nan", "inf ")):
            continue
        lines += made
        for line in made:
            if "!" in line:
                errors[line.split("!")[1]] = errors.get(line.split("!")[1], 0) + 1
    path = folder / "random_programs.txt.gz"
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0))
    print(f"{path.name}: {sum(l.startswith('P ') for l in lines)} programs, {len(lines)} lines, {path.stat().st_size} bytes")
    print(errors)


if __name__ == "__main__":
    main()
