package ticket

import (
	"crypto/ed25519"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"
)

func TestMintRoundTrip(t *testing.T) {
	v := fairVerifier(t)
	rapid.Check(t, func(t *rapid.T) {
		s := signerOf(rapid.SampledFrom([]byte{1, 2}).Draw(t, "key"))
		want := drawTicket(t, "gala")
		text, err := s.Mint(want)
		if err != nil {
			t.Fatalf("mint %+v: %v", want, err)
		}
		got, reason := v.Read(text)
		if reason != OK || got != want {
			t.Fatalf("read %+v, %s, want %+v", got, reason, want)
		}
		if again, err := s.Mint(got); err != nil || again != text {
			t.Fatalf("minted again %q, %v, want %q", again, err, text)
		}
	})
}

// The largest plain ticket is exactly what a QR code of version 8 holds at level
// M, whatever its flags; package qr draws it.
func TestLargestTicket(t *testing.T) {
	largest := Ticket{
		Format: FormatA1, ID: ID{0xff}, Event: strings.Repeat("E", 8), Session: strings.Repeat("s", 8), Product: strings.Repeat("p", 8),
		NotBefore: time.Unix(1<<32-2, 0), Expires: time.Unix(1<<32-1, 0), Test: true,
	}
	if n := len(mint(t, signerOf(1), largest)); n != MaxA1 {
		t.Errorf("the largest ticket has %d characters, want %d", n, MaxA1)
	}
	for _, n := range [][3]int{{24, 0, 0}, {1, 23, 0}, {1, 0, 23}, {8, 8, 8}, {22, 1, 1}} {
		for _, product := range []bool{false, true} {
			tk := largest
			tk.Event, tk.Session, tk.Product = strings.Repeat("E", n[0]), strings.Repeat("s", n[1]), strings.Repeat("p", n[2])
			if !product {
				tk.Product, tk.Zone = "", tk.Product
			}
			if n := len(mint(t, signerOf(1), tk)); n > MaxA1 {
				t.Errorf("%+v has %d characters", tk, n)
			}
		}
	}
	largest.Product += "p"
	if text, err := signerOf(1).Mint(largest); err == nil || !strings.Contains(err.Error(), "25 bytes") {
		t.Errorf("25 bytes of names: %q, %v", text, err)
	}
	largest.Product = largest.Product[1:]
	largest.Entry = 1
	if text, err := signerOf(1).Mint(largest); err == nil || !strings.Contains(err.Error(), "at most 221") {
		t.Errorf("too long with its entry: %q, %v", text, err)
	}
}

func TestMintRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*Ticket)
		want   string
	}{
		"another format":   {func(tk *Ticket) { tk.Format = FormatCode }, "format is code"},
		"no id":            {func(tk *Ticket) { tk.ID = ID{} }, "16 random bytes"},
		"no event":         {func(tk *Ticket) { tk.Event = "" }, "event: empty"},
		"bad event":        {func(tk *Ticket) { tk.Event = "ga la" }, `event: "ga la" has ' '`},
		"bad session":      {func(tk *Ticket) { tk.Session = "é" }, "session: "},
		"bad zone":         {func(tk *Ticket) { tk.Zone = "-x" }, "zone: "},
		"zone and product": {func(tk *Ticket) { tk.Product = "crew" }, "zone and product"},
		"bad product":      {func(tk *Ticket) { tk.Zone, tk.Product = "", "a/b" }, "product: "},
		"long names":       {func(tk *Ticket) { tk.Zone = strings.Repeat("z", 16) }, "25 bytes"},
		"fraction":         {func(tk *Ticket) { tk.NotBefore = tk.NotBefore.Add(1) }, "whole seconds"},
		"before 1970":      {func(tk *Ticket) { tk.NotBefore = time.Unix(-1, 0) }, "1970 to 2106"},
		"after 2106":       {func(tk *Ticket) { tk.Expires = time.Unix(1<<32, 0) }, "1970 to 2106"},
		"never valid":      {func(tk *Ticket) { tk.Expires = tk.NotBefore }, "not after"},
	}
	for name, tt := range tests {
		tk := galaTicket()
		tt.change(&tk)
		if text, err := signerOf(1).Mint(tk); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: minted %q, %v, want an error with %q", name, text, err, tt.want)
		}
	}
	if _, err := NewSigner(nil).Mint(galaTicket()); err == nil {
		t.Error("minted without a key")
	}
	all := Ticket{Event: "x x", NotBefore: time.Unix(-1, 0)}
	if err := CheckA1(all); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v, want all four problems at once", err)
	}
}

