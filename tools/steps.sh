# For scripts that run several checks: step NAME COMMAND... runs one, whatever became of those before; finish, at the end,
# names those that failed and is the exit status.
failed=()

step() {
    local name=$1
    shift
    echo "== $name"
    "$@" || failed+=("$name")
}

finish() {
    if ((${#failed[@]})); then
        printf 'failed: %s\n' "${failed[@]}" >&2
        return 1
    fi
}
