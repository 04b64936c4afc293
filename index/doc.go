// Package index keeps sessions, executions, tool uses, entries and tokens in Badger. It is the only
// importer of Badger and implements session.Store, artifact.Store and artifact.TokenStore.
//
// # Key scheme, version 2
//
// A key is one byte for its kind, then its parts. A text part is one length byte and the text; a
// text of 255 bytes or more is the length byte 255 and its SHA-256. So a part delimits itself and no
// id, however it is chosen, reaches into another's range. Numbers are big-endian. A time is 12
// bytes: seconds and nanoseconds, in order. A path is the first 16 bytes of its SHA-256; what is
// found under it is compared with the path itself.
//
//	primary rows: the value is a codec version byte and JSON
//	s  session                                a session
//	e  session execution                      an execution
//	t  session tooluse                        a tool use
//	n  entry                                  an entry, open or final
//	k  hash                                   a token
//
//	secondary rows: the value is the key of the primary row
//	S  time session                           sessions in order of beginning
//	E  session time execution                 executions of a session in order of beginning
//	V  session time execution                 … those that are open
//	T  session time tooluse                   tool uses of a session in order of beginning
//	U  session time tooluse                   … those that are open
//	o  session generation entry               open entries, by the state of the rename log they were put at
//	f  session seq entry                      final entries
//	x  session execution seq entry            … of an execution
//	u  session tooluse seq entry              … of a tool use
//	a  session seq entry                      final entries that are artifacts and not removed
//	X  session execution seq entry            … of an execution
//	A  session tooluse seq entry              … of a tool use
//	i  session device inode birth seq entry   final entries of an inode
//	p  session path seq entry                 final entries whose shown path that is
//	d  session pathtext 0 path seq entry      artifacts by the first 1,000 bytes of that path
//	K  artifact time hash                     tokens of an artifact in order of creation
//	L  session time hash                      tokens of a session in order of creation
//	M  time hash                              tokens in order of expiry
//
//	others: as primary rows
//	r  session generation                     a directory was renamed
//	g  session                                the last generation of the rename log
//	q  session                                the greatest sequence number ever given
//	!  scheme                                 the version of this scheme
//
// Every listing is one range scan and gets of what it returns. A secondary row is written and
// removed in the transaction that changes its primary row.
//
// # Directory renames
//
// A renamed directory is one row in the session's rename log. An open entry remembers the
// generation of the log at which it was put, and the later renames are carried out on its names
// when it is read. What no open entry needs any more is trimmed; when the log grows long, the open
// entries are rewritten instead.
//
// # Guarantees
//
// What a call wrote is in a shared memory mapping when it returns and survives kill -9; Sync is
// what survives a power cut. Transactions that conflict are tried again. Ids are text: bytes that
// are not UTF-8 are replaced in them; names and paths are bytes and come back as they were.
//
// # Hazards
//
// A full disk would kill the process with SIGBUS inside Badger's mappings. So changes are refused
// with ENOSPC while less than 64 MiB are free; another program that takes those at once is not
// defended against.
package index
