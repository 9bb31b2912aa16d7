"""What PyTorch's hooks and custom Functions see, in which order, and what becomes of gradients.

Usage: hooks.py OUTPUT_FOLDER     writes hooks.json.gz; docs/golden.md describes it.
"""

import gzip
import json
import pathlib
import sys

import torch
from torch.autograd import Function, grad

events = []


def note(name, *tensors):
    events.append([name, [None if t is None else t.detach().flatten().tolist() for t in tensors]])


def noting(name):
    return lambda gradient: note(name, gradient)


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def order():
    w1, w2 = leaf(2, 3), leaf(5, 7)
    a = w1 * 2
    b = a * w2
    c = b * w1
    for name, tensor in dict(w1=w1, w2=w2, a=a, b=b, c=c).items():
        tensor.register_hook(noting(name))
    w2.register_post_accumulate_grad_hook(lambda p: note("post w2", p.grad))
    w1.register_post_accumulate_grad_hook(lambda p: note("post w1", p.grad))
    c.sum().backward()
    note("end", w1.grad, w2.grad)


def replaced():
    x = leaf(1, 2)
    y = x * 3
    y.retain_grad()
    first = y.register_hook(lambda g: g * 10)
    y.register_hook(noting("second"))
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 100)
    z = (y * y).sum()
    z.backward(retain_graph=True)
    note("hooked", x.grad, y.grad)
    first.remove()
    x.grad = None
    y.grad = None
    z.backward()
    note("one removed", x.grad, y.grad)


def accumulated():
    x = leaf(1, 2)
    x.register_hook(noting("x"))
    x.register_post_accumulate_grad_hook(lambda p: note("post", p.grad))
    for _ in range(2):
        (x * x + x * 3).sum().backward()
    note("x.grad", x.grad)


def step_in_backward():
    x = leaf(1, 2)

    def step(p):
        with torch.no_grad():
            p.sub_(p.grad, alpha=0.5)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x * x).sum().backward()
        note("x", x)
    assert x.grad is None


def written():
    v = leaf(1, 2)
    t = v * 2
    t.register_hook(noting("before"))
    t.retain_grad()
    t.mul_(3)
    t.register_hook(noting("after"))
    t[0] *= 5
    t.register_hook(noting("last"))
    t.sum().backward()
    note("end", t.grad, v.grad)


def views():
    x = leaf(1, 2, 3, 4)
    y = x * 1
    whole = y.view(4)
    part = y[1:3]
    inner = part[0:1]
    for name, tensor in dict(x=x, y=y, whole=whole, part=part, inner=inner).items():
        tensor.register_hook(noting(name))
    whole.retain_grad()
    (whole * 2 + y * 3).sum().backward(retain_graph=True)
    note("whole", whole.grad)
    (inner * 5 + part * 7).sum().backward()
    note("end", x.grad)


def chosen():
    x = leaf(1, 2)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g * 100)
    x.register_post_accumulate_grad_hook(lambda p: note("never"))
    z = (y * 3).sum()
    note("of y", *grad(z, [y], retain_graph=True))
    note("of x", *grad(z, [x]))


def second_order():
    x = leaf(1, 2)
    y = x * x
    y.register_hook(noting("y"))
    y.register_hook(lambda g: g * y)
    x.register_hook(lambda g: g * x)
    (first,) = grad((y * y).sum(), [x], create_graph=True)
    note("first", first)
    (second,) = grad(first.sum(), [x])
    note("second", second)


def nested():
    x, w = leaf(1, 2), leaf(3, 4)
    y = x * 2

    def hook(gradient):
        with torch.enable_grad():
            (w * w).sum().backward()
        note("inner", w.grad)
        return gradient * w.detach()

    y.register_hook(hook)
    y.sum().backward()
    note("end", x.grad, w.grad)


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        note("Scale", gradient)
        return gradient * ctx.factor, None


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return gradient * 3 * y / x


