// Package ledgertest proves stores of the ledger: Run is the suite that every
// implementation of ledger.Store passes, Check derives a store's rows anew from
// its records, and Dump, Load and Diff compare and copy stores on package kv.
package ledgertest
