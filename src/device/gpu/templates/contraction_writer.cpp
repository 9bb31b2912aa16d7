// Texts, values and launches that all kernels of contractions share.
#include "device/gpu/templates/contraction_writer.h"

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/walk.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {

using compile::Primitive;

namespace {

constexpr int max_batch_axes = 6;

VisitorText plain_visitor(std::string type, std::string_view stored, const Region& region) {
  VisitorText visitor;
  visitor.type = std::move(type);
  visitor.values_type = "ContractionValues";
  visitor.bind(stored, "result", "result", region);
  return visitor;
}

void add_axis(Values& values, const ContractionAxis& axis) {
  for (const std::int64_t stride : axis.strides) values.add(stride);
  for (const std::int64_t size : axis.sizes) add_axis_size(values, size);
  for (const std::int64_t stride : axis.y_strides) values.add(static_cast<std::int32_t>(stride));
  for (const std::int64_t stride : axis.x_strides) values.add(static_cast<std::int32_t>(stride));
  values.add(static_cast<std::int32_t>(axis.y_start));
  values.add(static_cast<std::int32_t>(axis.x_start));
}

/// Maps of matrices before the values of the piece.
void add_maps(Piece& piece, Values& values, const std::vector<std::pair<std::string, TensorMap>>& maps) {
  Values all;
  std::string members;
  for (const auto& [name, map] : maps) {
    all.add_map(map);
    members += fmt::format("TensorMap {}; ", name);
  }
  all.append(values);
  all.align(64);
  values = std::move(all);
  piece.declarations += fmt::format("struct Mapped_@ {{ {}{} rest; }};\n", members, piece.values_type);
  piece.values_type = "Mapped_@";
}

}  // namespace

ContractionWriter::ContractionWriter(const Primitive& primitive, const GpuContext& context, Contraction contraction)
    : primitive_(primitive),
      context_(context),
      c_(std::move(contraction)),
      left_(place(left(), false)),
      right_(place(right(), false)),
      result_(place(primitive.output, true)),
      left_source_(source_of(primitive, c_.left_input, "left", offset_type(), 0, c_.in_pairs)),
      right_source_(
          source_of(primitive, c_.right_input, "right", offset_type(), left_source_.regions.size(), c_.in_pairs)) {}

std::string_view ContractionWriter::offset_type() const {
  for (const Placed* placed : {&left_, &right_, &result_}) {
    if (placed->region.bytes >= (std::size_t{1} << 31)) return "long";
  }
  return "int";
}

bool ContractionWriter::any_splits() const {
  const bool factors = c_.left_line.splits || c_.left_step.splits || c_.right_line.splits || c_.right_step.splits;
  return factors || c_.row.splits || c_.column.splits || c_.window != WindowSide::none;
}

std::string ContractionWriter::side(const SourceText& source, const ContractionAxis& line, const ContractionAxis& step,
                                    WindowSide which, bool exact) const {
  const bool divided = c_.divisors[0] != 1 || c_.divisors[1] != 1;
  const char* window = c_.window != which ? "no_window" : divided ? "divided_window" : "plain_window";
  return fmt::format("Side<{}, {}, {}, {}, {}>", source.type, offset_type(), exact ? line.splits : any_splits(),
                     step.splits, window);
}

VisitorText ContractionWriter::result_visitor(std::size_t first, bool exact) const {
  if (!primitive_.epilogue.code.empty()) return epilogue_visitor(primitive_, first);
  return plain_visitor(fmt::format("StoreVisitor<{}, {}, {}, {}>", element_type(result_type()), offset_type(),
                                   exact ? c_.row.splits : any_splits(), exact ? c_.column.splits : any_splits()),
                       element_type(result_type()), result_.region);
}

std::optional<VisitorText> ContractionWriter::strip_visitor(int count) const {
  if (!primitive_.epilogue.code.empty()) {
    return strip_epilogue_visitor(primitive_, source_bindings(), c_.batches(), count);
  }
  const std::string_view stored = element_type(result_type());
  return plain_visitor(fmt::format("StripVisitor<{}, {}, {}, {}, {}>", stored, offset_type(), c_.row.splits,
                                   is_aligned(primitive_.output.access, 1, 2), count),
                       stored, result_.region);
}

RowsVisitor ContractionWriter::rows_visitor(const EpilogueSums* sums) const {
  if (!primitive_.epilogue.code.empty()) {
    return rows_epilogue_visitor(primitive_, source_bindings(), c_.columns, sums);
  }
  const std::string_view stored = element_type(result_type());
  return {plain_visitor(fmt::format("StoreRowsVisitor<{}, {}>", stored, offset_type()), stored, result_.region), 4};
}

VisitorText ContractionWriter::partial_visitor(const Region& partials) const {
  return plain_visitor(fmt::format("PartialVisitor<{}>", sum_type(type())), sum_type(type()), partials);
}

std::size_t ContractionWriter::partial_bytes(const Division& division) const {
  if (division.splits == 1) return 0;
  const std::size_t sum_bytes = is_floating(type()) ? 4 : 8;
  return static_cast<std::size_t>(division.splits * c_.batches() * c_.rows * c_.columns) * sum_bytes;
}

std::string ContractionWriter::product_of(const VisitorText& visitor, bool rest) const {
  constexpr std::string_view all = "values";
  return rest || has_prologue() ? "values.rest" + visitor.product.substr(all.size()) : visitor.product;
}

Call ContractionWriter::product_call(ProductKernel kernel, const VisitorText& visitor, const Division& division) const {
  Piece piece;
  piece.stem = std::move(kernel.stem);
  piece.threads = kernel.threads;
  piece.resident = kernel.resident;
  add_source(piece, left_source_);
  add_source(piece, right_source_);
  add_visitor(piece, visitor, has_prologue() || !kernel.maps.empty() ? "values.rest" : "values");
  piece.body += kernel.body;
  piece.arrays = std::move(kernel.arrays);
  std::vector<Region> regions = left_source_.regions;
  regions.insert(regions.end(), right_source_.regions.begin(), right_source_.regions.end());
  Values all = values_with(visitor, division);
  if (has_prologue()) add_source_values(piece, all, {&left_source_, &right_source_});
  if (!kernel.maps.empty()) add_maps(piece, all, kernel.maps);
  return call(std::move(piece), kernel.file, std::move(regions), visitor, std::move(all), kernel.groups);
}

Values ContractionWriter::values_with(const VisitorText& visitor, const Division& division) const {
  Values all = values(division);
  all.append(visitor.values);
  return all;
}

Call ContractionWriter::call(Piece piece, std::string_view file, std::vector<Region> inputs, const VisitorText& visitor,
                             Values all, std::int64_t groups) const {
  piece.files.emplace_back(file);
  inputs.insert(inputs.end(), visitor.regions.begin(), visitor.regions.end());
  return make_call(std::move(piece), {grid_size(groups), 1, 1}, std::move(inputs), std::move(all), context_);
}

Call ContractionWriter::sum_call(const Division& division, const Region& partials) const {
  constexpr std::int64_t many = 16;
  const VisitorText visitor = result_visitor(1, false);
  const std::int64_t elements = c_.batches() * c_.rows * c_.columns;
  Piece piece;
  piece.stem = "product_sum";
  piece.threads = 256;
  piece.arguments.push_back({std::string(sum_type(type())), "partials", false});
  add_visitor(piece, visitor);
  if (division.splits > many) {
    piece.arrays.push_back({std::string(sum_type(type())), "sums", "256"});
    piece.body +=
        fmt::format("  add_many_partials(partials, visitor, {}, sums, group_id.x, thread_id);\n", visitor.product);
  } else {
    piece.body +=
        fmt::format("  add_partials(partials, visitor, {}, ulong(group_id.x) * 256u + thread_id);\n", visitor.product);
  }
  return call(std::move(piece), "contraction.metal", {partials}, visitor, values_with(visitor, division),
              division.splits > many ? divide_up(elements, 32) : groups_for(elements));
}

/// ContractionValues of contraction.metal.
Values ContractionWriter::values(const Division& division) const {
  Values values;
  values.add(source_start(left()));
  values.add(source_start(right()) + c_.right_first);
  values.add(result_.first + c_.result_first);
  const int rank = c_.batch.rank();
  for (const Strides* strides : {&c_.left_batch, &c_.right_batch, &c_.result_batch}) {
    for (int axis = 0; axis < max_batch_axes; ++axis) values.add(axis < rank ? (*strides)[axis] : std::int64_t{0});
  }
  values.add(c_.y_stride);
  values.add(c_.x_stride);
  for (const ContractionAxis* axis :
       {&c_.left_line, &c_.left_step, &c_.right_line, &c_.right_step, &c_.row, &c_.column}) {
    add_axis(values, *axis);
  }
  const auto add = [&](std::int64_t number) { values.add(static_cast<std::uint32_t>(number)); };
  for (int axis = 0; axis < max_batch_axes; ++axis) add(axis < rank ? c_.batch[axis] : 1);
  add(rank);
  add(c_.batches());
  add(c_.rows);
  add(c_.columns);
  add(c_.depth);
  add(division.splits);
  add(division.chunk);
  add(division.row_tiles);
  add(division.column_tiles);
  add(c_.channels_last_batch ? 1 : 0);
  add(c_.height);
  add(c_.width);
  add(c_.divisors[0]);
  add(c_.divisors[1]);
  return values;
}

std::string why_no_contraction(const Primitive& primitive) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return reason;
  if (std::string reason = why_no_prologue(primitive); !reason.empty()) return reason;
  if (std::string reason = why_no_epilogue(primitive); !reason.empty()) return reason;
  const DType type = primitive.inputs[0].access.dtype;
  if (primitive.inputs[1].access.dtype != type) return "factors of two types";
  if (primitive.epilogue.code.empty() && is_floating(type) != is_floating(primitive.output.access.dtype))
    return "a result of another kind of type";
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  constexpr std::int64_t slice = 16;  // by which a part of the depth may go beyond it
  const Contraction c = describe_contraction(primitive);
  if (c.rows >= limit || c.columns >= limit || c.depth >= limit - slice || c.batches() >= limit) {
    return "an index beyond 2^31";
  }
  return "";
}

bool sums_rows(const Primitive& primitive) {
  return !primitive.epilogue.code.empty() && primitive.epilogue.kind != compile::Group::Kind::elementwise;
}

std::string why_only_tiles(const Primitive& primitive) {
  if (sums_rows(primitive)) return "tiles alone add up what they hold";
  if (std::any_of(primitive.prologues.begin(), primitive.prologues.end(), compile::is_storing)) {
    return "tiles alone know which of them stores what they read";
  }
  return "";
}

}  // namespace russet::gpu
