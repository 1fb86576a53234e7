package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Conflict is the finding that one unit was admitted by two or more claims. It
// is derived from records alone, so it is the same wherever the same records
// are, in whatever order they came.
type Conflict struct {
	Unit    Unit
	Claims  []Claim // all sides, first first
	Certain bool    // false: a side is presumed, it may not have gone through
	Ordered bool    // false: a clock was untrusted, or the error bounds overlap
}

// First is the claim that was first.
func (c Conflict) First() Claim { return c.Claims[0] }

// ConflictID is the one id that a unit's conflict ever has.
func ConflictID(u Unit) string {
	h := sha256.Sum256(append([]byte("conflict\x00"), u.Key()...))
	return hex.EncodeToString(h[:8])
}

// ID is ConflictID of the unit.
func (c Conflict) ID() string { return ConflictID(c.Unit) }

// DeriveConflict finds the conflict in what is known of a unit. A pair in which
// one side named the other as freed, at the revision it still has, is none: the
// later claim was made knowing that the earlier one had been taken back. Claims
// of mode free count in no conflict.
func DeriveConflict(v View) (Conflict, bool) {
	var sides []Claim
	for _, k := range v.Claims {
		c := k.Claim
		if (c.State == Admitted || c.State == Presumed) && !k.Released && c.Reason != Free {
			sides = append(sides, c)
		}
	}
	slices.SortFunc(sides, Compare)
	in := make([]bool, len(sides))
	for i := range sides {
		for j := i + 1; j < len(sides); j++ {
			if !freed(sides[i], sides[j]) && !freed(sides[j], sides[i]) {
				in[i], in[j] = true, true
			}
		}
	}
	out := Conflict{Unit: v.Unit, Certain: true, Ordered: true}
	for i, c := range sides {
		if !in[i] {
			continue
		}
		out.Claims = append(out.Claims, c)
		if c.State == Presumed {
			out.Certain = false
		}
		if len(out.Claims) > 1 && !OrderCertain(out.Claims[0], c) {
			out.Ordered = false
		}
	}
	return out, len(out.Claims) > 1
}

func freed(by, c Claim) bool {
	return slices.Contains(by.After, Ref{Claim: c.ID, Rev: c.Rev})
}