// Any other spelling of a ticket, and any ticket with a changed character, is
// refused, whatever the change.
func TestOtherSpellingsAreInvalid(t *testing.T) {
	v := fairVerifier(t)
	text := mint(t, signerOf(1), galaTicket())
	if _, reason := v.Read(text); reason != OK {
		t.Fatal(reason)
	}
	half := len(text) / 2
	for name, s := range map[string]string{
		"lower case": strings.ToLower(text), "lower prefix": "a1:" + text[3:], "space before": " " + text, "space after": text + " ",
		"newline after": text + "\n", "CR LF after": text + "\r\n", "newline inside": text[:half] + "\n" + text[half:],
		"space inside": text[:half] + " " + text[half:], "tab inside": text[:half] + "\t" + text[half:], "padding": text + "=",
		"zero byte": text + "\x00", "doubled": text + text, "no prefix": text[3:], "prefix twice": "A1:" + text,
		"another prefix": "A2" + text[2:], "cut off": text[:len(text)-1], "first half": text[:half], "prefix only": "A1:", "empty": "",
		"byte order mark": "\ufeff" + text, "full width": strings.Replace(text, "A", "Ａ", 1), "percent": strings.ReplaceAll(text, " ", "%20"),
		"plus": strings.ReplaceAll(text, " ", "+"), "quoted": `"` + text + `"`, "huge": text + strings.Repeat("0", 1<<20),
	} {
		if s == text {
			t.Errorf("%s: the test changed nothing", name)
		}
		if got, reason := v.Read(s); reason != Invalid {
			t.Errorf("%s: %s %+v, want invalid", name, reason, got)
		}
	}
	for i := range text {
		next := base45Digits[(strings.IndexByte(base45Digits, text[i])+1)%45]
		for _, c := range []byte{next, base45Digits[i%45], text[i] | 0x20, text[i] ^ 0x80, '\n'} {
			s := text[:i] + string([]byte{c}) + text[i+1:]
			if got, reason := v.Read(s); s != text && reason != Invalid && reason != Unknown {
				t.Fatalf("character %d as %q: %s %+v", i, c, reason, got)
			}
		}
	}
}

// resign signs a payload and header that Mint would not write.
func resign(t *testing.T, s Signer, protected, unprotected map[any]any, payload []byte) string {
	t.Helper()
	head, err := encMode.Marshal(protected)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := encMode.Marshal([]any{"Signature1", head, []byte{}, payload})
	if err != nil {
		t.Fatal(err)
	}
	b, err := encMode.Marshal([]any{head, unprotected, payload, ed25519.Sign(s.priv, signed)})
	if err != nil {
		t.Fatal(err)
	}
	return a1Prefix + encodeBase45(b)
}

