// What the pickles of torch.save may name: containers, storages, data types, and the functions that rebuild tensors.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "pickle.h"

namespace russet::io::pickle {
namespace {

using Arguments = std::span<const Value>;

void require_count(Arguments arguments, std::size_t least, std::size_t most, std::string_view function) {
  if (arguments.size() >= least && arguments.size() <= most) return;
  throw FileError(fmt::format("{} is called with {} arguments", function, arguments.size()));
}

template <class T>
T get(const Value& value, std::string_view what) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  throw FileError(fmt::format("{} is {}", what, kind_of(value)));
}

/// OrderedDict(), or, from Python 2, OrderedDict([[key, value], ...]), which empties the list: copies would let a short
/// pickle fill all memory.
Value make_dict(Objects& objects, Arguments arguments) {
  require_count(arguments, 0, 1, "collections.OrderedDict");
  Dict dict;
  if (arguments.empty()) return objects.add(std::move(dict));
  for (const Value& item : std::exchange(get<Sequence*>(arguments[0], "the content of a dict")->items, {})) {
    const std::vector<Value>& pair = get<Sequence*>(item, "an item of a dict")->items;
    if (pair.size() != 2) throw FileError(fmt::format("an item of a dict has {} parts", pair.size()));
    dict.items.emplace_back(pair[0], pair[1]);
  }
  return objects.add(std::move(dict));
}

/// A container made from another one is that one: copies would let a short pickle fill all memory.
Value same_container(Objects&, Arguments arguments) {
  require_count(arguments, 1, 1, "a container");
  if (std::holds_alternative<Dict*>(arguments[0]) || std::holds_alternative<Sequence*>(arguments[0])) {
    return arguments[0];
  }
  throw FileError(fmt::format("a container is made from {}", kind_of(arguments[0])));
}

Value make_opaque(Objects&, Arguments) { return Opaque(); }

/// Sizes or strides.
Dims dims_of(const Value& value, std::string_view what) {
  const auto& items = get<Sequence*>(value, what)->items;
  if (items.size() > max_rank) {
    throw FileError(fmt::format("a tensor has {} dimensions, more than {}", items.size(), max_rank));
  }
  Dims dims;
  for (const Value& item : items) dims.push_back(get<std::int64_t>(item, what));
  return dims;
}

/// Views that PyTorch conjugates or negates when they are read are marked in the metadata; their memory is not.
void require_plain(const Value& metadata) {
  if (std::holds_alternative<std::monostate>(metadata)) return;
  if (const auto* dict = std::get_if<Dict*>(&metadata); dict != nullptr && (*dict)->items.empty()) return;
  throw FileError("a tensor is a conjugated or negated view: save tensor.resolve_conj().resolve_neg()");
}

StoredTensor tensor_of(Arguments arguments) {
  StoredTensor tensor;
  tensor.storage = get<const Storage*>(arguments[0], "the storage of a tensor");
  tensor.offset = get<std::int64_t>(arguments[1], "the offset of a tensor");
  tensor.sizes = dims_of(arguments[2], "the size of a tensor");
  tensor.strides = dims_of(arguments[3], "the stride of a tensor");
  return tensor;
}

/// (storage, offset, size, stride), and since PyTorch 0.4 (..., requires_grad, hooks, metadata)
Value rebuild_tensor(Objects& objects, Arguments arguments) {
  require_count(arguments, 4, 7, "torch._utils._rebuild_tensor_v2");
  if (arguments.size() == 7) require_plain(arguments[6]);
  StoredTensor tensor = tensor_of(arguments);
  if (!tensor.storage->dtype) throw FileError("a tensor on an untyped storage has no data type");
  tensor.dtype = *tensor.storage->dtype;
  return objects.add(tensor);
}

/// (storage, offset, size, stride, requires_grad, hooks, dtype, metadata)
Value rebuild_tensor_of_type(Objects& objects, Arguments arguments) {
  require_count(arguments, 7, 8, "torch._utils._rebuild_tensor_v3");
  if (arguments.size() == 8) require_plain(arguments[7]);
  StoredTensor tensor = tensor_of(arguments);
  const Global* const type = get<const Global*>(arguments[6], "the data type of a tensor");
  if (!type->dtype) throw FileError(fmt::format("the data type of a tensor is {}", type->name));
  tensor.dtype = *type->dtype;
  return objects.add(tensor);
}

/// (tensor, requires_grad, hooks), and the attributes that a parameter was given
Value rebuild_parameter(Objects&, Arguments arguments) {
  require_count(arguments, 3, 4, "torch._utils._rebuild_parameter");
  return get<const StoredTensor*>(arguments[0], "the data of a tensor");
}

constexpr Global globals[] = {
    {"collections.OrderedDict", make_dict},
    {"collections.Counter", same_container},
    {"builtins.set", same_container},
    {"__builtin__.set", same_container},  // as protocol 2 calls it
    {"torch.Size", same_container},
    {"torch.device", make_opaque},
    {"_codecs.encode", make_opaque},  // bytes in protocol 2
    {"torch._utils._rebuild_tensor", rebuild_tensor},
    {"torch._utils._rebuild_tensor_v2", rebuild_tensor},
    {"torch._utils._rebuild_tensor_v3", rebuild_tensor_of_type},
    {"torch._utils._rebuild_parameter", rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", rebuild_parameter},
    {"torch.storage.UntypedStorage"},
    {"torch.BoolStorage", nullptr, DType::boolean},
    {"torch.ByteStorage", nullptr, DType::uint8},
    {"torch.CharStorage", nullptr, DType::int8},
    {"torch.ShortStorage", nullptr, DType::int16},
    {"torch.IntStorage", nullptr, DType::int32},
    {"torch.LongStorage", nullptr, DType::int64},
    {"torch.HalfStorage", nullptr, DType::float16},
    {"torch.BFloat16Storage", nullptr, DType::bfloat16},
    {"torch.FloatStorage", nullptr, DType::float32},
    {"torch.DoubleStorage", nullptr, DType::float64},
    {"torch.bool", nullptr, DType::boolean},
    {"torch.uint8", nullptr, DType::uint8},
    {"torch.int8", nullptr, DType::int8},
    {"torch.int16", nullptr, DType::int16},
    {"torch.int32", nullptr, DType::int32},
    {"torch.int64", nullptr, DType::int64},
    {"torch.float16", nullptr, DType::float16},
    {"torch.bfloat16", nullptr, DType::bfloat16},
    {"torch.float32", nullptr, DType::float32},
    {"torch.float64", nullptr, DType::float64},
};

/// Types of PyTorch's that russet does not have, so that errors can call them types.
bool is_data_type(std::string_view module, std::string_view name) {
  constexpr std::string_view starts[] = {"uint", "int", "float", "complex", "qint", "quint", "bits"};
  return module == "torch" &&
         (name.ends_with("Storage") || std::any_of(std::begin(starts), std::end(starts),
                                                   [&](std::string_view start) { return name.starts_with(start); }));
}

}  // namespace

const Global* find_global(std::string_view module, std::string_view name) {
  const auto* const found = std::find_if(std::begin(globals), std::end(globals), [&](const Global& global) {
    return global.name.size() == module.size() + 1 + name.size() && global.name.starts_with(module) &&
           global.name[module.size()] == '.' && global.name.ends_with(name);
  });
  if (found != std::end(globals)) return found;
  const std::string full = shown(fmt::format("{}.{}", shown(module), shown(name)));
  if (is_data_type(module, name)) throw FileError(fmt::format("{} is a data type that russet does not have", full));
  throw FileError(
      fmt::format("it names {}, which is neither a tensor nor a container. Nothing else is loaded: save "
                  "model.state_dict(), not the model or other objects",
                  full));
}

/// ("storage", type of storage, key, device, number of elements), and before PyTorch 1.6 what it is a view of
const Storage* find_storage(Objects& objects, const Value& id) {
  const auto& parts = get<Sequence*>(id, "the persistent id")->items;
  if (parts.size() < 5 || parts.size() > 6 || get<std::string_view>(parts[0], "the persistent id") != "storage") {
    throw FileError("a persistent id is not that of a storage");
  }
  if (parts.size() == 6 && !std::holds_alternative<std::monostate>(parts[5])) {
    throw FileError("a storage is a view of another one, as PyTorch before 0.4 wrote them");
  }
  const Global* const type = get<const Global*>(parts[1], "the type of a storage");
  if (!type->name.ends_with("Storage")) throw FileError(fmt::format("the type of a storage is {}", type->name));
  return objects.add(Storage{get<std::string_view>(parts[2], "the key of a storage"), type->dtype,
                             get<std::int64_t>(parts[4], "the size of a storage")});
}

}  // namespace russet::io::pickle
