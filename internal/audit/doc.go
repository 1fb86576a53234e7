// Package audit is the log of admin writes: who, what, when and what came of it, a
// line each, every line hashed onto the one before. A line that is changed, taken
// out, put in or moved no longer fits its neighbours; lines cut off at the end show
// against a head that was kept elsewhere (Head).
//
// The hash of a line is SHA-256 over the text "admitone audit line 1", a zero byte,
// and these fields in order, each as its length in 4 bytes, big-endian, and its
// UTF-8: prev, n (decimal), time, by, key, method, path, digest, nonce, status
// (decimal), problem. The first line's prev is 64 zeros.
package audit
