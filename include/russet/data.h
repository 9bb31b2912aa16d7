#pragma once
// Data: datasets, transforms, samplers and the loader.
#include <russet/data/adjust.h>
#include <russet/data/dataset.h>
#include <russet/data/images.h>
#include <russet/data/loader.h>
#include <russet/data/masked_tokens.h>
#include <russet/data/parts.h>
#include <russet/data/sample.h>
#include <russet/data/sampler.h>
#include <russet/data/tensors.h>
#include <russet/data/tokens.h>
#include <russet/data/transforms.h>
