#pragma once
// Training: the loop behind the command line.
#include <russet/train/evaluate.h>
#include <russet/train/log.h>
#include <russet/train/memory.h>
#include <russet/train/options.h>
#include <russet/train/progress.h>
#include <russet/train/report.h>
#include <russet/train/schedule.h>
#include <russet/train/task.h>
#include <russet/train/trainer.h>
#include <russet/train/workload.h>
