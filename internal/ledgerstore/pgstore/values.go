package pgstore

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/big"

	"github.com/fxamacker/cbor/v2"
	"github.com/jackc/pgx/v5/pgtype"

	"admitone/internal/ticket"
)

// num is a number of 64 bits as PostgreSQL's numeric holds it.
type num uint64

// NumericValue is pgtype.NumericValuer.
func (n num) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: new(big.Int).SetUint64(uint64(n)), Valid: true}, nil
}

// ScanNumeric is pgtype.NumericScanner.
func (n *num) ScanNumeric(v pgtype.Numeric) error {
	if !v.Valid || v.NaN || v.Exp < 0 || v.InfinityModifier != pgtype.Finite {
		return fmt.Errorf("read number: %v is not one", v)
	}
	i := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Exp)), nil)
	if i.Mul(i, v.Int); !i.IsUint64() {
		return fmt.Errorf("read number: %v does not fit 64 bits", i)
	}
	*n = num(i.Uint64())
	return nil
}

// run is a run as its hexadecimal digits.
type run ticket.Run

// ScanText is pgtype.TextScanner.
func (r *run) ScanText(v pgtype.Text) error {
	parsed, err := ticket.ParseRun(v.String)
	*r = run(parsed)
	return err
}

// Kinds of locks; the first is one lock, the others are one a name.
const (
	lockFeeds = iota
	lockRun
	lockTicket
	lockConflict
	lockAlarm
	lockRow
	lockProcess
)

// lockKey names a lock by 64 bits: two names that meet in them wait for each other
// without need, which does no harm.
func lockKey(kind byte, names ...[]byte) int64 {
	h := fnv.New64a()
	h.Write([]byte("admitone\x00"))
	h.Write([]byte{kind})
	for _, n := range names {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(n))))
		h.Write(n)
	}
	return int64(h.Sum64())
}

func runLock(s ticket.Stream) int64 {
	return lockKey(lockRun, []byte(s.Source), []byte(s.Run.String()))
}

func ticketLock(event string, f ticket.Format, id ticket.ID) int64 {
	return lockKey(lockTicket, []byte(event), []byte{byte(f)}, id[:])
}

// encMode and decMode are the forms of bodies, as package ledgerstore has them.
var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options: only a changed library could reach this
	}
	return v
}

// wrap says what was being done when err came, nil where none did.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
