// Package config reads the configuration of gated and ledgerd and a gate's
// enrolment: strict TOML in which an unknown key is a problem. A load reports
// every problem at once, each with its file, its key, what is wrong and what
// would be right, so that a person at a gate at 18:55 mends a file once.
//
// Paths in a file are relative to the folder that the file is in.
package config
