package ticket

import (
	"errors"
	"strings"
)

// base45Digits is the alphabet of RFC 9285, which is also the alphanumeric mode
// of QR codes: 5.5 bits a character instead of 8.
const base45Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"

// errBase45 is returned when a text is not what encodeBase45 writes.
var errBase45 = errors.New("not base45")

// encodeBase45 writes two bytes as three characters and a last odd byte as two
// (RFC 9285, section 4), least significant digit first.
func encodeBase45(b []byte) string {
	var s strings.Builder
	s.Grow((len(b)*3 + 1) / 2)
	for ; len(b) >= 2; b = b[2:] {
		n := int(b[0])<<8 | int(b[1])
		s.WriteByte(base45Digits[n%45])
		s.WriteByte(base45Digits[n/45%45])
		s.WriteByte(base45Digits[n/(45*45)])
	}
	if len(b) == 1 {
		s.WriteByte(base45Digits[b[0]%45])
		s.WriteByte(base45Digits[b[0]/45])
	}
	return s.String()
}

// decodeBase45 reads what encodeBase45 writes and nothing else: a character
// outside the alphabet (lower case among them), a triplet above 65535, a pair
// above 255 or a single last character is errBase45.
func decodeBase45(s string) ([]byte, error) {
	if len(s)%3 == 1 {
		return nil, errBase45
	}
	out := make([]byte, 0, len(s)/3*2+1)
	for len(s) > 0 {
		group := s[:min(3, len(s))]
		s = s[len(group):]
		n, weight := 0, 1
		for i := range len(group) {
			d := strings.IndexByte(base45Digits, group[i])
			if d < 0 {
				return nil, errBase45
			}
			n += d * weight
			weight *= 45
		}
		switch {
		case len(group) == 3 && n <= 0xffff:
			out = append(out, byte(n>>8), byte(n))
		case len(group) == 2 && n <= 0xff:
			out = append(out, byte(n))
		default:
			return nil, errBase45
		}
	}
	return out, nil
}
