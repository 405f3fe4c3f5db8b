// Loops in the IR from functions of their carried values. Each function writes a region and returns the values that the
// region yields.
#pragma once

#include <utility>
#include <vector>

#include "ir/builder.h"

namespace weft::ir {

// for k = lo .. hi step `step`. `body` gets k and the carried values, at first `start`. Returns the last ones.
// `guarded`: the loop ends before `hi` if the last carried value, a bool, is false.
template <typename Body>
std::vector<Value*> build_for(Builder& builder, Value* lo, Value* hi, Value* step, std::vector<Value*> start,
                              const Body& body, bool guarded = false) {
    Operation* loop = builder.for_(lo, hi, step, std::move(start), guarded);
    Builder::Inside inside(builder, loop->body());
    const std::vector<Value*>& arguments = loop->body().arguments;
    builder.yield(body(arguments[0], std::vector<Value*>(arguments.begin() + 1, arguments.end())));
    return loop->results;
}

// `condition` gets the carried values and returns a bool, `body` returns the next ones. Returns the last ones.
template <typename Condition, typename Body>
std::vector<Value*> build_while(Builder& builder, std::vector<Value*> start, const Condition& condition,
                                const Body& body) {
    Operation* loop = builder.while_(std::move(start));
    {
        Builder::Inside inside(builder, loop->body(0));
        builder.yield({condition(loop->body(0).arguments)});
    }
    {
        Builder::Inside inside(builder, loop->body(1));
        builder.yield(body(loop->body(1).arguments));
    }
    return loop->results;
}

}  // namespace weft::ir
