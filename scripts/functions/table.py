"""Reads the table of public functions, src/functional/table/*.txt.

A file is a family: comment lines for its header, then entries with blank lines between them.

    softmax(input: Tensor, dim: dim, dtype: DType?) -> Tensor
      torch, method
      exp(input) / sum(exp(input)) along dim.

The first indented line says where PyTorch or kornia has the function (one of PLACES, method: of Tensor), whether there
is an in-place form, other names (alias NAME), and what the struct of its options is called (options NAME). The others are
its documentation. Overloads stand one below the other; those with documentation of their own follow it. `A | B` stands
for two overloads, `T?` for what may be left out. Parameters behind `;` are given by name: fields of a struct in C++. A
name that ends in an underscore writes its first argument. A line that begins with ## names a section; `enum`, `struct`
and `options` entries define types.
"""
import re
from dataclasses import dataclass, field
from pathlib import Path


PLACES = ("torch", "nn.functional", "torchvision.ops", "kornia.filters", "kornia.geometry.transform")


class TableError(Exception):
    pass


@dataclass
class Parameter:
    name: str
    type: str  # as the table says it, without the question mark
    optional: bool
    default: str | None
    by_name: bool = False  # a field of the options

    @property
    def required(self):
        return not self.optional and self.default is None


@dataclass
class Signature:
    parameters: list[Parameter]
    result: str
    documentation: list[str] = field(default_factory=list)

    def receiver(self):
        """The position of the parameter that a method is called on."""
        names = [p.name for p in self.parameters]
        return names.index("input") if "input" in names else 0

    def has_receiver(self):
        parameter = self.parameters[self.receiver()]
        return parameter.type == "Tensor" and not parameter.optional

    def options(self):
        return [p for p in self.parameters if p.by_name]


@dataclass
class Function:
    name: str
    signatures: list[Signature]
    place: str | None  # one of PLACES
    method: bool
    in_place: bool
    aliases: list[str]
    options: str  # the name of the struct
    written_as: str | None  # how PyTorch says it, where the name differs

    @property
    def writes(self):
        return self.name.endswith("_")

    def python_name(self):
        if self.place is None:
            return f"Tensor.{self.written_as or self.name}"
        if self.written_as:
            return f"torch.{self.written_as}"
        module = f"torch.{self.place}" if self.place == "nn.functional" else self.place
        return f"{module}.{self.name}"


@dataclass
class Enumeration:
    name: str
    values: list[tuple[str, str]]  # in C++, in Python
    documentation: list[str]


@dataclass
class Struct:
    name: str
    fields: list[Parameter]
    documentation: list[str]


@dataclass
class Section:
    text: str


@dataclass
class Family:
    name: str
    comment: list[str]
    entries: list


def split(text, separator):
    """Parts of a text between separators that stand outside of all brackets and quotes."""
    parts, depth, quoted, current = [], 0, False, ""
    for character in text:
        quoted ^= character == '"'
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0 and not quoted:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        parts.append(current.strip())
    return parts


def parameter_of(text, by_name):
    match = re.fullmatch(r"(\w+): ([^=]+?)(?: = (.+))?", text)
    if not match:
        raise TableError(f"not a parameter: {text!r}")
    name, kind, default = match.groups()
    return Parameter(name, kind.removesuffix("?"), kind.endswith("?"), default, by_name)


def parameters_of(text):
    positional, _, named = text.partition(";")
    return ([parameter_of(p, False) for p in split(positional, ",")] +
            [parameter_of(p, True) for p in split(named, ",")])


def signatures_of(text):
    """`name(parameters) -> result`, once for every choice that `A | B` leaves."""
    match = re.fullmatch(r"(\w+)\((.*)\) -> (.+)", text)
    if not match:
        raise TableError(f"not a signature: {text!r}")
    name, inside, result = match.groups()
    choices = re.search(r": (\w+) \| (\w+)", inside)
    if not choices:
        return name, [Signature(parameters_of(inside), result)]
    both = [inside[:choices.start()] + ": " + kind + inside[choices.end():] for kind in choices.groups()]
    return name, [s for one in both for s in signatures_of(f"{name}({one}) -> {result}")[1]]


def apply_forms(function, line):
    for form in split(line, ","):
        if form in PLACES:
            function.place = form
        elif form == "method":
            function.method = True
        elif form == "in-place":
            function.in_place = True
        elif form.startswith("alias "):
            function.aliases.append(form.removeprefix("alias "))
        elif form.startswith("options "):
            function.options = form.removeprefix("options ")
        elif form.startswith("torch as "):
            function.place, function.written_as = "torch", form.removeprefix("torch as ")
        else:
            raise TableError(f"{function.name}: no form is called {form!r}")


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def function_of(lines):
    function = Function("", [], None, False, False, [], "", None)
    has_forms, at = False, 0
    while at < len(lines):
        texts = []
        while at < len(lines) and not lines[at].startswith(" "):
            text, at = lines[at], at + 1
            while "->" not in text or text.endswith("->"):
                text, at = f"{text} {lines[at].strip()}", at + 1
            texts.append(text)
        signatures = []
        for text in texts:
            function.name, found = signatures_of(text)
            signatures += found
        function.options = function.options or camel(function.name) + "Options"
        if not has_forms:
            apply_forms(function, lines[at].strip())
            has_forms, at = True, at + 1
        documentation = []
        while at < len(lines) and lines[at].startswith(" "):
            documentation.append(lines[at].strip())
            at += 1
        if not documentation:
            raise TableError(f"{function.name}: it has no documentation")
        for signature in signatures:
            signature.documentation = documentation
        function.signatures += signatures
    return function


def type_of(lines):
    text = lines[0]
    at = 1
    while not text.endswith(")"):
        text, at = f"{text} {lines[at].strip()}", at + 1
    kind, name, inside = re.fullmatch(r"(enum|struct|options) (\w+)\((.*)\)", text).groups()
    documentation = [line.strip() for line in lines[at:]]
    if kind != "enum":
        return Struct(name, parameters_of(inside), documentation)
    values = [value.split(" ") for value in split(inside, ",")]
    return Enumeration(name, [(v[0], v[-1].strip('"')) for v in values], documentation)


def entry_of(lines):
    if lines[0].startswith("## "):
        return Section(lines[0].removeprefix("## "))
    return type_of(lines) if re.match(r"(enum|struct|options) ", lines[0]) else function_of(lines)


def read_family(path):
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", path.read_text().strip())]
    comment = []
    while blocks and blocks[0][0].startswith("#") and not blocks[0][0].startswith("##"):
        comment += [line.removeprefix("#").strip() for line in blocks.pop(0)]
    try:
        return Family(path.stem, comment, [entry_of(lines) for lines in blocks])
    except (TableError, IndexError, AttributeError) as error:
        raise TableError(f"{path}: {error}") from error


def read(folder):
    """All families, by name."""
    return [read_family(path) for path in sorted(Path(folder).glob("*.txt"))]


def functions(families):
    return [entry for family in families for entry in family.entries if isinstance(entry, Function)]
