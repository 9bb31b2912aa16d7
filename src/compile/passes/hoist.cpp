// Hoist: an evaluation's steps that depend on parameters alone become a program of their own, whose results are kept
// from run to run until a parameter changes (runtime/preparations.h). Before:      After, once:
//   w' = cast of w to channels last                                                  w' = cast of w to channels last
//                                                                                  In each run:
//   y = convolution(x, w')                                                           y = convolution(x, w')
// Not where there is little room: what is kept would take it.
#include <algorithm>
#include <utility>

#include "compile/passes/passes.h"
#include "compile/steady.h"

namespace russet::compile::passes {
namespace {

class Hoister {
 public:
  Hoister(Program& program, std::vector<bool> steady)
      : program_(program),
        steady_(std::move(steady)),
        preparation_(std::make_shared<Program>()),
        made_(program.slots.size(), false),
        places_(program.slots.size(), -1) {
    preparation_->device = program.device;
    preparation_->values = program.values;
    preparation_->leaves = program.leaves;
    for (Leaf& leaf : preparation_->leaves) leaf.donatable = false;  // others read what it reads
    preparation_->arguments = program.arguments;
  }

  void run() {
    std::vector<Step> others;
    for (std::size_t step = 0; step < steady_.size(); ++step) {
      (steady_[step] ? preparation_->steps : others).push_back(std::move(program_.steps[step]));
    }
    program_.steps = std::move(others);
    for (Step& step : preparation_->steps) take(step);
    for (const Step& step : program_.steps) {
      for_each_access(step, [&](std::int32_t slot, bool) { keep(slot); });
    }
    program_.preparation = std::move(preparation_);
  }

 private:
  Slot& slot_at(std::int32_t slot) { return program_.slots[static_cast<std::size_t>(slot)]; }

  void take(Step& step) {
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes) made_[static_cast<std::size_t>(slot)] = true;
    });
    rename_slots(step, [&](std::int32_t slot) {
      std::int32_t& place = places_[static_cast<std::size_t>(slot)];
      if (place < 0) {
        place = static_cast<std::int32_t>(preparation_->slots.size());
        preparation_->slots.push_back(slot_at(slot));
      }
      return place;
    });
  }

  /// What the preparation makes and others read becomes one of its outputs.
  void keep(std::int32_t slot) {
    if (!made_[static_cast<std::size_t>(slot)] || slot_at(slot).kind == Slot::Kind::prepared) return;
    const auto number = static_cast<std::int32_t>(preparation_->outputs.size());
    preparation_->outputs.push_back({slot_at(slot).value, -1});
    Slot& own = preparation_->slots[static_cast<std::size_t>(places_[static_cast<std::size_t>(slot)])];
    own.kind = Slot::Kind::output;
    slot_at(slot).kind = Slot::Kind::prepared;
    own.index = slot_at(slot).index = number;
  }

  Program& program_;
  std::vector<bool> steady_;
  std::shared_ptr<Program> preparation_;
  std::vector<bool> made_;            // by slot: by the preparation
  std::vector<std::int32_t> places_;  // by slot: where the preparation has it
};

}  // namespace

void hoist(Program& program, const Target& target) {
  if (program.room) return;
  std::vector<bool> steady = steady_steps(program, target);
  if (std::find(steady.begin(), steady.end(), true) != steady.end()) Hoister(program, std::move(steady)).run();
}

}  // namespace russet::compile::passes
