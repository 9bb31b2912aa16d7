#pragma once
// Everything: tensors and functions on them, gradients, networks, optimizers, data, models, files, training.
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/data.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/models.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/operators.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/runtime.h>
#include <russet/tensor.h>
#include <russet/train.h>
#include <russet/version.h>
