// Package crashtest finds out what a power cut, a failing call or a damaged file
// does to the real programs. It is for tests only.
//
// A Disk is a folder on a file system of our own (FUSE), which sees each change of
// the programs that keep their files there, can be as slow as a card, and can make
// the nth call of a kind fail or be a process's last. A Tap sees what leaves a
// program over NATS. Both write into one Log, in the order in which it happened, so
// that for each moment it is known what had been announced and what was on disk for
// certain: what was written before the last flush that had begun after it.
//
// From a Recording, States are built that a power cut could have left: any part of
// what was not flushed, torn at sectors and pages, with and without the names of
// files that were not flushed. The program in crashtest/check opens each as the
// daemons do, checks it, and asks for everything that had been announced.
package crashtest
