// Package proc reads who a process is, and where it comes from, out of /proc.
//
// # Identity
//
// A number names a process only while it lives. A descriptor that was opened below /proc/PID stays
// with the process it was opened for: once that is gone reads fail with ESRCH, whoever has the
// number then. So a Table keeps such descriptors, and what is cached for a number counts only after
// a read through them has succeeded while the caller with that number is known to be alive.
//
// What an environment said is kept with a descriptor that tells, without waiting for the process, whether
// that still executes the same program (see Task.Kept).
//
// # Ancestry
//
// A parent link is read, the parent is opened, and the link is read again: where it is the same, the
// parent lived in between, and the opened process is it. A process is given a new parent only when
// the old one dies, and only an older process of its own line, so the number cannot have changed
// hands. A parent that is kept needs no second look at the link where it was kept before the first one
// and is alive after. A link once found stays true for ever (who forked whom does not change), so it is cached;
// after the parent's death the cache knows more than /proc does.
//
// # Hazards
//
// Reading an environment takes locks of the other process's memory, which it can hold for as
// long as it likes: callers read it with a deadline. The other files used here do not.
// An orphan has lost its line: it hangs on the init of its pid namespace or on a subreaper.
package proc
