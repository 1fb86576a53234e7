package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, written as in "400ms", "1.5s" or "14h".
type Duration time.Duration

// String gives the duration as Go prints it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText gives what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration. It returns an error for anything else, and for
// a negative one: nothing here is configured backwards.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write it as in \"400ms\" or \"1.5s\"", b)
	}
	*d = Duration(v)
	return nil
}

// Size is a number of bytes, written as in "512MB" (10^6) or "512MiB" (2^20).
type Size int64

type unit struct {
	name  string
	bytes int64
}

// sizeUnits are in the order in which a suffix is tried: "B" last, all end in it.
func sizeUnits() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	}
}

// String gives the size in the largest unit that it is a multiple of.
func (s Size) String() string {
	for _, u := range []unit{{"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}} {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText gives what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a size: a whole number and a unit.
func (s *Size) UnmarshalText(b []byte) error {
	for _, u := range sizeUnits() {
		digits, ok := strings.CutSuffix(string(b), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size; write it as in \"512MB\" or \"1GB\"", b)
}

// Policy is what to do where something cannot be known.
type Policy string

// The policies.
const (
	Admit  Policy = "admit"
	Refuse Policy = "refuse"
)

func (Policy) allowed() []string { return []string{"admit", "refuse"} }

// Amnesia is what a gate does after its store was lost, until it has caught up
// or amnesia_wait is over.
type Amnesia string

// The three ways to live with a lost store.
const (
	AmnesiaWait   Amnesia = "wait"   // amber, catching_up, for as long as it takes
	AmnesiaAdmit  Amnesia = "admit"  // after amnesia_wait admit, marked
	AmnesiaRefuse Amnesia = "refuse" // after amnesia_wait refuse
)

func (Amnesia) allowed() []string { return []string{"wait", "admit", "refuse"} }

// NoPassage is what becomes of a claim whose turnstile opened and nobody went
// through.
type NoPassage string

// The two ends of a claim without a passage.
const (
	Annul NoPassage = "annul" // the ticket works again
	Keep  NoPassage = "keep"  // it is used
)

func (NoPassage) allowed() []string { return []string{"annul", "keep"} }

// Release is how the relay opens the turnstile.
type Release string

// The two ways to open.
const (
	ReleasePulse Release = "pulse" // for the length of pulse; the turnstile does the rest
	ReleaseHold  Release = "hold"  // until the passage or the timeout, and hold_after more
)

func (Release) allowed() []string { return []string{"pulse", "hold"} }

// Role is what a ledgerd process does.
type Role string

// The roles.
const (
	RoleAll    Role = "all"    // ledger and broker
	RoleBroker Role = "broker" // a broker in the gates' own network, a leaf of the ledger's
	RoleLedger Role = "ledger" // the ledger, on an external NATS
)

func (Role) allowed() []string { return []string{"all", "broker", "ledger"} }
