// Package ledgerhttp is the ledger's HTTP side: the API, its Go client, the
// metrics and the operators' page.
//
// Reads take a bearer key; the server keeps only its SHA-256. Admin writes are
// signed requests (RFC 9421 and RFC 9530, Ed25519): the signature covers method,
// path, query and body, its nonce is a row of the seen table that refuses
// repeats for as long as the signature itself would be accepted, and so a
// captured request works once, and only within the window. Problems are RFC
// 9457, and their detail says what to do.
package ledgerhttp
