#include "driver/submit.h"

#include "driver/capture.h"
#include "driver/state.h"
#include "driver/task.h"

namespace weft::emulator {

TaskPtr submit(CUstream handle, int node_type, Work work, const TaskPtr& after) {
    State& state = State::instance();
    TaskPtr task;
    {
        const std::lock_guard lock(state.mutex);
        Stream& stream = *state.stream(handle);
        if (stream.capture) {
            add_node(stream, node_type, std::move(work));
            return nullptr;
        }
        require_no_implicit_capture(stream);
        task = Tasks::instance().put(stream, work, after);
    }
    Tasks::instance().settle(task);
    return task;
}

}  // namespace weft::emulator
