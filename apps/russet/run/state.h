#pragma once
// What a run must remember to go on bit for bit, as a checkpoint.
#include <russet/io/checkpoint.h>
#include <russet/optim.h>

#include <map>
#include <string>

#include "run/task.h"

namespace russet::app {

struct RunState {
  Arguments arguments{"train"};
  Card card;
  std::int64_t step = 0;
  data::LoaderState loader;
  /// Of the epoch that is under way: what its mean loss is made of.
  double loss_sum = 0;
  std::int64_t loss_samples = 0;
  std::optional<double> best{};
  std::uint64_t log_bytes = 0;
  int threads = 1;
  std::string version;
};

/// Generators are read off, the rest comes from the arguments.
io::Checkpoint to_checkpoint(const RunState& state, const nn::Module& model, const optim::Optimizer& optimizer,
                             const amp::GradScaler& scaler);

/// What a checkpoint's text says. Throws FileError if it is none of a run.
RunState state_of(const io::Checkpoint& checkpoint, const std::string& name);

/// Puts weights, optimizer, scaler and generators back.
void restore(const io::Checkpoint& checkpoint, const std::string& name, nn::Module& model, optim::Optimizer& optimizer,
             amp::GradScaler& scaler);

}  // namespace russet::app
