// Patches: a convolution whose windows lie side by side, as those that cut an image into patches do, is a product where
// the device prefers that, and so are its gradients. No element of the image belongs to two windows:
//   y = convolution(x, w)             ->   y = patches(x) w^T       a row a patch
//   x' = convolution_input(g, w)      ->   x' = patches^-1(g w)
//   w' = convolution_weight(x, g)     ->   w' = g^T patches(x)
#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// Sizes of a convolution from images to patches.
struct Patches {
  std::int64_t images, channels, down, across;  // patches down and across an image
  std::int64_t height, width;                   // of a patch
  std::int64_t features;

  std::int64_t count() const { return images * down * across; }
  std::int64_t elements() const { return channels * height * width; }
  Shape image_sizes() const { return {images, channels, down * height, across * width}; }
  Shape result_sizes() const { return {images, features, down, across}; }
  Shape weight_sizes() const { return {features, channels, height, width}; }
  /// The elements of patches as they lie in images, and the other way.
  Shape by_patch() const { return {images, down, across, channels, height, width}; }
  Shape by_image() const { return {images, channels, down, height, across, width}; }
};

/// The shape of the image, the result or the weight (x, y, w) among a convolution's operands; see ops/table.cpp.
struct Shapes {
  Shape image, result, weight;
};

Shapes shapes_of(const Program& program, const Value& value) {
  const Shape& first = value_at(program, value.inputs[0]).shape;
  const Shape& second = value_at(program, value.inputs[1]).shape;
  if (value.op == Op::convolution) return {first, value.shape, second};
  if (value.op == Op::convolution_input) return {value.shape, first, second};
  return {first, second, value.shape};
}

bool is_convolution(const Value& value) {
  return value.op == Op::convolution || value.op == Op::convolution_input || value.op == Op::convolution_weight;
}

/// Nothing if windows overlap, leave gaps or are single pixels, or if channels are in groups.
std::optional<Patches> patches_of(const Program& program, const Value& value) {
  if (!is_convolution(value)) return std::nullopt;
  const Shapes shapes = shapes_of(program, value);
  const Patches patches{shapes.image[0],  shapes.image[1],  shapes.result[2], shapes.result[3],
                        shapes.weight[2], shapes.weight[3], shapes.result[1]};
  ops::Window window = std::get<ops::Window>(value.attributes);
  const bool is_tiled = window.stride[0] == patches.height && window.stride[1] == patches.width;
  window.kernel = window.stride = {1, 1};
  const bool is_plain = window == ops::Window{};
  const bool is_whole = shapes.image == patches.image_sizes() && shapes.weight == patches.weight_sizes();
  const bool is_empty = patches.count() == 0 || patches.features == 0 || patches.elements() == 0;
  if (!is_tiled || !is_plain || !is_whole || is_empty || patches.height * patches.width == 1) return std::nullopt;
  return patches;
}

/// Writes one convolution as a product.
class Products {
 public:
  Products(Rewriter& rewriter, const Value& value, const Patches& patches)
      : rewriter_(rewriter), value_(value), patches_(patches) {}

  /// `value`'s inputs are new values.
  ValueId write() {
    const ValueId first = value_.inputs[0];
    const ValueId second = value_.inputs[1];
    switch (value_.op) {
      case Op::convolution: return images_of_rows(product(rows_of_patches(first), transpose(matrix_of_weight(second))));
      case Op::convolution_input: return images_of_patches(product(rows_of_images(first), matrix_of_weight(second)));
      default:
        return rewriter_.reshape(value_, product(transpose(rows_of_images(second)), rows_of_patches(first)),
                                 patches_.weight_sizes());
    }
  }

 private:
  ValueId transpose(ValueId x) { return rewriter_.transpose(value_, x); }

  /// In the convolution's type.
  ValueId product(ValueId a, ValueId b) { return rewriter_.product(value_, a, b, value_.dtype); }

  ValueId matrix_of_weight(ValueId weight) {
    return rewriter_.reshape(value_, weight, {patches_.features, patches_.elements()});
  }

  ValueId rows_of_patches(ValueId images) {
    const ValueId apart = rewriter_.permute(value_, images, patches_.by_image(), {0, 2, 4, 1, 3, 5});
    return rewriter_.reshape(value_, apart, {patches_.count(), patches_.elements()});
  }

  ValueId images_of_patches(ValueId rows) {
    const ValueId joined = rewriter_.permute(value_, rows, patches_.by_patch(), {0, 3, 1, 4, 2, 5});
    return rewriter_.reshape(value_, joined, patches_.image_sizes());
  }

  /// From [n, features, down, across] to a row a patch, and back.
  ValueId rows_of_images(ValueId images) {
    const ValueId last = rewriter_.permute(value_, images, patches_.result_sizes(), {0, 2, 3, 1});
    return rewriter_.reshape(value_, last, {patches_.count(), patches_.features});
  }

  ValueId images_of_rows(ValueId rows) {
    const Shape features_last{patches_.images, patches_.down, patches_.across, patches_.features};
    return rewriter_.permute(value_, rows, features_last, {0, 3, 1, 2});
  }

  Rewriter& rewriter_;
  const Value& value_;
  const Patches& patches_;
};

}  // namespace

void patches(Program& program, const Target& target) {
  const auto find = [&](const Value& value) -> std::optional<Patches> {
    const std::optional<Patches> patches = patches_of(program, value);
    return patches && target.prefers_products(primitive_of(program, value)) ? patches : std::nullopt;
  };
  const auto write = [](Rewriter& rewriter, const Value& value, const Patches& patches) {
    return Products(rewriter, value, patches).write();
  };
  rewrite_found(program, find, write);
}

}  // namespace russet::compile::passes
