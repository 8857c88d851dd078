"""What exists only because a wheel cannot be edited; a branch writes the same directly, and copies nothing of it.

    bootstrap     finds the release profile of what is installed, and puts it in force
    finder        other specs for modules of the wheel, modules and metadata that it lacks
    patching      the wheel's body, then the overlay's file in the same namespace
    placeholders  modules that load later
    references    names that load later
    redirects     import statements of a body that are answered otherwise than written
    aliases       second names of packages
    metadata      entry points that no installed package announces

Nothing is imported here.
"""
