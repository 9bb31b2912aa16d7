"""How the table's types and defaults are written in C++."""

ARGUMENTS = {  # type: as an argument, as a field
    "Tensor": ("const Tensor&", "Tensor"),
    "Tensor[]": ("const std::vector<Tensor>&", None),
    "Scalar": ("Scalar", "Scalar"),
    "int": ("std::int64_t", "std::int64_t"),
    "int[]": ("const std::vector<std::int64_t>&", None),
    "int[2]": ("Size2", "Size2"),
    "int[3]": ("Size3", "Size3"),
    "float": ("double", "double"),
    "float[2]": ("std::pair<double, double>", "std::pair<double, double>"),
    "bool": ("bool", "bool"),
    "str": ("std::string_view", "std::string"),
    "dim": ("std::int64_t", "std::int64_t"),
    "dims": ("const DimList&", "DimList"),
    "shape": ("const Shape&", "Shape"),
    "padding": ("ConvPadding", "ConvPadding"),
    "padding[3]": ("ConvPadding3", "ConvPadding3"),
    "DType": ("DType", "DType"),
    "Device": ("Device", "Device"),
    "Generator": ("Generator*", "Generator*"),
    "Index[]": ("const std::vector<Index>&", None),
    "TensorOptions": ("const TensorOptions&", None),
    "InferredOptions": ("const InferredOptions&", None),
}
OPTIONAL = {"Tensor": ARGUMENTS["Tensor"], "dims": ARGUMENTS["dims"], "Generator": ARGUMENTS["Generator"],
            "int[2]": ("OptionalSize2", "OptionalSize2"), "int[3]": ("OptionalSize3", "OptionalSize3")}
RESULTS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "bool": "bool", "(Tensor, Tensor)":
           "std::pair<Tensor, Tensor>"}
ALWAYS_OPTIONAL = ("TensorOptions", "InferredOptions")


def type_of(parameter, as_field=False):
    """The C++ type; a name that is none of the table's types is an enumeration."""
    index = 1 if as_field else 0
    if parameter.optional and parameter.type in OPTIONAL:
        return OPTIONAL[parameter.type][index]
    name = ARGUMENTS.get(parameter.type, (parameter.type, parameter.type))[index]
    return f"std::optional<{name}>" if parameter.optional else name


def is_enumeration(parameter):
    return parameter.type not in ARGUMENTS


def default_of(parameter):
    """The default, or None if the argument must be given."""
    if parameter.optional:
        return "nullptr" if parameter.type == "Generator" else "{}"
    if parameter.type in ALWAYS_OPTIONAL:
        return "{}"
    if parameter.default is None:
        return None
    if parameter.type == "DType" or is_enumeration(parameter):
        return f"{parameter.type}::{parameter.default}"
    return parameter.default


def declared(parameter):
    default = default_of(parameter)
    return f"{type_of(parameter)} {parameter.name}" + ("" if default is None else f" = {default}")


def field(parameter):
    default = default_of(parameter)
    if parameter.type == "Tensor":
        default = "{}"
    return f"{type_of(parameter, True)} {parameter.name}" + (
        ";" if default is None else "{};" if default == "{}" else f" = {default};")


def result_of(function, signature):
    if function.writes:
        return "const Tensor&"
    return RESULTS.get(signature.result, signature.result)


def arguments_of(function, signature, declare=True, without=None):
    """The parameters as C++ takes them: those by name are one struct. Without the one at a position."""
    texts = []
    for at, parameter in enumerate(signature.parameters):
        if at == without or parameter.by_name:
            continue
        texts.append(declared(parameter) if declare else parameter.name)
    options = signature.options()
    if options:
        default = "" if any(p.required for p in options) else " = {}"
        texts.append(f"const {function.options}& options{default}" if declare else "options")
    return ", ".join(texts)


def plain(declaration):
    """A declaration's parameters without their defaults, as a definition has them."""
    from table import split
    return ", ".join(part.split(" = ")[0] for part in split(declaration.replace("<", "[").replace(">", "]"), ",")
                     ).replace("[", "<").replace("]", ">")
