#pragma once
// The functions on tensors, by family. Names, defaults and semantics are PyTorch's.
//
// Shared rules. Elementwise functions broadcast, and promote their types: a number, and a tensor of no dimensions
// beside one with dimensions, takes part by its category only (boolean, integer, floating). Functions that give
// floating results turn booleans and integers into float32. Negative dimensions count from the end. Errors come at the
// call: ShapeError for sizes that do not fit, IndexError for dimensions and indices out of range, TypeError for types
// that the function does not take, ValueError for other arguments, DeviceError for tensors on different devices.
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/linalg.h>
#include <russet/functional/matmul.h>
#include <russet/functional/movement.h>
#include <russet/functional/ordering.h>
#include <russet/functional/random.h>
#include <russet/functional/reduction.h>
