#pragma once
// Neural networks: modules, their initial values, losses. Names, defaults and initial values are torch.nn's.
#include <russet/nn/activation.h>
#include <russet/nn/containers.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/image.h>
#include <russet/nn/init.h>
#include <russet/nn/linear.h>
#include <russet/nn/loss.h>
#include <russet/nn/module.h>
#include <russet/nn/normalization.h>
#include <russet/nn/packed_sequence.h>
#include <russet/nn/pooling.h>
#include <russet/nn/recurrent.h>
#include <russet/nn/transformer.h>