class Parts(Function):
    """Three results: one is integer, one is declared to have no gradient."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        constant = a - b
        ctx.mark_non_differentiable(constant)
        return a * b, (a > b).long(), constant, a + b

    @staticmethod
    def backward(ctx, *gradients):
        note("Parts", gradients[0], gradients[2], gradients[3])
        a, b = ctx.saved_tensors
        return gradients[0] * b + gradients[3], gradients[0] * a + gradients[3]


class Unmaterialized(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return a * 2, b * 3

    @staticmethod
    def backward(ctx, of_a, of_b):
        note("Unmaterialized", of_a, of_b)
        return None if of_a is None else of_a * 2, None if of_b is None else of_b * 3


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 10


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        note("Doubled", gradient, ctx.saved_tensors[0])
        return gradient * 2


def custom():
    x = leaf(1, 2)
    y = Scale.apply(x, 3.0)
    y.register_hook(noting("y"))
    (y * y).sum().backward()
    note("Scale.grad", x.grad)
    x = leaf(2, 3)
    y = Cube.apply(x)
    y.register_hook(noting("cube"))
    (first,) = grad(y.sum(), [x], create_graph=True)
    (second,) = grad(first.sum(), [x], create_graph=True)
    (third,) = grad(second.sum(), [x])
    note("Cube", first, second, third)


def several_results():
    a, b = leaf(1, 2), leaf(3, 4)
    product, larger, constant, total = Parts.apply(a, b)
    assert not larger.requires_grad and not constant.requires_grad
    handle = product.register_hook(noting("product"))
    total.register_hook(noting("total"))
    total.retain_grad()
    (product + product * total).sum().backward(retain_graph=True)
    note("end", a.grad, b.grad, total.grad)
    note("of total", *grad(product.sum() + total.sum() * 2, [product, total], retain_graph=True))
    handle.remove()  # else PyTorch would call it with None
    total.sum().backward()
    note("end", a.grad, b.grad)
    first, second = Unmaterialized.apply(a, b)
    second.sum().backward()
    note("end", a.grad, b.grad)


def arguments_returned():
    x = leaf(1, 2)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    (y * 3 + x).sum().backward()
    note("end", x.grad)
    plain = torch.tensor([1.0, 2.0])
    assert Same.apply(plain) is not plain


def arguments_written():
    x = leaf(1, 2)
    y = x * 5
    y.register_hook(noting("before"))
    z = Doubled.apply(y)
    assert z is y
    y.register_hook(noting("after"))
    (y * y).sum().backward()
    note("root", x.grad, y)
    x.grad = None
    base = x * 1
    part = base[0:1]
    Doubled.apply(part)
    base.register_hook(noting("base"))
    part.register_hook(noting("part"))
    (base * 3).sum().backward()
    note("view", x.grad, base)
    x.grad = None
    base = torch.zeros(2, dtype=torch.float64)
    base[1:2] = Scale.apply(x[0:1], 4.0)
    Doubled.apply(base)
    base.sum().backward()
    note("written later", x.grad, base)


def linear(value):
    module = torch.nn.Linear(2, 2, bias=False).double()
    with torch.no_grad():
        module.weight.fill_(value)
    return module


def forward_hooks():
    m = linear(2)
    m.register_forward_pre_hook(lambda m, inputs: note("pre", *inputs))
    handle = m.register_forward_pre_hook(lambda m, inputs: (inputs[0] * 10,))
    m.register_forward_pre_hook(lambda m, inputs: note("pre of tens", *inputs))
    m.register_forward_hook(lambda m, inputs, output: note("forward", *inputs, output))
    m.register_forward_hook(lambda m, inputs, output: output + 1)
    m.register_forward_hook(lambda m, inputs, output: note("forward of one more", *inputs, output))
    x = leaf(1, 2).unsqueeze(0)
    m(x)
    handle.remove()
    note("result", m(x), m.forward(x))


def backward_hooks(with_inputs):
    m = linear(3)
    m.register_full_backward_pre_hook(lambda m, outputs: note("backward pre", *outputs))
    m.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 7,))
    m.register_full_backward_hook(lambda m, inputs, outputs: note("backward", *inputs, *outputs))
    if with_inputs:
        m.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 10,))
        m.register_full_backward_hook(lambda m, inputs, outputs: note("backward of tens", *inputs, *outputs))
    m.weight.register_hook(noting("weight"))
    m.register_forward_hook(lambda m, inputs, output: output * 2)
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=with_inputs)
    if with_inputs:
        x.register_hook(noting("x"))
    m(x).sum().backward()
    note("end", m.weight.grad, x.grad)


def modules_in_modules():
    first, second = linear(1), linear(2)
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second, first)
    for name, module in dict(net=net, first=first, relu=net[1], second=second).items():
        module.register_forward_hook(lambda m, inputs, output, name=name: note(name, *inputs, output))
        module.register_full_backward_hook(lambda m, inputs, outputs, name=name: note(name + " back", *inputs, *outputs))
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    y = net(x)
    y.sum().backward()
    note("end", x.grad, first.weight.grad, second.weight.grad)
    (y,) = grad(net(x).pow(2).sum(), [x], create_graph=True)
    (y,) = grad(y.sum(), [x])
    note("second", y)


SCENARIOS = dict(
    order=order, replaced=replaced, accumulated=accumulated, step_in_backward=step_in_backward, written=written,
    views=views, chosen=chosen, second_order=second_order, nested=nested, custom=custom,
    several_results=several_results, arguments_returned=arguments_returned, arguments_written=arguments_written,
    forward_hooks=forward_hooks, backward_hooks=lambda: backward_hooks(True),
    backward_hooks_without_inputs=lambda: backward_hooks(False), modules_in_modules=modules_in_modules)


def main():
    found = {}
    for name, scenario in SCENARIOS.items():
        events.clear()
        scenario()
        found[name] = list(events)
    path = pathlib.Path(sys.argv[1]) / "hooks.json.gz"
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
