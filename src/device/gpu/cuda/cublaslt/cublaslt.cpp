#include "device/gpu/cuda/cublaslt/cublaslt.h"

#include <fmt/format.h>

#include "device/gpu/cuda/proposals.h"
#include "device/gpu/cuda/vendor_libraries.h"

namespace russet::cuda {
namespace {

std::string to_string(const StoredMatrix& matrix) {
  return fmt::format("{}x{} by {}{} batch {}", matrix.rows, matrix.columns, matrix.leading,
                     matrix.transposed ? " transposed" : "", matrix.batch_stride);
}

/// All that an answer depends on.
std::string to_string(const MatmulQuestion& question) {
  const ColumnMajorProduct& product = question.product;
  return fmt::format("{} to {}: {}, {}, {}, {} times, aligned to {}{}{}", name_of(question.factors),
                     name_of(question.result), to_string(product.first), to_string(product.second),
                     to_string(product.result), product.batches, question.alignment,
                     question.tail.bias ? ", with a bias" : "", question.tail.relu ? ", relu" : "");
}

}  // namespace

CublasLt::CublasLt(const Context& context) : context_(context) {
  context_.enter();
  check(cublaslt().create(&handle_), "starting cuBLASLt");
}

gpu::Verdict CublasLt::answer(const MatmulQuestion& question, std::vector<gpu::Region> regions,
                              const gpu::GpuContext& context) const {
  const std::string text = to_string(question);
  const Answer<MatmulCall> answer = answers_.find(text, [&] {
    context_.enter();
    return choose(context_, {name(), version(), context_.capability()}, text, regions, [&](std::size_t proposal) {
      return std::make_shared<const MatmulCall>(handle_, question, proposal);
    });
  });
  return verdict_of(answer, *this, std::move(regions), context);
}

std::unique_ptr<const gpu::VendorLibrary> make_cublaslt(const Context& context) {
  return std::make_unique<CublasLt>(context);
}

}  // namespace russet::cuda
