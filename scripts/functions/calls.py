"""The table as C++ data: for tests, which call functions by name with arguments that they have read from a file."""
import cpp
import headers
from table import Enumeration, Function, Struct


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def getter(parameter, at):
    """How a call asks for the value of a parameter."""
    type_name = cpp.type_of(parameter, as_field=True)
    if parameter.type in ("Tensor[]", "int[]", "Index[]") or parameter.type in cpp.ALWAYS_OPTIONAL:
        type_name = cpp.type_of(parameter).removeprefix("const ").removesuffix("&")
    default = cpp.default_of(parameter)
    fallback = "" if default is None else ", " + (f"{type_name}{default}" if default.startswith("{") else default)
    return f"a.get<{type_name}>({at}{fallback})"


def passed(function, signature, without=None):
    texts = [getter(p, at) for at, p in enumerate(signature.parameters) if not p.by_name and at != without]
    options = [f".{p.name} = {getter(p, at)}" for at, p in enumerate(signature.parameters) if p.by_name]
    if options:
        texts.append(f"{function.options}{{{', '.join(options)}}}")
    return ", ".join(texts)


def written(function, signature, name):
    """A call that writes its receiver, which is a copy."""
    at = signature.receiver()
    return (f"[](const Arguments& a) -> Results {{ const Tensor x = a.get<Tensor>({at}).clone(); "
            f"x.{name}({passed(function, signature, at)}); return {{x}}; }}")


def answered(call):
    return f"[](const Arguments& a) -> Results {{ return a.results({call}); }}"


def forms_of(function, signature):
    """The function, the method, the in-place form: C++ lambdas, or null pointers."""
    at = signature.receiver()
    free = f"russet::{function.name}({passed(function, signature)})"
    method = f"a.get<Tensor>({at}).{function.name}({passed(function, signature, at)})"
    has_method = function.method and signature.has_receiver()
    if function.writes:
        return ["nullptr", written(function, signature, function.name), "nullptr"]
    return [answered(free) if function.place else "nullptr", answered(method) if has_method else "nullptr",
            written(function, signature, function.name + "_") if function.in_place and signature.has_receiver()
            else "nullptr"]


def python_names_of(families):
    """How Python says enumerators: in quotes, but None."""
    return {(entry.name, name): "None" if python == "None" else f"'{python}'" for family in families
            for entry in family.entries if isinstance(entry, Enumeration) for name, python in entry.values}


def parameters_text(signature, python_names):
    """Parameters as the page of functions shows them, as Python would."""
    def shown(parameter):
        default = "None" if parameter.optional else parameter.default
        if (parameter.type, default) in python_names:
            default = python_names[parameter.type, default]
        if default in ("true", "false"):
            default = default.capitalize()
        return parameter.name if default is None or default == "{}" else f"{parameter.name}={default}"
    texts = []
    for at, parameter in enumerate(signature.parameters):
        if parameter.by_name and not (at and signature.parameters[at - 1].by_name):
            texts.append("*")
        texts += (["dtype=None", "device=None"] if parameter.type in cpp.ALWAYS_OPTIONAL else [shown(parameter)])
    return f"({', '.join(texts)})"


def overload_lines(function, signature):
    parameters = ", ".join(
        f'{{"{p.name}", "{p.type}", {"true" if p.optional else "false"}, '
        f'{"true" if p.required and p.type not in cpp.ALWAYS_OPTIONAL else "false"}}}' for p in signature.parameters)
    forms = ",\n      ".join(forms_of(function, signature))
    return [f"    {{{{{parameters}}},", f"      {forms}}},"]


def function_lines(family, function, python_names):
    aliases = ", ".join(quoted(alias) for alias in function.aliases)
    signature = function.signatures[0]
    lines = [f"  {{{quoted(function.name)}, {quoted(family.name)}, {quoted(function.python_name())}, {{{aliases}}},",
             f"   {quoted(parameters_text(signature, python_names))}, {quoted(' '.join(signature.documentation))}, {{"]
    for one in function.signatures:
        lines += overload_lines(function, one)
    return lines + ["  }},"]


def result_lines(family):
    lines = []
    for entry in family.entries:
        if isinstance(entry, Struct) and headers.holds_tensors(entry.fields):
            fields = ", ".join(f"result.{f.name}" for f in entry.fields)
            lines += ["template <>",
                      f"Results Arguments::results(const {entry.name}& result) const {{ return {{{fields}}}; }}"]
    return lines


def enumeration_lines(family):
    lines = []
    for entry in family.entries:
        if isinstance(entry, Enumeration):
            names = ", ".join(f"{{{quoted(python)}, {entry.name}::{name}}}" for name, python in entry.values)
            lines += ["template <>", f"{entry.name} Arguments::enumerator<{entry.name}>(std::string_view text) {{",
                      f"  return value_of<{entry.name}>(text, {{{names}}});", "}"]
    return lines


def function_table(families):
    lines = ["// Every public function, for callers that know its name when they run.", headers.NOTE.format("*.txt"),
             '#include "calls/arguments.h"', '#include "calls/function_table.h"', "", "namespace golden {", "",
             "using namespace russet;", ""]
    for family in families:
        lines += enumeration_lines(family)
    lines.append("")
    for family in families:
        lines += result_lines(family)
    python_names = python_names_of(families)
    lines += ["", "const std::vector<FunctionRow>& function_table() {",
              "  static const std::vector<FunctionRow> table{"]
    for family in families:
        for function in (entry for entry in family.entries if isinstance(entry, Function)):
            lines += function_lines(family, function, python_names)
    return lines + ["  };", "  return table;", "}", "", "}  // namespace golden"]
