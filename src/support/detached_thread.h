// Threads that belong to the process and not to a caller.
#pragma once

#include <pthread.h>

#include <csignal>
#include <cstddef>

namespace weft {

// Starts `routine(state)` on a detached thread that gets no signals: they go to the program's own threads.
// `stack_bytes` of 0: the system's default. False if the system has no thread for it.
inline bool start_detached_thread(void* (*routine)(void*), void* state, std::size_t stack_bytes = 0) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_t thread;
    const bool started = pthread_create(&thread, &attributes, routine, state) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace weft
