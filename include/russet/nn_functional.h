#pragma once
// The functions of neural networks, by family. Names, defaults and semantics are those of torch.nn.functional; what
// PyTorch takes by keyword stands in an options struct: `conv2d(x, weight, bias, {.stride = 2, .padding = 1})`.
//
// Shared rules. float16 and bfloat16 inputs are computed in float32 and rounded once, at the end. Errors come at the
// call: ShapeError for sizes that do not fit, ValueError for other arguments, TypeError for types.
#include <russet/autocast.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_attention.h>
#include <russet/functional/nn_convolution.h>
#include <russet/functional/nn_dropout.h>
#include <russet/functional/nn_image.h>
#include <russet/functional/nn_loss.h>
#include <russet/functional/nn_normalization.h>
#include <russet/functional/nn_pooling.h>
#include <russet/functional/nn_warp.h>
