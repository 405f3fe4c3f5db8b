#include "sema/locals.h"

#include <algorithm>

#include "sema/expected_types.h"
#include "sema/messages.h"
#include "sema/value_writer.h"

namespace weft::sema {

Locals::Locals(const FunctionSource& source, const Options& options, ir::Builder& builder)
    : references_(source.references),
      is_debug_(options.debug),
      builder_(builder),
      reads_(*source.tree),
      names_(rebound_names(source.tree->body)) {}

const Local* Locals::find(const std::string& name) const {
    const auto found = scope.find(name);
    return found == scope.end() ? nullptr : &found->second;
}

void Locals::assign(const std::string& name, Value value, Span span) {
    value = bound(std::move(value), span);
    if (const Local* reference = is_reference(name) ? find(name) : nullptr)
        value = expect(value, type_of(reference->value), span, "the value of '" + name + "'");
    if (value.is_nothing())
        fail(span, "there is no value to assign to '" + syntax::spelled(name) + "': the call returns nothing");
    if (value.is_runtime() && !value.pending.empty()) value = Value::runtime(ValueWriter(builder_).array_of(value));
    if (value.is_runtime() && value.ir->name.empty()) value.ir->name = syntax::spelled(name);
    Local local;
    local.value = std::move(value);
    local.assigned = span;
    scope.insert_or_assign(name, std::move(local));
    if (!is_debug_ || is_adjoint_name(name)) return;
    Local flag;
    flag.value = Value::boolean(true);
    flag.assigned = span;
    scope.insert_or_assign(assigned_flag(name), std::move(flag));
}

bool Locals::is_carried(const std::string& name) const {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.carried.contains(name); });
}

// Whether any code that can run after the current branch or loop reads the name.
bool Locals::is_needed(const std::string& name) const {
    if (is_assigned_flag(name)) return is_needed(name.substr(1));
    if (is_tile_storage(name)) return true;
    const auto is_view = [&](const auto& local) {
        return local.second.value.view && local.second.value.view->root == name;
    };
    if (std::any_of(scope.begin(), scope.end(), is_view)) return true;
    if (is_carried(name) || is_adjoint_name(name) || is_reference(name) || reads_.is_captured(name)) return true;
    // The caller of a lambda may read every name that the body changes.
    if (!inlined.empty() && !syntax::is_own(name, inlined.back()->function->scope)) return true;
    for (const WorkList* list : afterwards) {
        for (const Work& work : *list) {
            if (!work.target && reads_.in_block(name, *work.block, work.next)) return true;
        }
    }
    return false;
}

void Locals::leave(bool stops_loop, bool returns) {
    const auto set = [&](const char* flag, bool value) {
        Local local;
        local.value = Value::boolean(value);
        scope.insert_or_assign(flag, std::move(local));
    };
    set(kSkip, true);
    if (loops.empty()) return;
    if (stops_loop) set(kGo, false);
    if (returns) set(kReturned, true);
}

}  // namespace weft::sema
