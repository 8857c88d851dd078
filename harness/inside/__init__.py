"""What is imported in the interpreter under test, and nothing else. There the name `harness` is bound to this folder,
so that no case can import the rest."""
