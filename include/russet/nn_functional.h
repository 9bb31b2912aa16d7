#pragma once
// The functions of neural networks, by family. Names, defaults and semantics are those of torch.nn.functional; what
// PyTorch takes by keyword stands in an options struct: `conv2d(x, weight, bias, {.stride = 2, .padding = 1})`.
//
// Shared rules. float16 and bfloat16 inputs are computed in float32 and rounded once, at the end. Errors come at the
// call: ShapeError for sizes that do not fit, ValueError for other arguments, TypeError for types.
#include <russet/autocast.h>
#include <russet/nn_functional/activation.h>
#include <russet/nn_functional/attention.h>
#include <russet/nn_functional/convolution.h>
#include <russet/nn_functional/dropout.h>
#include <russet/nn_functional/image.h>
#include <russet/nn_functional/loss.h>
#include <russet/nn_functional/normalization.h>
#include <russet/nn_functional/options.h>
#include <russet/nn_functional/pooling.h>
