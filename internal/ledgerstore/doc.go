// Package ledgerstore keeps the ledger's tables in a key-value store (package kv).
// It implements ledger.Store and office.Books; each Update is one transaction of
// the kv.Store, which groups concurrent ones into one commit.
//
// The keys. Numbers are big-endian, 8 bytes unless a digit says otherwise; a name
// ends with a zero byte (which no name holds) unless it ends the key; at is Unix
// nanoseconds with the sign bit flipped, so that bytes order as time does.
//
//	bucket       key                                value
//	stream     | source 00 run                    | [high top head base lost aside]
//	record     | source 00 run pos                | kind1 (0 record, 1 set aside), its own bytes
//	seen       | scope event, id                  | run pos since, then the answer's word
//	           |   event 00 format1 ticket16      |   (run and pos say where the record stands):
//	           |   entry4, gate 00 run pos        |   a claim, as a guest (kvseen.GuestKey)
//	           |   '- a unit's claims are one scan, an event's claims too
//	claim.unit | gate 00 run pos                  | the unit's part of the id above; only for claims
//	           |                                    |   whose rev 0 was not the first to come
//	due        | at, gate 00 run pos              | the unit's part; pending claims only
//	subject    | name                             | [version source run pos]: the feed record that holds
//	conflict   | id                               | {1: id, 2: unit, …}
//	conflict.at| at id                            | empty; the list by announcement
//	alarm      | id                               | {1: id, 2: kind, …}
//	alarm.at   | at id                            | empty; the list by time
//	event      | id                               | [admitted conflicts alarms late forget closed pruned swept]
//	gate       | device                           | [place hello]
//	late       | event 00 source 00 run pos       | the record's own bytes
//	row        | len1 table id                    | form1 (1), at, len2 list, the body (office.Row)
//	row.list   | len1 table len2 list at id       | empty; a list is one scan
//	seen, seen.until: package seen/kvseen. The id of a unit's row is its part of a
//	             claim's id; that of an ask has the claim's words behind it, so that
//	             all that an ask reads of its unit lies together
//
// [ ] and { } are deterministic CBOR (RFC 8949, 4.2.1).
package ledgerstore
