#pragma once
// Text: tokenizers, files of labelled questions, and masked words.
#include <russet/text/masked_words.h>
#include <russet/text/tokenizer.h>
#include <russet/text/trec.h>
