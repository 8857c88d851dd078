"""Mechanisms of lazy initialisation that know nothing of torch: usable by any backend that must not pay for a compiler
at import.

    events    what was deferred, what ran, when, caused by whom
    locks     who holds what, who waits for whom; forks
    once      run_once and the ledger of named steps
    trigger   run something when a module has been imported
    deferral  stand-ins for modules that shall load later
    promise   names that a module's body imports and needs only later
    alias     second names of packages

Nothing is imported here: a user takes the module it needs.
"""
