"""Mechanisms of lazy initialisation, complete and without torch: what a branch of torch_npu copies, or any backend
that must not pay for a compiler at import.

    events    what was deferred, what ran, when, caused by whom
    locks     who holds what, who waits for whom; forks
    once      run_once and the ledger of named steps
    trigger   run something when a module has been imported
    layers    whether a patch is in place, below those of others

Nothing is imported here: a user takes the module it needs. They import each other by relative names, so that a copy
works under any name.
"""
