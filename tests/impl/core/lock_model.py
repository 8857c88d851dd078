"""The locking of torch_npu_lazy.core as a small state machine, and a search through all its interleavings.

A thread is a list of operations; an operation either can be done in a state, giving the next, or cannot. The rules are
those of `locks`, `once` and `trigger`, and of the import system, whose module locks refuse a wait that would close a
circle of module locks: the import then goes on with the module half done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Operation = tuple[str, ...]


class State(NamedTuple):
    """All hashable. `waits`: what each thread waits for, or ""; `done`: setups that have run; `kept`: setups whose
    error has been kept; `facts`: what has been noted on the way; `forking`: who has looked and holds the mutex."""

    at: tuple[int, ...]
    owner: tuple[tuple[str, int], ...]
    waits: tuple[str, ...]
    loaded: frozenset[str]
    done: frozenset[str]
    kept: frozenset[str]
    facts: frozenset[tuple[str, ...]]
    forking: frozenset[int]


class Deadlock(Exception):
    """A state in which some thread has not ended and none can go on; str() is the way there."""


class Model:
    """programs: one list of operations per thread.

    import M          take M's module lock unless M is loaded; body and callback follow as operations of their own
    loaded M          M is whole: give its lock back (a reader that waited finds it loaded)
    run S / ran S     claim a setup / it has succeeded (fails S: it has failed, the error is kept)
    enter L / leave L a scope lock
    fork              goes on when no other thread is at work, or that thread waits for this one
    check S           the import has returned: S has run, or its error is kept, or a circle was cut for this thread
    A claim that is not to be (S has run, or a circle) jumps past the matching `ran`; so does `import` past `loaded`.
    sees_imports=False: waits for setups are like upstream's, blind to module locks.
    """

    def __init__(self, *programs: list[Operation], sees_imports: bool = True) -> None:
        self.programs, self.sees_imports = programs, sees_imports

    def start(self) -> State:
        count = len(self.programs)
        nothing: frozenset = frozenset()
        return State((0,) * count, (), ("",) * count, nothing, nothing, nothing, nothing, nothing)

    def explore(self) -> int:
        """Visit every reachable state; their number. Raises Deadlock, and AssertionError for a check that fails."""
        start = self.start()
        seen: dict[State, tuple[State, str] | None] = {start: None}
        todo = [start]
        while todo:
            state = todo.pop()
            stuck = True
            for label, following in self.steps(state):
                stuck = False
                if following not in seen:
                    seen[following] = (state, label)
                    todo.append(following)
            if stuck and any(at < len(program) for at, program in zip(state.at, self.programs, strict=True)):
                raise Deadlock(self._way(state, seen))
        return len(seen)

    def _way(self, state: State, seen: dict[State, tuple[State, str] | None]) -> str:
        labels, step = [], seen[state]
        while step is not None:
            state, label = step
            labels.append(label)
            step = seen[state]
        return "\n".join(reversed(labels))

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for thread, program in enumerate(self.programs):
            at = state.at[thread]
            if at < len(program):
                operation = program[at]
                for note, following in getattr(self, f"_{operation[0]}")(state, thread, *operation[1:]):
                    # Only waiting changes nothing but the note that one waits, and that is a step of its own.
                    if following != state:
                        yield f"thread {thread}: {' '.join(operation)}{note}", following

    # Moves

    def _go(self, state: State, thread: int, **changes: object) -> State:
        at = tuple(where + (index == thread) for index, where in enumerate(state.at))
        return self._wait(state, thread, "")._replace(**{"at": at, **changes})

    def _wait(self, state: State, thread: int, what: str) -> State:
        return state._replace(waits=tuple(what if i == thread else old for i, old in enumerate(state.waits)))

    def _skip(self, state: State, thread: int, ends: tuple[str, ...], name: str, **changes: object) -> State:
        """Go on behind the operation that ends this one."""
        program = self.programs[thread]
        at = next(
            index + 1
            for index in range(state.at[thread], len(program))
            if program[index][0] in ends and program[index][1] == name
        )
        return self._go(
            state, thread, at=tuple(at if i == thread else old for i, old in enumerate(state.at)), **changes
        )

    def _owns(self, state: State, name: str) -> int | None:
        return dict(state.owner).get(name)

    def _taken(self, state: State, name: str, thread: int) -> tuple[tuple[str, int], ...]:
        return tuple(sorted({**dict(state.owner), name: thread}.items()))

    def _given(self, state: State, name: str) -> tuple[tuple[str, int], ...]:
        return tuple(item for item in state.owner if item[0] != name)

    def _leads_to(self, state: State, thread: int | None, target: int, kinds: tuple[str, ...]) -> bool:
        seen: set[int] = set()
        while thread is not None and thread not in seen:
            if thread == target:
                return True
            seen.add(thread)
            waits = state.waits[thread]
            thread = self._owns(state, waits) if waits.split(":")[0] in kinds else None
        return False

    def _cut(self, state: State, thread: int, name: str) -> frozenset[tuple[str, ...]]:
        return state.facts | {("cut", str(thread), name)}

    # Operations

    def _import(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        lock = f"module:{name}"
        owner = self._owns(state, lock)
        if name in state.loaded:
            yield " (loaded)", self._skip(state, thread, ("loaded",), name)
        elif owner is None:
            yield "", self._go(state, thread, owner=self._taken(state, lock, thread))
        elif owner == thread or self._leads_to(state, owner, thread, ("module",)):
            facts = state.facts if owner == thread else self._cut(state, thread, name)
            yield " (half done)", self._skip(state, thread, ("loaded",), name, facts=facts)
        elif self.sees_imports and ("body", name) in state.facts and self._importing_first(thread, state):
            yield " (body done)", self._skip(state, thread, ("loaded",), name)
        else:
            yield " (waits)", self._wait(state, thread, lock)

    def _importing_first(self, thread: int, state: State) -> bool:
        """Whether the import is the one before a claim, which does not wait for a module that has only its callback to
        run."""
        program, at = self.programs[thread], state.at[thread]
        return at + 2 < len(program) and program[at + 1][0] == "loaded" and program[at + 2][0] == "run"

    def _body(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        yield "", self._go(state, thread, facts=state.facts | {("body", name)})

    def _loaded(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        yield "", self._go(state, thread, owner=self._given(state, f"module:{name}"), loaded=state.loaded | {name})

    def _run(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        lock = f"setup:{name}"
        owner = self._owns(state, lock)
        kinds = ("module", "setup", "scope") if self.sees_imports else ()
        ends = ("ran", "fails")
        if name in state.done:
            yield " (has run)", self._skip(state, thread, ends, name)
        elif thread in state.forking or state.forking:
            return  # the mutex is the forking thread's
        elif owner is None:
            yield "", self._go(state, thread, owner=self._taken(state, lock, thread))
        elif owner == thread:
            facts = self._cut(state, thread, name)
            yield " (re-entry)", self._skip(state, thread, ends, name, facts=facts)
        elif self._leads_to(state, owner, thread, kinds):
            yield " (circle)", self._skip(state, thread, ends, name, facts=self._cut(state, thread, name))
        else:
            yield " (waits)", self._wait(state, thread, lock)

    def _ran(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        owner = self._given(state, f"setup:{name}")
        yield "", self._go(state, thread, owner=owner, done=state.done | {name}, kept=state.kept - {name})

    def _fails(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        yield "", self._go(state, thread, owner=self._given(state, f"setup:{name}"), kept=state.kept | {name})

    def _enter(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        lock = f"scope:{name}"
        owner = self._owns(state, lock)
        if owner is None:
            yield "", self._go(state, thread, owner=self._taken(state, lock, thread))
        elif owner == thread:
            raise AssertionError("the model's scope lock is taken once")
        elif self.sees_imports and self._leads_to(state, owner, thread, ("module", "setup", "scope")):
            yield " (refused)", self._skip(state, thread, ("leave",), name, facts=self._cut(state, thread, name))
        else:
            yield " (waits)", self._wait(state, thread, lock)

    def _leave(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        yield "", self._go(state, thread, owner=self._given(state, f"scope:{name}"))

    def _fork(self, state: State, thread: int, watched: str) -> Iterator[tuple[str, State]]:
        """In two steps: the handler has looked, and holds the mutex until the fork has been made."""
        if thread in state.forking:
            caught = [
                other
                for lock, other in state.owner
                if other != thread and lock.startswith("setup:") and not self._waits_for(state, other, thread)
            ]
            assert not caught, "the fork has caught a setup that waits for nothing"
            yield " (made)", self._go(state, thread, forking=state.forking - {thread})
        elif not state.forking:
            names = {f"module:{name}" for name in watched.split()}
            working = {other for lock, other in state.owner if lock.startswith("setup:") or lock in names} - {thread}
            if all(self._waits_for(state, other, thread) for other in working):
                yield " (looks)", state._replace(forking=state.forking | {thread})

    def _waits_for(self, state: State, thread: int, target: int) -> bool:
        return self._leads_to(state, thread, target, ("module", "setup", "scope"))

    def _check(self, state: State, thread: int, name: str) -> Iterator[tuple[str, State]]:
        told = any(fact[:2] == ("cut", str(thread)) for fact in state.facts)
        assert name in state.done or name in state.kept or told, f"thread {thread} returned without {name}"
        yield "", self._go(state, thread)
