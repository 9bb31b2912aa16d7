// Views, joins, pads and conversions.
#include <stdexcept>

#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

template <DType To>
Results converted(const Call& c) {
  return {c.tensor(0).to(To)};
}

PadMode pad_mode(const std::string& name) {
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  if (name == "constant") return PadMode::constant;
  throw std::runtime_error("no mode of padding is called " + name);
}

void add_views(Functions& table) {
  table["reshape"] = [](const Call& c) -> Results { return {reshape(c.tensor(0), c.dims(1))}; };
  table["view"] = [](const Call& c) -> Results { return {c.tensor(0).view(c.dims(1))}; };
  table["flatten"] = [](const Call& c) -> Results {
    if (c.has(2)) return {flatten(c.tensor(0), c.integer(1), c.integer(2))};
    return {c.has(1) ? flatten(c.tensor(0), c.integer(1)) : flatten(c.tensor(0))};
  };
  table["unflatten"] = [](const Call& c) -> Results { return {unflatten(c.tensor(0), c.integer(1), c.dims(2))}; };
  table["permute"] = [](const Call& c) -> Results { return {permute(c.tensor(0), c.dims(1))}; };
  table["transpose"] = [](const Call& c) -> Results { return {transpose(c.tensor(0), c.integer(1), c.integer(2))}; };
  table["swapaxes"] = [](const Call& c) -> Results { return {swapaxes(c.tensor(0), c.integer(1), c.integer(2))}; };
  table["movedim"] = [](const Call& c) -> Results { return {movedim(c.tensor(0), c.axes(1), c.axes(2))}; };
  table["t"] = [](const Call& c) -> Results { return {c.tensor(0).t()}; };
  table["expand"] = [](const Call& c) -> Results { return {c.tensor(0).expand(c.dims(1))}; };
  table["expand_as"] = [](const Call& c) -> Results { return {c.tensor(0).expand(c.tensor(1).sizes())}; };
  table["broadcast_to"] = [](const Call& c) -> Results { return {broadcast_to(c.tensor(0), c.dims(1))}; };
  table["squeeze"] = [](const Call& c) -> Results {
    return {c.has(1) ? squeeze(c.tensor(0), c.integer(1)) : squeeze(c.tensor(0))};
  };
  table["unsqueeze"] = [](const Call& c) -> Results { return {unsqueeze(c.tensor(0), c.integer(1))}; };
  table["narrow"] = [](const Call& c) -> Results {
    return {narrow(c.tensor(0), c.integer(1), c.integer(2), c.integer(3))};
  };
  table["select"] = [](const Call& c) -> Results { return {c.tensor(0).select(c.integer(1), c.integer(2))}; };
  table["slice"] = [](const Call& c) -> Results {
    Slice range{.step = c.integer(4)};
    if (c.has(2)) range.start = c.integer(2);
    if (c.has(3)) range.stop = c.integer(3);
    return {c.tensor(0).slice(c.integer(1), range)};
  };
  table["diagonal"] = [](const Call& c) -> Results {
    if (c.has(2)) return {c.tensor(0).diagonal(c.integer(1), c.integer(2), c.integer(3))};
    return {c.has(1) ? c.tensor(0).diagonal(c.integer(1)) : c.tensor(0).diagonal()};
  };
  table["split"] = [](const Call& c) {
    const std::int64_t axis = c.has(2) ? c.integer(2) : 0;
    return c.is_list(1) ? split(c.tensor(0), c.integers(1), axis) : split(c.tensor(0), c.integer(1), axis);
  };
  table["chunk"] = [](const Call& c) {
    return c.has(2) ? chunk(c.tensor(0), c.integer(1), c.integer(2)) : chunk(c.tensor(0), c.integer(1));
  };
  table["unbind"] = [](const Call& c) { return c.has(1) ? unbind(c.tensor(0), c.integer(1)) : unbind(c.tensor(0)); };
  table["clone"] = [](const Call& c) -> Results { return {c.tensor(0).clone()}; };
  table["contiguous"] = [](const Call& c) -> Results { return {c.tensor(0).contiguous()}; };
}

void add_joins(Functions& table) {
  table["cat"] = [](const Call& c) -> Results {
    return {c.has(1) ? cat(c.tensors(0), c.integer(1)) : cat(c.tensors(0))};
  };
  table["stack"] = [](const Call& c) -> Results {
    return {c.has(1) ? stack(c.tensors(0), c.integer(1)) : stack(c.tensors(0))};
  };
  table["flip"] = [](const Call& c) -> Results { return {flip(c.tensor(0), c.axes(1))}; };
  table["roll"] = [](const Call& c) -> Results { return {roll(c.tensor(0), c.axes(1), c.axes(2))}; };
  table["rot90"] = [](const Call& c) -> Results { return {rot90(c.tensor(0))}; };
  table["tile"] = [](const Call& c) -> Results { return {tile(c.tensor(0), c.dims(1))}; };
  table["repeat"] = [](const Call& c) -> Results { return {repeat(c.tensor(0), c.dims(1))}; };
  table["repeat_interleave"] = [](const Call& c) -> Results {
    if (c.has(2)) return {repeat_interleave(c.tensor(0), c.integer(1), c.integer(2))};
    return {repeat_interleave(c.tensor(0), c.integer(1))};
  };
  table["pad"] = [](const Call& c) -> Results {
    if (c.has(3)) return {pad(c.tensor(0), c.integers(1), pad_mode(c.text(2)), c.scalar(3))};
    return {c.has(2) ? pad(c.tensor(0), c.integers(1), pad_mode(c.text(2))) : pad(c.tensor(0), c.integers(1))};
  };
  table["tril"] = [](const Call& c) -> Results {
    return {c.has(1) ? tril(c.tensor(0), c.integer(1)) : tril(c.tensor(0))};
  };
  table["triu"] = [](const Call& c) -> Results {
    return {c.has(1) ? triu(c.tensor(0), c.integer(1)) : triu(c.tensor(0))};
  };
  table["diag"] = [](const Call& c) -> Results {
    return {c.has(1) ? diag(c.tensor(0), c.integer(1)) : diag(c.tensor(0))};
  };
  table["diag_embed"] = [](const Call& c) -> Results {
    return {c.has(1) ? diag_embed(c.tensor(0), c.integer(1)) : diag_embed(c.tensor(0))};
  };
  table["trace"] = [](const Call& c) -> Results { return {trace(c.tensor(0))}; };
  table["meshgrid"] = [](const Call& c) { return meshgrid(c.tensors(0)); };
}

void add_conversions(Functions& table) {
  table.insert({{"to_float64", converted<DType::float64>},
                {"to_float32", converted<DType::float32>},
                {"to_float16", converted<DType::float16>},
                {"to_bfloat16", converted<DType::bfloat16>},
                {"to_int64", converted<DType::int64>},
                {"to_int32", converted<DType::int32>},
                {"to_int8", converted<DType::int8>},
                {"to_uint8", converted<DType::uint8>},
                {"to_bool", converted<DType::boolean>}});
}

}  // namespace

void add_movement(Functions& table) {
  add_views(table);
  add_joins(table);
  add_conversions(table);
}

}  // namespace golden
