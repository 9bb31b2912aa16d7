#pragma once
// Text: tokenizers, and files of labelled questions.
#include <russet/text/tokenizer.h>
#include <russet/text/trec.h>
