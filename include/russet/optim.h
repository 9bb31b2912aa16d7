#pragma once
// Optimizers, learning-rate schedules and gradient clipping. Names, defaults and numbers are torch.optim's.
#include <russet/optim/adam.h>
#include <russet/optim/clip.h>
#include <russet/optim/lr_scheduler.h>
#include <russet/optim/make_optimizer.h>
#include <russet/optim/optimizer.h>
#include <russet/optim/sgd.h>
