#pragma once
// Training and evaluation of models by name: a step, what it would need, and how good a model is. The command line's
// runs are written with these.
#include <russet/train/evaluate.h>
#include <russet/train/neighbours.h>
#include <russet/train/objective.h>
#include <russet/train/step.h>
#include <russet/train/workload.h>
