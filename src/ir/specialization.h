// Selects among the rows of ir/specialization.def by a column: with the cell's word `cell`, WEFT_ONLY_##cell(text) is
// the text if the column is set, and nothing if the word is `no`.
#pragma once

#define WEFT_ONLY_no(...)
#define WEFT_ONLY_passes(...) __VA_ARGS__
#define WEFT_ONLY_analyses(...) __VA_ARGS__
#define WEFT_ONLY_code(...) __VA_ARGS__
#define WEFT_ONLY_launches(...) __VA_ARGS__
