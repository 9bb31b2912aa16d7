#include <russet/checkpoint.h>

#include "graph/checkpoint.h"
#include "graph/tensor_state.h"

namespace russet::detail {

struct CheckpointScope::Open {
  graph::Checkpoint checkpoint;
};

CheckpointScope::CheckpointScope() : open_(std::make_unique<Open>()) {}
CheckpointScope::~CheckpointScope() = default;

void CheckpointScope::keep(const Tensor& result) const {
  if (result.defined()) open_->checkpoint.release(*result.state()->cell->value());
}

}  // namespace russet::detail