// Claims and headers that say the same, or more, in another way are refused even
// with a good signature.
func TestOnlyOneEncodingIsRead(t *testing.T) {
	s := signerOf(1)
	v := fairVerifier(t)
	tag := tagOf(s.Public())
	id := slices.Repeat([]byte{7}, 16)
	const year2100 = uint64(4102444800)
	claims := func(change func(map[any]any)) []byte {
		m := map[any]any{7: id, 4: year2100, -65537: []any{"gala", "", "pit"}}
		change(m)
		b, err := encMode.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pass := func(items ...any) []byte { return claims(func(m map[any]any) { m[-65537] = items }) }
	head := func() map[any]any { return map[any]any{1: -8, 4: tag[:]} }
	same := claims(func(map[any]any) {})
	if _, reason := v.Read(resign(t, s, head(), map[any]any{}, same)); reason != OK {
		t.Fatalf("the untouched ticket is %s", reason)
	}
	for name, payload := range map[string][]byte{
		"trailing empty zone": pass("gala", "", ""),
		"session given empty": pass("gala", "", 1),
		"text after a number": pass("gala", 1, "pit"),
		"number first":        pass(1, "gala"),
		"trailing flag":       pass("gala", "", "pit", 0),
		"trailing entry":      pass("gala", "", "pit", 0, 0),
		"sixth item":          pass("gala", "", "pit", 0, 1, 0),
		"unknown flag":        pass("gala", "", "pit", 4),
		"product flag alone":  pass("gala", "", "", 2),
		"negative flag":       pass("gala", "", "pit", -1),
		"float flag":          pass("gala", "", "pit", 1.0),
		"true as a flag":      pass("gala", "", "pit", true),
		"huge entry":          pass("gala", "", "pit", 0, uint64(1)<<32),
		"bytes as event":      pass([]byte("gala")),
		"nil as session":      pass("gala", nil, "pit"),
		"tagged event":        pass(cbor.Tag{Number: 32, Content: "gala"}),
		"no items":            pass(),
		"more than 221 characters": claims(func(m map[any]any) {
			m[5] = year2100 - 1
			m[-65537] = []any{"gala", "early", strings.Repeat("z", 15), 3, uint64(1)<<32 - 1}
		}),
		"names of 25 bytes":    pass("gala", strings.Repeat("s", 11), strings.Repeat("z", 10)),
		"name with a space":    pass("gala", "", "p it"),
		"name not in ASCII":    pass("gala", "", "pít"),
		"no private claim":     claims(func(m map[any]any) { delete(m, -65537) }),
		"no id":                claims(func(m map[any]any) { delete(m, 7) }),
		"zero id":              claims(func(m map[any]any) { m[7] = make([]byte, 16) }),
		"short id":             claims(func(m map[any]any) { m[7] = id[:15] }),
		"long id":              claims(func(m map[any]any) { m[7] = append(slices.Clone(id), 7) }),
		"text id":              claims(func(m map[any]any) { m[7] = string(id) }),
		"array id":             claims(func(m map[any]any) { m[7] = slices.Repeat([]any{7}, 16) }),
		"issuer":               claims(func(m map[any]any) { m[1] = "me" }),
		"text key":             claims(func(m map[any]any) { m["x"] = 1 }),
		"float time":           claims(func(m map[any]any) { m[4] = float64(year2100) }),
		"tagged time":          claims(func(m map[any]any) { m[4] = cbor.Tag{Number: 1, Content: year2100} }),
		"zero time":            claims(func(m map[any]any) { m[5] = 0 }),
		"negative time":        claims(func(m map[any]any) { m[5] = -1 }),
		"time after 2106":      claims(func(m map[any]any) { m[4] = uint64(1) << 32 }),
		"time as a big number": claims(func(m map[any]any) { m[4] = *new(big.Int).Lsh(big.NewInt(1), 70) }),
		"expires too early":    claims(func(m map[any]any) { m[5] = year2100 + 1 }),
		"not a map":            {0x80},
		"empty":                {},
		"trailing byte":        append(slices.Clone(same), 0),
		"indefinite map":       append(append([]byte{0xbf}, same[1:]...), 0xff),
		"keys in another order": func() []byte {
			// 04 1a xxxxxxxx, 07 50 …: the first pair moved behind the second
			return slices.Concat(same[:1], same[7:25], same[1:7], same[25:])
		}(),
	} {
		if got, reason := v.Read(resign(t, s, head(), map[any]any{}, payload)); reason != Invalid {
			t.Errorf("%s: %s %+v, want invalid", name, reason, got)
		}
	}
	for name, change := range map[string]func(protected, unprotected map[any]any){
		"algorithm none":        func(p, _ map[any]any) { p[1] = 0 },
		"algorithm ES256":       func(p, _ map[any]any) { p[1] = -7 },
		"algorithm Ed25519":     func(p, _ map[any]any) { p[1] = -19 },
		"algorithm by name":     func(p, _ map[any]any) { p[1] = "EdDSA" },
		"no algorithm":          func(p, _ map[any]any) { delete(p, 1) },
		"algorithm unprotected": func(p, u map[any]any) { delete(p, 1); u[1] = -8 },
		"no key id":             func(p, _ map[any]any) { delete(p, 4) },
		"key id unprotected":    func(p, u map[any]any) { delete(p, 4); u[4] = tag[:] },
		"short key id":          func(p, _ map[any]any) { p[4] = tag[:3] },
		"content type":          func(p, _ map[any]any) { p[3] = 1 },
		"type":                  func(p, _ map[any]any) { p[16] = programmeKind },
		"critical":              func(p, _ map[any]any) { p[2] = []any{4} },
		"unprotected extra":     func(_, u map[any]any) { u[3] = 1 },
	} {
		p, u := head(), map[any]any{}
		change(p, u)
		if got, reason := v.Read(resign(t, s, p, u, same)); reason != Invalid {
			t.Errorf("%s: %s %+v, want invalid", name, reason, got)
		}
	}
}

// Ed25519 signatures have one form: S + the group's order, which satisfies the
// same equation, is refused (RFC 8032, 5.1.7), and so is every other tampering.
func TestSignatureIsNotMalleable(t *testing.T) {
	s := signerOf(1)
	v := fairVerifier(t)
	b, err := decodeBase45(mint(t, s, galaTicket())[len(a1Prefix):])
	if err != nil {
		t.Fatal(err)
	}
	sig := b[len(b)-ed25519.SignatureSize:]
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	little := slices.Clone(sig[32:])
	slices.Reverse(little)
	sum := new(big.Int).Add(new(big.Int).SetBytes(little), order).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	copy(sig[32:], sum)
	if _, reason := v.Read(a1Prefix + encodeBase45(b)); reason != Invalid {
		t.Errorf("S plus the order is %s, want invalid", reason)
	}
	for i := range sig {
		c := slices.Clone(b)
		c[len(c)-1-i] ^= 1
		if _, reason := v.Read(a1Prefix + encodeBase45(c)); reason != Invalid {
			t.Errorf("byte %d from the end changed: %s, want invalid", i, reason)
		}
	}
}
