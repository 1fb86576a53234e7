// Package boltfile keeps a kv.Store in one bbolt file, and knows what a power cut,
// a worn card and a second process can do to it:
//
//   - A file is made offside and renamed, so that there is none or a good one.
//   - It is checked by a child process before it is opened, because a damaged
//     file can end a process with a fault, or keep it busy for ever.
//   - Each value carries a form and a CRC32C over bucket, key and value: bbolt's
//     data pages have no checksum, and flipped bits would be read as data.
//   - Concurrent writers share commits (kv.Group), each function runs once.
//   - A failed commit has an unknown outcome; the store is then of no more use.
//   - A full store refuses what makes it larger, and goes on taking deletes.
//   - One process has the file; a second one is told which.
package boltfile
