// Indexing by tensors, gathers and scatters.
#include <stdexcept>

#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

/// "i:3", "s:start:stop:step", ":", "..." or "new".
Index entry_of(const std::string& text) {
  if (text == "...") return Ellipsis{};
  if (text == "new") return NewAxis{};
  if (text == ":") return Slice{};
  if (text.starts_with("i:")) return static_cast<std::int64_t>(std::stoll(text.substr(2)));
  Slice range;
  std::size_t start = 2;
  for (int part = 0; part < 3 && start <= text.size(); ++part) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) {
      const std::int64_t number = std::stoll(text.substr(start, end - start));
      if (part == 0) range.start = number;
      if (part == 1) range.stop = number;
      if (part == 2) range.step = number;
    }
    start = end + 1;
  }
  return range;
}

/// indices, weight, padding, largest norm, kind of norm; then the result and the weight as it has become.
Results limited_embedding(const Call& c) {
  const Tensor result = embedding(c.tensor(0), c.tensor(1), {}, c.real(3), c.real(4));
  return {result, c.tensor(1).detach()};
}

}  // namespace

std::vector<Index> index_of(const Call& call, std::size_t argument) {
  std::vector<Index> indices;
  const Json& entries = call.value(argument);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].is_string()) {
      indices.push_back(entry_of(entries[i].get<std::string>()));
    } else {
      indices.push_back(call.tensors(argument)[i]);
    }
  }
  return indices;
}

void add_indexing(Functions& table) {
  table["index"] = [](const Call& c) -> Results { return {russet::index(c.tensor(0), index_of(c, 1))}; };
  table["index_put"] = [](const Call& c) -> Results {
    const Tensor x = c.tensor(0).clone();
    if (c.is_tensor(2)) {
      index_put_(x, index_of(c, 1), c.tensor(2));
    } else {
      index_put_(x, index_of(c, 1), c.scalar(2));
    }
    return {x};
  };
  table["index_select"] = [](const Call& c) -> Results {
    return {index_select(c.tensor(0), c.integer(1), c.tensor(2))};
  };
  table["index_add"] = [](const Call& c) -> Results {
    return {index_add(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3))};
  };
  table["index_copy"] = [](const Call& c) -> Results {
    return {index_copy(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3))};
  };
  table["index_fill"] = [](const Call& c) -> Results {
    return {index_fill(c.tensor(0), c.integer(1), c.tensor(2), c.scalar(3))};
  };
  table["gather"] = [](const Call& c) -> Results { return {gather(c.tensor(0), c.integer(1), c.tensor(2))}; };
  table["take"] = [](const Call& c) -> Results { return {take(c.tensor(0), c.tensor(1))}; };
  table["take_along_dim"] = [](const Call& c) -> Results {
    return {c.has(2) ? take_along_dim(c.tensor(0), c.tensor(1), c.integer(2))
                     : take_along_dim(c.tensor(0), c.tensor(1))};
  };
  table["scatter"] = [](const Call& c) -> Results {
    if (c.is_tensor(3)) return {scatter(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3))};
    return {scatter(c.tensor(0), c.integer(1), c.tensor(2), c.scalar(3))};
  };
  table["scatter_add"] = [](const Call& c) -> Results {
    return {scatter_add(c.tensor(0), c.integer(1), c.tensor(2), c.tensor(3))};
  };
  table["masked_fill"] = [](const Call& c) -> Results {
    if (c.is_tensor(2)) return {masked_fill(c.tensor(0), c.tensor(1), c.tensor(2))};
    return {masked_fill(c.tensor(0), c.tensor(1), c.scalar(2))};
  };
  table["masked_select"] = [](const Call& c) -> Results { return {masked_select(c.tensor(0), c.tensor(1))}; };
  table["nonzero"] = [](const Call& c) -> Results { return {nonzero(c.tensor(0))}; };
  table["one_hot"] = [](const Call& c) -> Results {
    return {c.has(1) ? one_hot(c.tensor(0), c.integer(1)) : one_hot(c.tensor(0))};
  };
  table["embedding_max_norm"] = limited_embedding;
  table["embedding"] = [](const Call& c) -> Results {
    return {c.has(2) ? embedding(c.tensor(0), c.tensor(1), c.integer(2)) : embedding(c.tensor(0), c.tensor(1))};
  };
}

}  // namespace golden
