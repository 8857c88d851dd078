// Compiled into every facade: a shared library whose only purpose is its name, and its dependency on the real one. It has one
// function because torch's stack traces want unwinding tables in every library.
namespace {
[[gnu::used]] void facade() {}
} // namespace
