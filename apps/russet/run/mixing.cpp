#include "run/mixing.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::app {

data::Mixing mixing_of(const Arguments& arguments, const Task& task) {
  const data::Mixing mixing{.mixup_alpha = arguments.real("mixup"),
                            .cutmix_alpha = arguments.real("cutmix"),
                            .classes = task.card.num_classes};
  const bool has_classes = task.card.objective() == train::Objective::cross_entropy;
  if (mixing && (!has_classes || task.train->input().dtype != DType::float32)) {
    throw ValueError(fmt::format("{} mixes samples of numbers that have a class each: {} on {} has none",
                                 mixing.mixup_alpha > 0 ? "--mixup" : "--cutmix", task.card.model,
                                 arguments.text("data")));
  }
  return mixing;
}

}  // namespace russet::app
