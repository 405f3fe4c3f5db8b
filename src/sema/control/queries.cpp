// Loops over the results of a query:
//
//   for i in wp.hash_grid_query(grid, x, r):     query = wp.hash_grid_query(grid, x, r);  index = 0
//       ...                                      while wp.hash_grid_query_next(query, index):
//                                                    i = index
//                                                    ...
//
// `query` and `index` are locals without a name that a program could write.
#include "sema/analyzer.h"
#include "types/objects.h"

namespace weft::sema {

Flow FunctionAnalyzer::query_loop(const syntax::For& loop, const Value& query, Span span) {
    const KnownStruct& known = *find_known_struct(type_of(query));
    const std::string number = std::to_string(++queries_);
    const auto local = [&](const char* name) {
        syntax::Expression expression;
        expression.node = syntax::Name{std::string(name) + " " + number};
        expression.span = loop.iterable->span;
        return expression;
    };
    const syntax::Expression state = local("query"), index = local("index");
    assign_to(state, query, state.span);
    assign_to(index, Value::runtime(builder_.integer(0)), state.span);

    LoopNames names = loop_names(loop.body, loop.target.get(), nullptr);
    for (const syntax::Expression* hidden : {&state, &index}) {
        names.assigned.insert(std::get<syntax::Name>(hidden->node).id);
        names.by_calls.insert(std::get<syntax::Name>(hidden->node).id);
    }
    const auto next = [&] {
        const std::vector<Actual> arguments = {argument(state, false), argument(index, false)};
        return call_builtin(known.next, arguments, state.span);
    };
    const auto iteration = [&] {
        assign_to(*loop.target, expression(index), loop.target->span);
        return run({Work{&loop.body}});
    };
    start_from_zero(names, [&] {
        next();
        iteration();
    });

    LoopWriter build = begin_loop(ir::Op::while_, {}, loop.body, std::move(names), span);
    build.is_guarded = true;
    ir::Region* head = build.new_region();
    ir::Region* body = build.new_region();
    build.enter(head);
    ir::Value* go = function_.add_argument(head, bool_type(), "go");
    {
        ir::Builder::Inside inside(builder_, *head);
        builder_.yield({go});
    }
    build.enter(body);
    function_.add_argument(body, bool_type(), "go");
    Flow flow = kFalls;
    {
        ir::Builder::Inside inside(builder_, *body);
        const Value found = next();
        flow = branches_.write(
            values_.truth(found, state.span), state.span, [&](Value&) { return iteration(); },
            [&](Value&) {
                locals_.leave(true, false);
                return kBreaks;
            });
    }
    return build.finish(body, flow);
}

}  // namespace weft::sema
