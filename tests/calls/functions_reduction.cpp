// Reductions, scans, sorting.
#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

/// F(x, axes, keepdim), with as many arguments as the call has.
template <class F>
Results reduce(const Call& c, F f) {
  if (c.has(2)) return {f(c.tensor(0), c.axes(1), c.flag(2))};
  if (c.has(1)) return {f(c.tensor(0), c.axes(1))};
  return {f(c.tensor(0))};
}

/// F(x, axes, keepdim, correction): calls say the correction before the kept axes.
template <class F>
auto spread(const Call& c, F f) {
  if (c.has(2)) return f(c.tensor(0), c.axes(1), c.has(3) && c.flag(3), c.real(2));
  if (c.has(1)) return f(c.tensor(0), c.axes(1));
  return f(c.tensor(0));
}

Results pair_of(const std::pair<Tensor, Tensor>& both) { return {both.first, both.second}; }
Results both_of(const ValuesIndices& found) { return {found.values, found.indices}; }

/// max, min: of all elements, or along an axis with indices, or of two tensors.
template <class F>
Results extreme(const Call& c, F f) {
  if (!c.has(1)) return {f(c.tensor(0))};
  if (c.has(2)) return both_of(f(c.tensor(0), c.integer(1), c.flag(2)));
  return both_of(f(c.tensor(0), c.integer(1)));
}

template <class F>
Results position(const Call& c, F f) {
  if (!c.has(1)) return {f(c.tensor(0))};
  if (c.has(2)) return {f(c.tensor(0), c.integer(1), c.flag(2))};
  return {f(c.tensor(0), c.integer(1))};
}

void add_sums(Functions& table) {
  table["sum"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return sum(a...); }); };
  table["mean"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return mean(a...); }); };
  table["prod"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return prod(a...); }); };
  table["nansum"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return nansum(a...); }); };
  table["amax"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return amax(a...); }); };
  table["amin"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return amin(a...); }); };
  table["any"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return any(a...); }); };
  table["all"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return all(a...); }); };
  table["logsumexp"] = [](const Call& c) { return reduce(c, [](const auto&... a) { return logsumexp(a...); }); };
  table["count_nonzero"] = [](const Call& c) -> Results { return {count_nonzero(c.tensor(0), c.axes(1))}; };
  table["logsumexp0"] = [](const Call& c) -> Results { return {logsumexp(c.tensor(0), 0)}; };
  table["var0"] = [](const Call& c) -> Results { return {var(c.tensor(0), {}, false, 0)}; };
  table["var"] = [](const Call& c) -> Results { return {spread(c, [](const auto&... a) { return var(a...); })}; };
  table["std"] = [](const Call& c) -> Results { return {spread(c, [](const auto&... a) { return stddev(a...); })}; };
  table["var_mean"] = [](const Call& c) { return pair_of(spread(c, [](const auto&... a) { return var_mean(a...); })); };
  table["std_mean"] = [](const Call& c) -> Results {
    return {spread(c, [](const auto&... a) { return stddev(a...); }), mean(c.tensor(0), c.axes(1))};
  };
  table["norm"] = [](const Call& c) -> Results {
    if (!c.has(1)) return {norm(c.tensor(0))};
    return {norm(c.tensor(0), c.real(1), c.axes(2), c.has(3) && c.flag(3))};
  };
  table["softmax"] = [](const Call& c) -> Results { return {softmax(c.tensor(0), c.has(1) ? c.integer(1) : 0)}; };
  table["log_softmax"] = [](const Call& c) -> Results { return {log_softmax(c.tensor(0), c.integer(1))}; };
  table["cumsum"] = [](const Call& c) -> Results { return {cumsum(c.tensor(0), c.has(1) ? c.integer(1) : 0)}; };
  table["cumprod"] = [](const Call& c) -> Results { return {cumprod(c.tensor(0), c.integer(1))}; };
}

void add_extremes(Functions& table) {
  table["max"] = [](const Call& c) { return extreme(c, [](const auto&... a) { return russet::max(a...); }); };
  table["min"] = [](const Call& c) { return extreme(c, [](const auto&... a) { return russet::min(a...); }); };
  table["argmax"] = [](const Call& c) { return position(c, [](const auto&... a) { return argmax(a...); }); };
  table["argmin"] = [](const Call& c) { return position(c, [](const auto&... a) { return argmin(a...); }); };
  table["median"] = [](const Call& c) { return extreme(c, [](const auto&... a) { return median(a...); }); };
  table["sort"] = [](const Call& c) {
    if (c.has(2)) return both_of(russet::sort(c.tensor(0), c.integer(1), c.flag(2)));
    return both_of(c.has(1) ? russet::sort(c.tensor(0), c.integer(1)) : russet::sort(c.tensor(0)));
  };
  table["argsort"] = [](const Call& c) -> Results {
    if (c.has(2)) return {argsort(c.tensor(0), c.integer(1), c.flag(2))};
    return {c.has(1) ? argsort(c.tensor(0), c.integer(1)) : argsort(c.tensor(0))};
  };
  table["topk"] = [](const Call& c) {
    if (c.has(3)) return both_of(topk(c.tensor(0), c.integer(1), c.integer(2), c.flag(3)));
    return both_of(topk(c.tensor(0), c.integer(1)));
  };
  table["kthvalue"] = [](const Call& c) {
    if (c.has(3)) return both_of(kthvalue(c.tensor(0), c.integer(1), c.integer(2), c.flag(3)));
    return both_of(kthvalue(c.tensor(0), c.integer(1)));
  };
  table["searchsorted"] = [](const Call& c) -> Results {
    return {c.has(2) ? searchsorted(c.tensor(0), c.tensor(1), c.flag(2)) : searchsorted(c.tensor(0), c.tensor(1))};
  };
  table["bucketize"] = [](const Call& c) -> Results {
    return {c.has(2) ? bucketize(c.tensor(0), c.tensor(1), c.flag(2)) : bucketize(c.tensor(0), c.tensor(1))};
  };
  table["unique"] = [](const Call& c) -> Results {
    const UniqueResult found = unique_with_counts(c.tensor(0));
    return {found.values, found.inverse, found.counts};
  };
  table["bincount"] = [](const Call& c) -> Results {
    return {c.has(1) ? bincount(c.tensor(0), c.tensor(1)) : bincount(c.tensor(0))};
  };
}

}  // namespace

void add_reductions(Functions& table) {
  add_sums(table);
  add_extremes(table);
}

}  // namespace golden
