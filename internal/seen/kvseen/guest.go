package kvseen

import "encoding/binary"

// Rows is the bucket of the rows. Others may keep rows of their own in it, guests,
// beside the rows that they are read and written with: one page instead of two.
const Rows = rows

// guest ends the keys of guests: the suffix of an endpoint without a name, which no
// row of the table has.
const guest = 0

// GuestPrefix is what the keys in Rows begin with, of guests and others, whose scope
// it is and whose identifiers begin as id does.
func GuestPrefix(scope string, id []byte) ([]byte, error) {
	b, err := appendScope(make([]byte, 0, 3+len(scope)+len(id)), scope)
	return append(b, id...), err
}

// GuestKey is the key of a guest.
func GuestKey(scope string, id []byte) ([]byte, error) {
	b, err := GuestPrefix(scope, id)
	return append(b, guest), err
}

// GuestID gives the identifier in a key of Rows; false: it is not a guest's.
func GuestID(key []byte) (id []byte, ok bool) {
	if len(key) < 3 || key[len(key)-1] != guest {
		return nil, false
	}
	n := 2 + int(binary.BigEndian.Uint16(key))
	if n >= len(key) {
		return nil, false
	}
	return key[n : len(key)-1], true
}
