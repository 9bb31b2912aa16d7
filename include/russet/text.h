#pragma once
// Text: tokenizers.
#include <russet/text/tokenizer.h>
