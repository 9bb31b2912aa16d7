#pragma once
// Models, by class and by name.
#include <russet/models/bert.h>
#include <russet/models/registry.h>
#include <russet/models/vision.h>
