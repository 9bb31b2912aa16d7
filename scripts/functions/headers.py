"""The public headers: one a family, the types that class Tensor needs before, and Tensor's methods."""
import textwrap

import cpp
from table import Enumeration, Function, Section, Struct

NOTE = "// Made from src/functional/table/{}; see scripts/functions."
WIDTH = 120


def comment(lines, indent=""):
    text = " ".join(lines)
    return [f"{indent}/// {line}" for line in textwrap.wrap(text, WIDTH - len(indent) - 4)]


def wrapped(text, indent=""):
    """One declaration, broken where it is too long."""
    return textwrap.wrap(text, WIDTH - len(indent), initial_indent=indent, subsequent_indent=indent + "    ",
                         break_long_words=False, break_on_hyphens=False)


def struct_lines(name, fields, documentation):
    return comment(documentation) + [f"struct {name} {{"] + [f"  {cpp.field(f)}" for f in fields] + ["};", ""]


def holds_tensors(fields):
    return any(f.type == "Tensor" for f in fields)


def structs_of(family):
    """Structs that a family defines: name, fields, documentation; those of options once each."""
    found = {}
    for entry in family.entries:
        if isinstance(entry, Struct):
            found[entry.name] = (entry.fields, entry.documentation)
        if isinstance(entry, Function):
            for signature in entry.signatures:
                options = signature.options()
                if not options:
                    continue
                known = found.setdefault(entry.options, (options, [f"Options of {entry.name}."]))
                if known[0] != options:
                    raise SystemExit(f"{entry.name}: another function's {entry.options} has other fields")
    return found


def enumeration_lines(entry):
    values = ", ".join(name for name, _ in entry.values)
    return comment(entry.documentation) + [f"enum class {entry.name} : std::uint8_t {{ {values} }};", ""]


def option_types(families):
    """What tensor.h includes: enumerations and structs without tensors."""
    lines = ["#pragma once", "// Types of arguments, all but those that hold tensors.", NOTE.format("*.txt"),
             "#include <russet/device.h>", "#include <russet/dtype.h>", "#include <russet/functional/arguments.h>",
             "#include <russet/scalar.h>", "#include <cstdint>", "#include <optional>", "", "namespace russet {", "",
             "class Generator;"]
    with_tensors = [name for family in families for name, (fields, _) in structs_of(family).items()
                    if holds_tensors(fields)]
    lines += [f"struct {name};" for name in with_tensors] + [""]
    for family in families:
        for entry in family.entries:
            if isinstance(entry, Enumeration):
                lines += enumeration_lines(entry)
    for family in families:
        for name, (fields, documentation) in structs_of(family).items():
            if not holds_tensors(fields):
                lines += struct_lines(name, fields, documentation)
    return lines + ["}  // namespace russet"]


def function_lines(function):
    """A free function's declarations; none if only Tensor has it."""
    lines, last = [], None
    for signature in function.signatures:
        if signature.documentation is not last:
            lines += comment(signature.documentation)
        last = signature.documentation
        result = cpp.result_of(function, signature)
        lines += wrapped(f"{result} {function.name}({cpp.arguments_of(function, signature)});")
    for alias in function.aliases:
        lines += comment([f"{function.name} under another name."])
        for signature in function.signatures:
            call = f"{function.name}({cpp.arguments_of(function, signature, declare=False)})"
            head = f"inline {cpp.result_of(function, signature)} {alias}({cpp.arguments_of(function, signature)})"
            lines += wrapped(f"{head} {{ return {call}; }}")
    return lines + [""]


def headers_needed(family, families):
    """Families whose structs this one's signatures name."""
    home = {name: other.name for other in families for name in structs_of(other)}
    used = {signature.result for entry in family.entries if isinstance(entry, Function)
            for signature in entry.signatures}
    return sorted({home[name] for name in used if name in home} - {family.name})


def family_header(family, families):
    lines = ["#pragma once"] + [f"// {line}".rstrip() for line in family.comment]
    lines += [NOTE.format(family.name + ".txt")]
    lines += [f"#include <russet/functional/{name}.h>" for name in headers_needed(family, families)]
    lines += ["#include <russet/random.h>", "#include <russet/tensor.h>", "#include <cstdint>", "#include <optional>",
              "#include <string_view>", "#include <utility>", "#include <vector>", "", "namespace russet {", ""]
    own = structs_of(family)
    for name, (fields, documentation) in own.items():
        if holds_tensors(fields):
            lines += struct_lines(name, fields, documentation)
    for entry in family.entries:
        if isinstance(entry, Section):
            lines += [f"// {entry.text}", ""]
        if isinstance(entry, Function) and entry.place:
            lines += function_lines(entry)
    return lines + ["}  // namespace russet"]


def method_forms(function):
    """Name, whether it writes in place, signature: every method that comes from a row."""
    for signature in function.signatures:
        if not signature.has_receiver():
            continue
        if function.method:
            for name in [function.name, *(function.aliases if function.place else [])]:
                yield name, function.writes, signature
        if function.in_place:
            for name in [function.name, *function.aliases]:
                yield name + "_", True, signature


def method_declarations(families):
    lines = ["// Methods of class Tensor, which includes this.", NOTE.format("*.txt")]
    for family in families:
        for function in (entry for entry in family.entries if isinstance(entry, Function)):
            last = None
            for name, writes, signature in method_forms(function):
                arguments = cpp.arguments_of(function, signature, without=signature.receiver())
                result = "const Tensor&" if writes else cpp.result_of(function, signature)
                if name == function.name and signature.documentation is not last:
                    lines += comment(signature.documentation)
                    last = signature.documentation
                lines += wrapped(f"{result} {name}({arguments}) const;")
    return lines


def method_definitions(families):
    lines = ["// Methods of Tensor that a function or the function's result stands for.", NOTE.format("*.txt"),
             '#include <russet/functional.h>', '#include <russet/nn_functional.h>', "", '#include "functional/write.h"',
             "", "namespace russet {", ""]
    for family in families:
        for function in (entry for entry in family.entries if isinstance(entry, Function)):
            if not function.place:
                continue
            for name, writes, signature in method_forms(function):
                at = signature.receiver()
                arguments = cpp.plain(cpp.arguments_of(function, signature, without=at))
                call = call_on_this(function, signature)
                result = "const Tensor&" if writes else cpp.result_of(function, signature)
                body = f'functional::write("{name}", *this, {call})' if writes else call
                head = f"{result} Tensor::{name}({arguments}) const {{"
                one_line = f"{head} return {body}; }}"
                lines += [one_line] if len(one_line) <= WIDTH else [*wrapped(head), *wrapped(f"return {body};", "  "), "}"]
    return lines + ["", "}  // namespace russet"]


def call_on_this(function, signature):
    at = signature.receiver()
    passed = ["*this" if i == at else p.name for i, p in enumerate(signature.parameters) if not p.by_name]
    if signature.options():
        passed.append("options")
    return f"russet::{function.name}({', '.join(passed)})"
