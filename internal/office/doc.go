// Package office is the business behind the ledger's HTTP side: orders, the
// charges they are paid by, the tickets minted for them, and refunds.
package office
