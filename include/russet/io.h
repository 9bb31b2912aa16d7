#pragma once
// Files: weights, checkpoints, images, IDX.
#include <russet/io/checkpoint.h>
#include <russet/io/file.h>
#include <russet/io/idx.h>
#include <russet/io/image.h>
#include <russet/io/safetensors.h>
#include <russet/io/state_dict.h>
#include <russet/io/weights.h>
