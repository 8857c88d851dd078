// Compiled into every facade: a shared library whose only purpose is its name, and its dependency on the real one.
namespace {
[[maybe_unused]] constexpr int kFacade = 0;
}
